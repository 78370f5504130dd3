"""The garbage collector is paused inside the block only, and stays off where it was off."""

import gc
import weakref

import pytest

from intloom.common.collector import collector_paused


class Gone:
    """Part of a reference cycle."""

    itself: object


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


def test_cycles_of_the_block_are_collected_later():
    with collector_paused():
        gone = Gone()
        gone.itself = gone
        reference = weakref.ref(gone)
        del gone
    gc.collect()
    assert reference() is None


def test_what_a_program_froze_stays_frozen():
    gc.freeze()
    try:
        with collector_paused():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
