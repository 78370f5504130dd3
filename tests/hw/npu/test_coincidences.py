"""Events that meet in one cycle, in every state of every FSM of the accelerator."""

from pathlib import Path

import pytest

from tests.hw.npu.coincidences import wanted_points
from tests.hw.npu.disturbed import run

ROUNDS = 30
SHARE = 0.6
"""Of the points, reached in so few rounds; `make coverage` continues until all are."""


@pytest.mark.slow
def test_events_meet_in_all_states(tmp_path: Path) -> None:
    """After every disturbed run a soft reset ends; after some of them a program's results are compared."""
    seen, wanted = run(tmp_path, 1, ROUNDS)[0], {*wanted_points()}
    assert not sorted(seen.keys() - wanted), "an excluded point was reached: the reason of its exclusion is wrong"
    assert len(seen) >= SHARE * len(wanted)


@pytest.mark.slow
def test_programs_run_after_any_events(tmp_path: Path, seed: int) -> None:
    """No output depends, while it is valid, on registers and memories before the reset."""
    digests = {run(tmp_path, seed, ROUNDS // 5, start_seed)[1] for start_seed in (1, 2 + seed % 1000)}
    assert len(digests) == 1
