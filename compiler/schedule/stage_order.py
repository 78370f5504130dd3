"""The order of stages: branch by branch, so that a result is read soon after it is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from intloom.compiler.schedule.dataflow import Dataflow
from intloom.compiler.schedule.geometry import Buffer
from intloom.compiler.schedule.stage import Stage


def branch_by_branch(stages: Sequence[Stage]) -> list[Stage]:
    """The stages in depth-first order from the stages that nothing reads; `index` is set to the new order.

    Graph order often alternates between branches; then each branch's tensors wait for the other.
    """
    flow = Dataflow(stages)
    sources = [list(_sources(flow, k)) for k in range(len(stages))]
    read = {k for needed in sources for k in needed}
    order: list[int] = []
    done: set[int] = set()
    for last in (k for k in range(len(stages)) if k not in read):
        # Not recursive: a model may be deeper than Python's recursion limit.
        waiting = [last]
        while waiting:
            top = waiting[-1]
            missing = [k for k in sources[top] if k not in done]
            if missing:
                waiting.append(missing[0])
                continue
            waiting.pop()
            if top not in done:
                done.add(top)
                order.append(top)
    ordered = [stages[k] for k in order]
    for index, stage in enumerate(ordered):
        stage.index = index
    return ordered


def _sources(flow: Dataflow, index: int) -> Iterator[int]:
    """The stages that write what a stage reads, earliest first; those of tensors that must be whole before others.

    Then the stages that make the other operands may run in stripes with it.
    """
    weights = [(v.buffer, v.block_range) for v in flow.stages[index].weight_operands]
    yield from _writers(flow, index, weights)
    yield from _writers(flow, index, [(r.buffer, r.blocks) for r in flow.reads[index]])


def _writers(flow: Dataflow, index: int, reads: list[tuple[Buffer, range]]) -> Iterator[int]:
    found = {
        w.stage.index
        for buffer, blocks in reads
        for w in flow.writers[buffer]
        if w.stage.index != index and w.blocks.start < blocks.stop and blocks.start < w.blocks.stop
    }
    yield from sorted(found)
