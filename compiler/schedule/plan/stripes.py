"""Row progress of consecutive stages that run depth-first, and the ring buffers between them.

In each *step*, the last stage runs first: every stage computes the rows for which its operands were complete at the end
of the step before, or of the one before that where the vector unit makes them and the array has no other work. So an
instruction never waits for the one just before it, and a buffer holds only the rows between its writer and its slowest
reader. Rows that come from DRAM are loaded at the end of the step before they are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Dataflow, Inside, LocalBuffer, Read, Rows, Write
from intloom.compiler.schedule.stages.placement import Buffer, Rect
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit


def of_part(ring: LocalBuffer, parts: int) -> LocalBuffer:
    """A ring for one of so many parts of the image, which are computed one after the other."""
    if parts == 1:
        return ring
    inside = ring.inside
    width = max(
        stop - start
        for columns in column_parts(inside.accesses[0].stage, parts)
        for start, stop in (columns, *(columns_read(read.stage, read.operand, columns) for read in inside.reads))
    )
    row = max((r.stage.operand_row(r.operand, Rect(0, 1, 0, width)) for r in inside.reads), default=width)
    return replace(ring, row=row, part=width)


@dataclass(frozen=True, eq=False)
class StageRows:
    """Finished rows of a stage after each step, until long after its last one."""

    rows: Rows
    steps: int
    """Steps until all rows are finished."""

    @cached_property
    def each(self) -> list[int]:
        """Rows in each step until the last one."""
        rows: list[int] = np.diff(self.rows[: self.steps + 1]).tolist()
        return rows

    @cached_property
    def tasks(self) -> int:
        """Steps with rows."""
        return self.steps - self.each.count(0)

    @cached_property
    def largest(self) -> int:
        """The most rows in a step."""
        return max(self.each)


@dataclass(frozen=True, eq=False)
class Stripes:
    """Stages that run depth-first, and the rings between them."""

    progress: Sequence[StageRows]
    """For each stage, its finished rows after step 0, 1, 2…; in step 0 rows are only loaded."""
    rings: Mapping[Buffer, LocalBuffer]
    parts: int
    """Parts of the image, cut along columns, that are computed one after the other, each in all steps."""
    resident_weights: bool
    """Weights are loaded once; else in every step."""

    @property
    def steps(self) -> int:
        """Number of steps, without step 0."""
        return max(done.steps for done in self.progress)


class RowProgress:
    """Finished rows of stages in stripes, and their rings; groups that begin with the same stage share most of them."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._known: dict[object, StageRows] = {}
        self._equal: dict[tuple[int, bytes], StageRows] = {}
        """One of those with equal rows, so that what follows from them is computed once."""
        self._rings: dict[object, LocalBuffer] = {}
        self._sources = [
            [(r, w) for r in reads for w in flow.writers[r.buffer] if not _disjoint(w.blocks, r.blocks)]
            for reads in flow.reads
        ]
        """For each stage, its operands and who writes them."""
        self._array = [0, *accumulate(stage.unit is Unit.MAC for stage in flow.stages)]
        """Stages of the array before each one."""

    def of(self, first: int, stop: int, rows_per_step: int) -> list[StageRows] | None:
        """Finished rows of each stage after each step; None if the rows that some stage needs are never complete.

        Stages without an operand from the group set the pace, of `rows_per_step` rows of the first stage.
        """
        flow, group = self._flow, range(first, stop)
        steps = -(-flow.stages[first].extent[0] // rows_per_step)
        pace = first, rows_per_step, steps + 2 * max(tuning.LONGEST_GROUP, len(group))
        progress: list[StageRows] = []
        for index in group:
            sources = tuple(
                [
                    (read, write, progress[write.index - first], 2 if self._waits(write, read, group) else 1)
                    for read, write in self._sources[index]
                    if first <= write.index < index
                ]
            )
            # Without sources the pace alone counts, with them only the number of steps.
            key = index, pace[2] if sources else pace, sources
            done = self._known.get(key)
            if done is None:
                rows = self._rows(index, pace, sources)
                done = self._known[key] = self._equal.setdefault((rows.steps, rows.rows.tobytes()), rows)
            # At most two steps from a stage to the next one.
            if done.steps > steps + 2 * len(group):
                return None
            progress.append(done)
        return progress

    def _waits(self, write: Write, read: Read, group: range) -> bool:
        """Whether the array would wait for rows of the step before: it has no other work while they are made.

        Each step runs the last stage first, so stages after the reader or before the writer would be such work.
        """
        if not write.by_vector_unit or read.stage.unit is not Unit.MAC:
            return False
        before, after = (group.start, write.index), (read.index + 1, group.stop)
        return all(self._array[start] == self._array[stop] for start, stop in (before, after))

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

    def rings(self, first: int, stop: int, progress: Sequence[StageRows]) -> list[LocalBuffer]:
        """The rings that this progress takes."""
        flow = self._flow
        array = [k for k in range(first, stop) if flow.stages[k].unit is Unit.MAC]
        vector = [k for k in range(first, stop) if any(w.by_vector_unit for w in flow.writes[k])]
        # The rows of a stage that runs again at once must come one step earlier.
        early = first if stop - first == 1 else array[0] if len(array) == 1 else None
        if not array and _repeats(progress):
            early = first
        rings = []
        for inside in flow.inside(first, stop).values():
            if not inside.used:
                continue
            ahead = 0
            if inside.loaded:
                ahead = 2 if any(r.index == early for r in inside.reads) else 1
            # Rows stay until their store has ended: one step, or two where the stage runs again at once.
            kept: tuple[int, ...] = ()
            if inside.stored:
                kept = tuple(2 if (vector if w.by_vector_unit else array) == [w.index] else 1 for w in inside.writes)
            made = tuple([progress[access.index - first] for access in inside.accesses])
            key = inside, ahead, kept, made
            ring = self._rings.get(key)
            if ring is None:
                ring = self._rings[key] = _ring(inside, ahead, kept, made)
            rings.append(ring)
        return rings

    def plan(
        self, first: int, stop: int, rows_per_step: int, parts: int = 1, *, resident_weights: bool = False
    ) -> Stripes | None:
        """Stages `first` to `stop` with `rows_per_step` rows of the first one in each step."""
        progress = self.of(first, stop, rows_per_step)
        if progress is None:
            return None
        rings = {ring.buffer: of_part(ring, parts) for ring in self.rings(first, stop, progress)}
        return Stripes(progress, rings, parts, resident_weights)


def _repeats(progress: Sequence[StageRows]) -> bool:
    """Whether the first stage is the only one with rows in more steps than it takes until the others have some."""
    first, *others = (np.diff(done.rows) > 0 for done in progress)
    return int((first & ~np.logical_or.reduce(others)).sum()) > len(progress)


def _disjoint(a: range, b: range) -> bool:
    return a.stop <= b.start or b.stop <= a.start


def column_parts(stage: Stage, parts: int) -> list[tuple[int, int]]:
    """First and last column, exclusive, of each part of a stage's result."""
    width = stage.extent[1]
    cuts = [width * k // parts for k in range(parts + 1)]
    return list(pairwise(cuts))


def columns_read(stage: Stage, operand: int, columns: tuple[int, int]) -> tuple[int, int]:
    """The columns of an operand that some columns of the result read."""
    rect = stage.operand_rect(operand, Rect(0, stage.extent[0], *columns))
    return rect.x0, rect.x1


def _arrival(reads: Sequence[Read], made: Sequence[StageRows], ahead: int) -> Rows:
    """Rows that must be loaded by the end of each step: those that the next step reads, or the one after it."""
    need = np.zeros(len(made[0].rows), np.int32)
    for read, done in zip(reads, made, strict=False):
        np.maximum(need, read.ends[done.rows], out=need)
    need[:-ahead] = need[ahead:]
    need[-ahead:] = need[-1]
    return need


def _ring(inside: Inside, ahead: int, kept: tuple[int, ...], made: tuple[StageRows, ...]) -> LocalBuffer:
    """The ring of a buffer for the finished rows of its reads and writes.

    Rows are loaded `ahead` steps before the one that reads them ends; stores of each write end `kept` steps after it.
    """
    arrival = _arrival(inside.reads, made, ahead) if ahead else None
    rows = _ring_rows(inside, kept, made, arrival)
    return LocalBuffer(inside, rows, inside.row, inside.guard, arrival)


def _ring_rows(inside: Inside, kept: tuple[int, ...], made: tuple[StageRows, ...], top: Rows | None) -> int:
    """The most rows that are live at once, rounded so that no unit of rows wraps."""
    height = inside.buffer.height
    if inside.needs_whole:
        return height
    low = np.full(len(made[0].rows), height, np.int32)
    for read, done, shared in zip(inside.reads, made, inside.shared, strict=False):
        starts = read.starts[done.rows]
        if shared:
            # One unit writes its rows while the other one still reads those of the step before.
            starts[1:] = starts[:-1]
            starts[0] = read.starts[0]
        np.minimum(low, starts, out=low)
    written = [done.rows * w.factor for w, done in zip(inside.writes, made[len(inside.reads) :], strict=True)]
    for rows_written in written:
        top = rows_written if top is None else np.maximum(top, rows_written)
    for rows_written, back in zip(written, kept, strict=False):
        low[:back] = 0
        np.minimum(low[back:], rows_written[:-back], out=low[back:])
    assert top is not None  # something loads or writes each buffer
    rows, unit = max(int((top - low).max()), 1), inside.ring_unit
    return min(height, -(-rows // unit) * unit)


def stripe_cycles(flow: Dataflow, first: int, stop: int, work: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Cycles until both units are done; `work` has the array and vector cycles of each stage in each step."""
    count, inside = stop - first, flow.inside(first, stop)
    links = [_links(flow, inside, k, first) for k in range(first, stop)]
    done, array_free, vector_free = [0] * count, 0, 0
    for step in range(len(work[0])):
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


def _links(flow: Dataflow, group: Mapping[Buffer, Inside], index: int, first: int) -> tuple[set[int], set[int]]:
    """The stages of the group for whose step before a stage waits, and those for whose same step it does.

    It waits for the rows that it reads, and for the readers of the rows that it overwrites.
    """
    earlier = {w.index - first for read in flow.reads[index] for w in group[read.buffer].writes}
    same = set[int]()
    for write in flow.writes[index]:
        inside = group[write.buffer]
        for read, shared in zip(inside.reads, inside.shared, strict=True):
            (earlier if shared else same).add(read.index - first)
    return earlier, same
