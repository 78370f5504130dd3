"""The order of stages: branch by branch, with work for the array in parallel with long stages of the vector unit.

Groups are consecutive stages. The Softmax of one matrix takes the vector unit longer than its products take the array,
so layers of another matrix come just before it: in stripes, both units then work on both matrices.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.stages.placement import Buffer, View
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit


def in_order(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """All stages in the order in which groups are made of them; sources come before what reads them."""
    return overlap_vector_unit(branch_by_branch(stages))


def branch_by_branch(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages in depth-first order from the stages that nothing reads.

    Graph order often alternates between branches; then each branch's tensors wait for the other.
    """
    sources = _sources(stages)
    read = {k for needed in sources for k in needed}
    order: dict[int, None] = {}
    for last in (k for k in range(len(stages)) if k not in read):
        # Not recursive: a model may be deeper than Python's recursion limit.
        waiting = [last]
        while waiting:
            missing = next((k for k in sources[waiting[-1]] if k not in order), None)
            if missing is None:
                order[waiting.pop()] = None
            else:
                waiting.append(missing)
    return tuple(stages[k] for k in order)


def overlap_vector_unit(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Ordered stages, with independent ones of the array just before the products around a long vector stage.

    As soon as such products can run, they do; other stages wait until they can overlap with some, or nothing is ready.
    """
    sources = _sources(stages)
    spare = _spare_cycles(stages, sources)
    if not spare:
        return tuple(stages)
    waiting = _Waiting(stages, sources, spare)
    while waiting.ready:
        long = next((run for run in waiting.ready if run in spare), None)
        if long is None:
            # The vector unit has most to do.
            waiting.emit(waiting.first_of_vector_unit() or waiting.ready[0])
        else:
            waiting.fill(spare[long])
            waiting.emit(long)
    return tuple(stages[k] for k in waiting.order)


_Run = tuple[int, ...]
"""Stages that stay together, by position: one, or products before and after a long one of the vector unit."""


class _Waiting:
    """Runs that are not yet in the order; `ready` are those whose sources are, the earliest first."""

    def __init__(self, stages: Sequence[Stage], sources: Sequence[Sequence[int]], spare: Mapping[_Run, int]) -> None:
        self._stages = stages
        self._sources = sources
        self._spare = spare
        together = {k for run in spare for k in run}
        run_of = {k: run for run in (*spare, *((k,) for k in range(len(stages)) if k not in together)) for k in run}
        needed = {run: {run_of[n] for k in run for n in sources[k]} - {run} for run in run_of.values()}
        self._sorter = TopologicalSorter(needed)
        self._sorter.prepare()
        self.ready = sorted(self._sorter.get_ready())
        self.order: list[int] = []

    def emit(self, run: _Run) -> None:
        """Append a run that is ready to the order."""
        self.order += run
        self.ready.remove(run)
        self._sorter.done(run)
        self.ready = sorted((*self.ready, *self._sorter.get_ready()))

    def first_of_vector_unit(self) -> _Run | None:
        """The earliest stage of the vector unit that is ready."""
        return next((run for run in self.ready if run not in self._spare and not self._cycles(run)), None)

    def fill(self, spare: int) -> None:
        """Append stages for this many cycles of the array; stages of the vector unit if more of the array need them."""
        begin, half = len(self.order), spare // 2
        while True:
            chosen = next((r for r in self.ready if 0 < self._cycles(r) <= spare and self._may_overlap(r, begin)), None)
            if chosen is None and spare > half:
                chosen = self.first_of_vector_unit()
            if chosen is None:
                return
            spare -= self._cycles(chosen)
            self.emit(chosen)

    def _may_overlap(self, run: _Run, begin: int) -> bool:
        """Whether a stage may run in stripes with those from `begin` on: it has none of their results as weights."""
        weights = bool(self._stages[run[0]].weight_operands)
        return run not in self._spare and not (
            weights and not set(self._sources[run[0]]).isdisjoint(self.order[begin:])
        )

    def _cycles(self, run: _Run) -> int:
        return _array_cycles(self._stages[run[0]])


def _spare_cycles(stages: Sequence[Stage], sources: Sequence[Sequence[int]]) -> dict[_Run, int]:
    """The runs around long vector stages, with the cycles in which the vector unit works and the array does not."""
    readers: dict[int, list[int]] = defaultdict(list)
    for k, needed in enumerate(sources):
        for source in needed:
            readers[source].append(k)
    taken, spare_cycles = set[int](), dict[_Run, int]()
    for k, stage in enumerate(stages):
        if not stage.overlaps_array:
            continue
        before = [n for n in sources[k] if stages[n].unit is Unit.MAC and readers[n] == [k]]
        # What else they read comes earlier, so no stage outside the run is needed between its members.
        after = [n for n in readers[k] if stages[n].unit is Unit.MAC and max(sources[n]) == k]
        members = (*before, k, *after)
        cycles = stage.vector_cycles(stage.extent[0])
        spare = cycles - sum(_array_cycles(stages[n]) for n in (*before, *after))
        if before and after and spare > tuning.SPARE_PART * cycles and taken.isdisjoint(members):
            taken.update(members)
            spare_cycles[members] = spare
    return spare_cycles


def _array_cycles(stage: Stage) -> int:
    return stage.array_cycles(stage.extent[0], new_table=False)


def _sources(stages: Sequence[Stage]) -> list[list[int]]:
    """For each stage, those that write what it reads, earliest first; those of whole tensors before others.

    Then the stages that make the other operands may run in stripes with it. A single row has no stripes: there the
    array makes the whole tensor while the vector unit makes the other operand.
    """
    writers: dict[Buffer, list[tuple[int, range]]] = {}
    for index, stage in enumerate(stages):
        for buffer, blocks in stage.written:
            writers.setdefault(buffer, []).append((index, blocks))

    def of(index: int, views: Iterable[View]) -> list[int]:
        return sorted(
            {
                writer
                for view in views
                for writer, blocks in writers.get(view.buffer, ())
                if writer != index and blocks.start < view.block_range.stop and view.block_range.start < blocks.stop
            }
        )

    def both(index: int, stage: Stage) -> list[int]:
        weights, operands = of(index, stage.weight_operands), of(index, stage.operands)
        return operands + weights if stage.extent[0] == 1 else weights + operands

    return [both(k, stage) for k, stage in enumerate(stages)]
