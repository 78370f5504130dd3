"""Time of a group in stripes whose array and vector unit wait for each other, stage by stage in every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.schedule.dataflow import Dataflow
from intloom.compiler.schedule.stripes import Stripes, on_both_units

Cycles = NDArray[np.int64]
"""Cycles of each stage in each step."""


def stripe_cycles(flow: Dataflow, plan: Stripes, array: Cycles, vector: Cycles) -> int:
    """Cycles until both units are done."""
    count = plan.stop - plan.first
    links = [_links(flow, plan, k) for k in range(count)]
    work = np.stack([array, vector], axis=2).tolist()
    done, array_free, vector_free = [0] * count, 0, 0
    for step in range(plan.steps):
        before = done.copy()
        for k in reversed(range(count)):
            on_array, on_vector = work[k][step]
            if not on_array and not on_vector:
                continue
            earlier, same = links[k]
            at = max([0, *(before[n] for n in earlier), *(done[n] for n in same)])
            if on_array:
                at = array_free = max(array_free, at) + on_array
            if on_vector:
                at = vector_free = max(vector_free, at) + on_vector
            done[k] = at
    return max(array_free, vector_free)


def _links(flow: Dataflow, plan: Stripes, k: int) -> tuple[list[int], list[int]]:
    """The stages of the group for whose step before a stage waits, and those for whose same step it does.

    It waits for the rows that it reads, and for the readers of the rows that it overwrites.
    """
    index, inside = plan.first + k, range(plan.first, plan.stop)
    earlier, same = set[int](), set[int]()
    for read in flow.reads[index]:
        earlier |= {w.stage.index for w in flow.writers[read.buffer] if w.stage.index in inside}
    for write in flow.writes[index]:
        writes = [w for w in flow.writers[write.buffer] if w.stage.index in inside]
        for read in flow.readers[write.buffer]:
            if read.stage.index in inside:
                (earlier if on_both_units(read, writes) else same).add(read.stage.index)
    return [n - plan.first for n in earlier], [n - plan.first for n in same]
