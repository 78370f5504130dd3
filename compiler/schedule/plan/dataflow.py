"""Which blocks of which buffers the stages read and write, and how rows of results depend on rows of operands."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.schedule.stages.placement import Buffer, Rect, Tile, runs_of
from intloom.compiler.schedule.stages.stage import Stage
from intloom.compiler.schedule.stages.stage_list import Stages
from intloom.hw.spec.isa import Unit

Rows = NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Access:
    """Blocks of a buffer that a stage reads or writes."""

    index: int
    """Position of the stage."""
    stage: Stage
    buffer: Buffer
    blocks: range

    @cached_property
    def words(self) -> int:
        """Words of these blocks."""
        return len(self.blocks) * self.buffer.plane


@dataclass(frozen=True, eq=False, kw_only=True)
class Read(Access):
    """An operand of a stage."""

    operand: int

    @cached_property
    def windows(self) -> tuple[Rows, Rows]:
        """The first operand row and the end of the rows that each row of the result reads, for all rows."""
        height, width = self.stage.extent
        rects = [self.stage.operand_rect(self.operand, Rect(y, y + 1, 0, width)) for y in range(height)]
        low, high = np.array([r.y0 for r in rects], np.int32), np.array([r.y1 for r in rects], np.int32)
        # Monotone also for the phases of a transposed convolution.
        return np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)

    @cached_property
    def complete(self) -> Rows:
        """The rows of the result whose operand rows are there, for each number of operand rows."""
        return np.searchsorted(self.windows[1], np.arange(self.buffer.height + 1), side="right").astype(np.int32)

    @cached_property
    def starts(self) -> Rows:
        """The first operand row that the rest reads, for each number of finished rows."""
        return np.append(self.windows[0], self.buffer.height).astype(np.int32)

    @cached_property
    def ends(self) -> Rows:
        """The end of the operand rows that each number of finished rows has read."""
        return np.insert(self.windows[1], 0, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Write(Access):
    """A result or a copy of a stage; each row of the result makes `factor` rows of the buffer."""

    factor: int
    by_vector_unit: bool


@dataclass(frozen=True, eq=False)
class Inside:
    """What a group of stages reads and writes of a buffer."""

    buffer: Buffer
    reads: list[Read]
    writes: list[Write]
    later: frozenset[int]
    """Blocks that stages after the group read."""
    needed: frozenset[int]
    """Blocks that any stage or the host reads in DRAM."""
    pinned: bool
    """All that is written must reach DRAM."""

    @property
    def accesses(self) -> list[Access]:
        """All reads and writes."""
        return [*self.reads, *self.writes]

    @cached_property
    def read(self) -> frozenset[int]:
        """Blocks that are read."""
        return frozenset(b for r in self.reads for b in r.blocks)

    @cached_property
    def written(self) -> frozenset[int]:
        """Blocks that are written."""
        return frozenset(b for w in self.writes for b in w.blocks)

    @cached_property
    def held(self) -> range:
        """The blocks from the first to the last that is read or written."""
        blocks = self.read | self.written
        return range(min(blocks), max(blocks) + 1)

    @cached_property
    def row(self) -> int:
        """Words from one row to the next in the scratchpad."""
        width = self.buffer.columns
        return max((r.stage.operand_row(r.operand, Rect(0, 1, 0, width)) for r in self.reads), default=width)

    @cached_property
    def stored(self) -> frozenset[int]:
        """Blocks that must reach DRAM: the host or a later stage reads them."""
        return self.written if self.pinned else self.written & self.later

    @cached_property
    def loaded(self) -> frozenset[int]:
        """Blocks that come from DRAM."""
        return self.read - self.written

    @cached_property
    def used(self) -> bool:
        """Whether anything reads what the group reads or writes of it."""
        return bool(self.reads) or not self.needed.isdisjoint(self.written)

    @cached_property
    def moved(self) -> int:
        """Words that move between DRAM and the scratchpad where the group holds the buffer."""
        return (len(self.loaded) + len(self.stored)) * self.buffer.plane if self.used else 0

    @property
    def saved(self) -> int:
        """Words of traffic that the scratchpad saves by holding the buffer."""
        return sum(r.words for r in self.reads) + self.buffer.plane * (len(self.written) - len(self.stored))

    @cached_property
    def guard(self) -> int:
        """Words before and after the buffer's ring."""
        return max((r.stage.operand_guard(r.operand) for r in self.reads), default=0)

    @cached_property
    def needs_whole(self) -> bool:
        """Whether no ring can hold the buffer."""
        return any(r.stage.needs_whole(r.operand) for r in self.reads)

    @cached_property
    def ring_unit(self) -> int:
        """Rows that must not wrap in a ring."""
        read = [max(1, r.stage.ring_rows(r.operand)) for r in self.reads]
        return lcm(*read, *(w.factor * w.stage.row_step[0] for w in self.writes))

    @cached_property
    def shared(self) -> tuple[bool, ...]:
        """For each read, whether a ring holds a step more, so that both units work at the same time."""
        return tuple(on_both_units(r, self.writes) for r in self.reads)


