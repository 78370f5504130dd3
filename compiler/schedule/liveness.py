"""Liveness of DRAM buffers: from the first stage that writes a buffer to the last that reads or writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from intloom.compiler.schedule.geometry import Buffer
from intloom.compiler.schedule.stage import Stage


def live_ranges(
    stages: Iterable[Stage], slot_of: Sequence[int], first_writes: Mapping[Buffer, int]
) -> dict[Buffer, tuple[int, int]]:
    """The half-open range of slots in which each buffer is live.

    `slot_of` has the slot of each stage. `first_writes` names the slot during which a buffer is first written, where
    reordering moved that write forward.
    """
    found: dict[Buffer, tuple[int, int]] = {}
    for stage in stages:
        slot = slot_of[stage.index]
        written = [c.target.buffer for c in stage.copies] + ([stage.out.buffer] if stage.keep_result else [])
        for buffer in [*written, *(v.buffer for v in stage.operands)]:
            # Reads extend the range too: a load of the last reader must not meet the next tensor in these words.
            start, stop = found.get(buffer, (first_writes.get(buffer, slot), 0))
            found[buffer] = (min(start, slot), max(stop, slot + 1))
    return found
