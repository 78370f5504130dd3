"""Python's garbage collector, paused."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collection of reference cycles; memory without cycles is freed as always.

    For code that makes many objects and keeps them: the collector visits all of them again and again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # As if the new objects had survived all collections: the next one would visit them all, and most are kept.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
