"""Row progress of consecutive stages that run depth-first, and the ring buffers between them.

In each *step*, the last stage runs first: every stage computes the rows for which its operands were complete at the end
of the step before, or of the one before that where the vector unit makes them and the array has no other work. So an
instruction never waits for the one just before it, and a buffer holds only the rows between its writer and its slowest
reader. Rows that come from DRAM are loaded at the end of the step before they are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Dataflow, Inside, LocalBuffer, Read, Rows, Write, on_both_units
from intloom.compiler.schedule.stages.placement import Buffer, Rect
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit


@dataclass(frozen=True, eq=False)
class Stripes:
    """Stages `first` to `stop` with the finished rows of each after every step, and what they keep on chip."""

    first: int
    stop: int
    progress: Rows
    """For each stage, its finished rows after step 0, 1, 2…; in step 0 rows are only loaded."""
    rings: Sequence[tuple[Inside, int]]
    """Buffers on chip with the rows of their rings."""
    arrivals: Mapping[Buffer, Rows]
    """For each buffer with blocks from DRAM, its loaded rows after each step."""
    parts: int = 1
    """Parts of the image, cut along columns, that are computed one after the other, each in all steps."""

    @cached_property
    def buffers(self) -> Mapping[Buffer, LocalBuffer]:
        """The rings in the scratchpad."""
        return {i.buffer: _local(i, rows, self.parts) for i, rows in self.rings}

    @property
    def steps(self) -> int:
        """Number of steps, without step 0."""
        return int(self.progress.shape[1]) - 1

    @cached_property
    def largest_steps(self) -> list[int]:
        """For each stage, the most rows that it computes in a step."""
        most: list[int] = np.diff(self.progress).max(axis=1).tolist()
        return most

    @property
    def words(self) -> int:
        """Scratchpad words of all buffers."""
        if self.parts > 1:
            return sum(b.words for b in self.buffers.values())
        return sum(inside.ring_words(rows) for inside, rows in self.rings)


@dataclass(frozen=True, eq=False)
class StageRows:
    """Finished rows of a stage after each step, until long after its last one."""

    rows: Rows
    steps: int
    """Steps until all rows are finished."""


class RowProgress:
    """Finished rows of stages in stripes; groups that begin with the same stage share those of most stages."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._known: dict[object, StageRows] = {}

    def of(self, first: int, stop: int, rows_per_step: int) -> list[StageRows] | None:
        """Finished rows of each stage after each step; None if the rows that some stage needs are never complete.

        Stages without an operand from the group set the pace, of `rows_per_step` rows of the first stage.
        """
        flow, group = self._flow, range(first, stop)
        steps = -(-flow.stages[first].extent[0] // rows_per_step)
        pace = first, rows_per_step, steps + 2 * max(tuning.LONGEST_GROUP, len(group))
        writers: dict[Buffer, list[tuple[Write, StageRows]]] = {}
        progress = []
        for index in group:
            sources = tuple(
                (read, write, made, 2 if _waits(flow, write, read, group) else 1)
                for read in flow.reads[index]
                for write, made in writers.get(read.buffer, ())
                if not _disjoint(write.blocks, read.blocks)
            )
            key = index, pace, sources
            done = self._known.get(key)
            if done is None:
                done = self._known[key] = self._rows(index, pace, sources)
            # At most two steps from a stage to the next one.
            if done.steps > steps + 2 * len(group):
                return None
            progress.append(done)
            for write in flow.writes[index]:
                writers.setdefault(write.buffer, []).append((write, done))
        return progress

    def _rows(
        self, index: int, pace: tuple[int, int, int], sources: Sequence[tuple[Read, Write, StageRows, int]]
    ) -> StageRows:
        """The rows of a stage that waits for the sources, each with its lag in steps."""
        first, rows_per_step, steps = pace
        stage, lead = self._flow.stages[index], self._flow.stages[first].extent[0]
        height, unit = stage.extent[0], stage.row_step[0]
        done = np.full(steps + 1, height, np.int32)
        for read, write, made, lag in sources:
            # No row is complete before.
            done[:lag] = 0
            np.minimum(done[lag:], read.complete[made.rows[:-lag] * write.factor], out=done[lag:])
        if not sources:
            each = max(1, round(rows_per_step * height / lead))
            np.minimum(np.arange(steps + 1, dtype=np.int32) * each, height, out=done)
        if unit > 1:
            np.copyto(done, done // unit * unit, where=done < height)
        return StageRows(done, int((done < height).sum()))


def joined(progress: Sequence[StageRows]) -> Rows:
    """The finished rows of all stages until all are finished."""
    used = 1 + max(done.steps for done in progress)
    return np.stack([done.rows[:used] for done in progress])


def _waits(flow: Dataflow, write: Write, read: Read, group: range) -> bool:
    """Whether the array would wait for rows of the step before: it has no other work while the vector unit makes them.

    Each step runs the last stage first, so stages after the reader or before the writer would be such work.
    """
    others = (*range(group.start, write.index), *range(read.index + 1, group.stop))
    on_array = read.stage.unit is Unit.MAC
    return write.by_vector_unit and on_array and not any(flow.stages[k].unit is Unit.MAC for k in others)


def _disjoint(a: range, b: range) -> bool:
    return a.stop <= b.start or b.stop <= a.start


def plan_stripes(flow: Dataflow, first: int, stop: int, rows_per_step: int, parts: int = 1) -> Stripes | None:
    """The group of stages `first` to `stop` with `rows_per_step` rows of its first stage in each step."""
    progress = RowProgress(flow).of(first, stop, rows_per_step)
    return None if progress is None else stripes_of(flow, first, stop, progress, parts)


def stripes_of(flow: Dataflow, first: int, stop: int, made: Sequence[StageRows], parts: int = 1) -> Stripes:
    """The group with the buffers that this progress takes."""
    group, progress = range(first, stop), joined(made)
    held = [inside for inside in flow.inside(first, stop).values() if inside.used]
    arrivals, rings = {}, []
    for inside in held:
        ahead = _ahead(flow, group, inside.reads) if inside.loaded else 0
        if ahead:
            arrivals[inside.buffer] = _arrival(group, progress, inside.reads, ahead)
        # Rows stay until their store has ended: one step, or two where the stage runs again at once.
        kept = tuple(2 if _is_alone(flow, group, w) else 1 for w in inside.writes) if inside.stored else ()
        key = ahead, kept, *(made[access.index - first] for access in inside.accesses)
        rows = inside.rings.get(key)
        if rows is None:
            rows = inside.rings[key] = _ring_rows(group, progress, inside, kept, arrivals.get(inside.buffer))
        rings.append((inside, rows))
    return Stripes(first, stop, progress, rings, arrivals, parts)


def _local(inside: Inside, rows: int, parts: int) -> LocalBuffer:
    local = replace(inside.local, rows=rows, guard=inside.guard)
    if parts == 1:
        return local
    width = max(
        stop - start
        for columns in column_parts(inside.accesses[0].stage, parts)
        for start, stop in (columns, *(columns_read(read.stage, read.operand, columns) for read in inside.reads))
    )
    row = max((r.stage.operand_row(r.operand, Rect(0, 1, 0, width)) for r in inside.reads), default=width)
    return replace(local, row=row, part=width)


def column_parts(stage: Stage, parts: int) -> list[tuple[int, int]]:
    """First and last column, exclusive, of each part of a stage's result."""
    width = stage.extent[1]
    cuts = [width * k // parts for k in range(parts + 1)]
    return list(pairwise(cuts))


def columns_read(stage: Stage, operand: int, columns: tuple[int, int]) -> tuple[int, int]:
    """The columns of an operand that some columns of the result read."""
    rect = stage.operand_rect(operand, Rect(0, stage.extent[0], *columns))
    return rect.x0, rect.x1


def _ahead(flow: Dataflow, group: range, reads: list[Read]) -> int:
    """Steps from the end of the one in which rows arrive to the end of the one that reads them."""
    # The only stage of its unit runs again at once: its rows must come one step earlier.
    convs = [s for s in flow.stages[group.start : group.stop] if s.unit is Unit.MAC]
    alone = len(group) == 1 or (len(convs) == 1 and any(r.stage is convs[0] for r in reads))
    return 2 if alone else 1


def _arrival(group: range, progress: Rows, reads: list[Read], ahead: int) -> Rows:
    """Rows that must be loaded by the end of each step: those that the next step reads."""
    need = np.zeros(progress.shape[1], np.int32)
    for read in reads:
        np.maximum(need, read.ends[progress[read.index - group.start]], out=need)
    need[:-ahead] = need[ahead:]
    need[-ahead:] = need[-1]
    return need


def _is_alone(flow: Dataflow, group: range, write: Write) -> bool:
    """Whether the unit that writes has no other work in a step."""
    others = (k for k in group if k != write.index)
    if write.by_vector_unit:
        return not any(w.by_vector_unit for k in others for w in flow.writes[k])
    return not any(flow.stages[k].unit is Unit.MAC for k in others)


def _ring_rows(group: range, progress: Rows, inside: Inside, kept: tuple[int, ...], top: Rows | None) -> int:
    """The most rows that are live at once, rounded so that no unit of rows wraps."""
    height = inside.buffer.height
    if inside.needs_whole:
        return height
    low = np.full(progress.shape[1], height, np.int32)
    for read, shared in zip(inside.reads, inside.shared, strict=True):
        starts = read.starts[progress[read.index - group.start]]
        if shared:
            # One unit writes its rows while the other one still reads those of the step before.
            starts[1:] = starts[:-1]
            starts[0] = read.starts[0]
        np.minimum(low, starts, out=low)
    for write in inside.writes:
        done = progress[write.index - group.start] * write.factor
        top = done if top is None else np.maximum(top, done)
    for write, back in zip(inside.writes, kept, strict=False):
        done = progress[write.index - group.start] * write.factor
        low[:back] = 0
        np.minimum(low[back:], done[:-back], out=low[back:])
    assert top is not None  # something loads or writes each buffer
    rows, unit = max(int((top - low).max()), 1), inside.ring_unit
    return min(height, -(-rows // unit) * unit)


def stripe_cycles(flow: Dataflow, plan: Stripes, work: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Cycles until both units are done; `work` has the array and vector cycles of each stage in each step."""
    count = plan.stop - plan.first
    links = [_links(flow, plan, k) for k in range(count)]
    done, array_free, vector_free = [0] * count, 0, 0
    for step in range(plan.steps):
        before = done.copy()
        for k in reversed(range(count)):
            on_array, on_vector = work[k][step]
            if not on_array and not on_vector:
                continue
            earlier, same = links[k]
            at = 0
            # Without max, whose calls take half of the time of the steps.
            for n in earlier:
                if before[n] > at:
                    at = before[n]
            for n in same:
                if done[n] > at:
                    at = done[n]
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
        earlier |= {w.index for w in flow.writers[read.buffer] if w.index in inside}
    for write in flow.writes[index]:
        writes = [w for w in flow.writers[write.buffer] if w.index in inside]
        for read in flow.readers[write.buffer]:
            if read.index in inside:
                (earlier if on_both_units(read, writes) else same).add(read.index)
    return [n - plan.first for n in earlier], [n - plan.first for n in same]
