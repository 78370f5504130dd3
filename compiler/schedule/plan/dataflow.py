"""Which blocks of which buffers the stages read and write, and how rows of results depend on rows of operands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.schedule.stages.placement import Buffer, Rect
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit

Rows = NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Access:
    """Blocks of a buffer that a stage reads or writes."""

    stage: Stage
    buffer: Buffer
    blocks: range

    @property
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

    @property
    def guard(self) -> int:
        """Words around the operand that the array may touch."""
        return self.stage.operand_guard(self.operand)

    @property
    def in_order(self) -> bool:
        """Whether an instruction reads windows without a ring: the operand must be whole."""
        return self.stage.needs_whole(self.operand)

    @property
    def row(self) -> int:
        """Words from one row of the operand to the next that suit the stage."""
        return self.stage.operand_row(self.operand, Rect(0, 1, 0, self.buffer.columns))

    @property
    def unit(self) -> int:
        """Rows of the operand that an instruction reads together, which must not wrap in a ring."""
        return max(1, self.stage.ring_rows(self.operand))


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

    @property
    def row(self) -> int:
        """Words from one row to the next in the scratchpad."""
        return max((r.row for r in self.reads), default=self.buffer.columns)

    @property
    def stored(self) -> frozenset[int]:
        """Blocks that must reach DRAM: the host or a later stage reads them."""
        return self.written if self.buffer.pinned else self.written & self.later

    @cached_property
    def loaded(self) -> frozenset[int]:
        """Blocks that come from DRAM."""
        return self.read - self.written


def _writes_of(stage: Stage) -> list[Write]:
    found = []
    if stage.keep_result:
        vector, blocks = stage.unit is Unit.VEC, stage.out.block_range
        found.append(Write(stage=stage, buffer=stage.out.buffer, blocks=blocks, factor=1, by_vector_unit=vector))
    for copy in stage.copies:
        first, count = copy.target_blocks((copy.start, copy.stop))
        blocks = range(first, first + count)
        factor = copy.factors[0]
        found.append(Write(stage=stage, buffer=copy.target.buffer, blocks=blocks, factor=factor, by_vector_unit=True))
    return found


class Dataflow:
    """Reads and writes of all stages, by stage and by buffer."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages
        self.reads: list[list[Read]] = []
        self.writes: list[list[Write]] = []
        self.readers: dict[Buffer, list[Read]] = defaultdict(list)
        self.writers: dict[Buffer, list[Write]] = defaultdict(list)
        self._inside: dict[tuple[int, int], list[Inside]] = {}
        for stage in stages:
            self.reads.append(
                [
                    Read(stage=stage, buffer=v.buffer, blocks=v.block_range, operand=k)
                    for k, v in enumerate(stage.operands)
                ]
            )
            self.writes.append(_writes_of(stage))
            for read in self.reads[-1]:
                self.readers[read.buffer].append(read)
            for write in self.writes[-1]:
                self.writers[write.buffer].append(write)

    def accesses(self, index: int) -> list[Access]:
        """All reads and writes of a stage."""
        return [*self.reads[index], *self.writes[index]]

    def inside(self, first: int, stop: int) -> Sequence[Inside]:
        """What stages `first` to `stop` read and write, for each buffer, in the order of first use."""
        # The search for cuts asks for each group several times.
        found = self._inside.get((first, stop))
        if found is None:
            buffers = dict.fromkeys(a.buffer for k in range(first, stop) for a in self.accesses(k))
            found = self._inside[first, stop] = [self._part(buffer, first, stop) for buffer in buffers]
        return found

    def _part(self, buffer: Buffer, first: int, stop: int) -> Inside:
        return Inside(
            buffer,
            [r for r in self.readers[buffer] if first <= r.stage.index < stop],
            [w for w in self.writers[buffer] if first <= w.stage.index < stop],
            frozenset(b for r in self.readers[buffer] if r.stage.index >= stop for b in r.blocks),
        )

    def whole(self, buffer: Buffer) -> Inside:
        """What all stages read and write of a buffer."""
        return Inside(buffer, self.readers[buffer], self.writers[buffer], frozenset())