@dataclass(frozen=True, eq=False)
class LocalBuffer:
    """What some stages use of a buffer, in the scratchpad: all rows, or the last `rows` rows in a ring."""

    inside: Inside
    rows: int
    row: int
    """Words from one row to the next."""
    guard: int = 0
    """Words before and after a packed image, since the array also reads the neighboring word."""
    arrival: Rows | None = None
    """In stripes, the rows that are loaded from DRAM after each step; None if none are."""
    part: int = 0
    """Columns of the largest part of the image, where stripes take part by part; 0: all columns."""
    slots: range = range(0)
    """The slots in which it is there."""
    optional: bool = False
    """Whether these slots can do without it."""
    address: int = -1
    """First scratchpad word; -1 until the buffers of all slots are chosen."""

    @property
    def buffer(self) -> Buffer:
        """The buffer."""
        return self.inside.buffer

    @cached_property
    def loaded(self) -> list[tuple[int, int]]:
        """Blocks that come from DRAM, as (first, count)."""
        return runs_of(self.inside.loaded)

    @property
    def first_load(self) -> int:
        """Words in a column of the rows that are loaded before the first step of stripes."""
        return 0 if self.arrival is None else int(self.arrival[0]) * len(self.inside.loaded)

    @property
    def whole(self) -> bool:
        """Whether all rows are in the scratchpad."""
        return self.rows == self.buffer.height and not self.part

    @cached_property
    def words(self) -> int:
        """Scratchpad words."""
        return len(self.inside.held) * self.rows * self.row + 2 * self.guard

    @property
    def density(self) -> float:
        """Words of traffic that it saves, for each word and slot."""
        return self.inside.saved / (self.words * len(self.slots))

    def tile(self, block: int, x0: int) -> Tile:
        """The tile that starts at a block of the buffer; of a part of the image, at its first column."""
        plane = self.rows * self.row
        base = self.address + self.guard + (block - self.inside.held.start) * plane
        return Tile(base, plane, self.row, 0, x0 if self.part else 0, 0 if self.whole else self.rows)

    def pieces(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Rows `low` to `high` (half-open), cut where the ring wraps."""
        while low < high:
            stop = min(high, (low // self.rows + 1) * self.rows)
            yield low, stop
            low = stop


def on_both_units(read: Read, writes: Sequence[Write]) -> bool:
    """Whether a ring holds a step more, so that both units work at the same time.

    What the array reads has such a step if a stage makes it that may take as long as the array.
    """
    if read.stage.unit is Unit.VEC:
        return not all(w.by_vector_unit for w in writes)
    return any(w.stage.overlaps_array for w in writes)


def _reads_of(index: int, stage: Stage) -> list[Read]:
    return [
        Read(index=index, stage=stage, buffer=v.buffer, blocks=v.block_range, operand=k)
        for k, v in enumerate(stage.operands)
    ]


def _writes_of(index: int, stage: Stage) -> list[Write]:
    rows = [(1, stage.unit is Unit.VEC)] if stage.keep_result else []
    rows += [(copy.motion.factors[0], True) for copy in stage.copies]
    return [
        Write(index=index, stage=stage, buffer=buffer, blocks=blocks, factor=factor, by_vector_unit=vector)
        for (buffer, blocks), (factor, vector) in zip(stage.written, rows, strict=True)
    ]


class Dataflow:
    """Reads and writes of all stages, by stage and by buffer."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages.stages
        self.needed = stages.needed
        self.pinned = stages.pinned
        self.reads = [_reads_of(k, stage) for k, stage in enumerate(self.stages)]
        self.writes = [_writes_of(k, stage) for k, stage in enumerate(self.stages)]
        self.readers: dict[Buffer, list[Read]] = defaultdict(list)
        self.writers: dict[Buffer, list[Write]] = defaultdict(list)
        self._users: dict[Buffer, list[int]] = defaultdict(list)
        """The stages that read or write each buffer, in order; a stage is there once for each access."""
        self._inside: dict[tuple[int, int], Mapping[Buffer, Inside]] = {}
        self._parts: dict[tuple[Buffer, int, int], Inside] = {}
        for read in (r for reads in self.reads for r in reads):
            self.readers[read.buffer].append(read)
        for write in (w for writes in self.writes for w in writes):
            self.writers[write.buffer].append(write)
        for index in range(len(self.stages)):
            for access in self.accesses(index):
                self._users[access.buffer].append(index)

    def accesses(self, index: int) -> list[Access]:
        """All reads and writes of a stage."""
        return [*self.reads[index], *self.writes[index]]

    def inside(self, first: int, stop: int) -> Mapping[Buffer, Inside]:
        """What stages `first` to `stop` read and write of each buffer, in the order of first use."""
        inside = self._inside.get((first, stop))
        if inside is None:
            # Most is as in the group without the last stage, for which the search for cuts asks just before.
            shorter = self._inside.get((first, stop - 1))
            new = range(first, stop) if shorter is None else (stop - 1,)
            parts = {a.buffer: self._part(a.buffer, first, stop) for k in new for a in self.accesses(k)}
            inside = self._inside[first, stop] = {**(shorter or {}), **parts}
        return inside

    def _part(self, buffer: Buffer, first: int, stop: int) -> Inside:
        users = self._users[buffer]
        # Groups with the same accesses of a buffer share what follows from them.
        key = buffer, bisect_left(users, first), bisect_left(users, stop)
        if key not in self._parts:
            self._parts[key] = self._between(buffer, first, stop)
        return self._parts[key]

    def _between(self, buffer: Buffer, first: int, stop: int) -> Inside:
        return Inside(
            buffer,
            [r for r in self.readers[buffer] if first <= r.index < stop],
            [w for w in self.writers[buffer] if first <= w.index < stop],
            frozenset(b for r in self.readers[buffer] if r.index >= stop for b in r.blocks),
            self.needed.get(buffer, frozenset()),
            buffer in self.pinned,
        )

    def whole(self, buffer: Buffer) -> Inside:
        """What all stages read and write of a buffer."""
        return self._part(buffer, 0, len(self.stages))

    def cost_keys(self, reach: int) -> tuple[int, ...]:
        """A number for each stage; groups of fewer than `reach` stages with the same numbers cost the same.

        Two stages have the same number if they cost the same and so do the stages near them with whom they share
        buffers and tables.
        """
        numbers: dict[object, int] = {}
        last_use: dict[bytes, int] = {}
        keys = []
        for index, stage in enumerate(self.stages):
            tables = stage.vector_tables
            key = (
                stage.cost_key,
                tuple(self._links(access, reach) for access in self.accesses(index)),
                tuple(_distance(w, index, reach) for v in stage.weight_operands for w in self.writers[v.buffer]),
                tuple(min(index - last_use.get(table, -reach), reach) for table in tables),
            )
            last_use.update(dict.fromkeys(tables, index))
            keys.append(numbers.setdefault(key, len(numbers)))
        return tuple(keys)

    def _links(self, access: Access, reach: int) -> object:
        """Near accesses of the same buffer, and what must be stored of a result; blocks count from the first one."""
        index, first, buffer = access.index, access.blocks.start, access.buffer
        near = [
            (isinstance(a, Write), a.index - index, a.blocks.start - first, a.blocks.stop - first)
            for a in (*self.readers[buffer], *self.writers[buffer])
            if abs(a.index - index) < reach
        ]
        if isinstance(access, Read):
            return tuple(near)
        later = {b for r in self.readers[buffer] if r.index - index >= reach for b in r.blocks}
        needed = self.needed.get(buffer, frozenset())
        stored = [(b in later, b in needed) for b in access.blocks]
        return tuple(near), tuple(stored), buffer in self.pinned


def _distance(access: Access, index: int, reach: int) -> int:
    """Stages from an access to a stage, at most `reach`."""
    return min(abs(index - access.index), reach)
