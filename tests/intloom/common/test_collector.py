"""The garbage collector is paused inside the block only, and stays off where it was off."""

import gc

import pytest

from intloom.common.collector import collector_paused


def test_it_collects_again_after_the_block_and_after_an_error():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), collector_paused():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_disabled_collector_stays_disabled():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
