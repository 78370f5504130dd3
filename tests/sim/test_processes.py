"""Workers end when they are told to, and have cleaned up by then, however often they are told."""

import signal

import pytest

from tests.support.signals import disturb

SETUP = """
from contextlib import nullcontext
from intloom.sim.processes import clean_up_when_ended
clean_up_when_ended()
"""


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_ended_twice_cleans_up_to_the_end(tmp_path, again):
    end = disturb(SETUP, "nullcontext()", [signal.SIGTERM, again, again], tmp_path)
    assert end.said == ["working", "cleaning up", "clean"]
    assert end.code == 128 + signal.SIGTERM
    assert not end.left
