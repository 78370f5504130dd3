"""A stage: one array or vector operation and the copies of its result, executed tile by tile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from intloom.compiler.schedule.copying import Copy, emit_copy
from intloom.compiler.schedule.geometry import Rect, View, clip
from intloom.compiler.schedule.tile_context import Chunk, TileContext
from intloom.hw.spec import timing
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The graph node that a stage stands for."""

    name: str
    op: str
    origin: tuple[str, ...]
    macs: int = 0


@dataclass(eq=False)
class Stage(ABC):
    """What all stages share.

    `out` is where the result belongs; `keep_result` says that it must reach it (else only the copies matter).
    """

    params: HardwareParams
    origin: Origin
    operands: tuple[View, ...]
    out: View
    copies: list[Copy] = field(default_factory=list)
    keep_result: bool = True
    index: int = -1

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """The unit that makes the result; the vector unit makes all copies."""

    @property
    def overlaps_array(self) -> bool:
        """Whether the vector unit computes the stage for as long as the array may compute others."""
        return False

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of the result, which tiles cut up."""
        return self.out.buffer.height, self.out.buffer.width

    @property
    def row_step(self) -> tuple[int, int]:
        """Tiles must start at multiples of these rows and columns."""
        return 1, 1

    @property
    def stripe_rows(self) -> int:
        """Rows of which a task in stripes should have a multiple."""
        return self.row_step[0]

    @property
    def follows_chunks(self) -> bool:
        """Whether chunks of at most the size of its producer's let it run in parallel with the producer."""
        return False

    @property
    def writes_only_result(self) -> bool:
        """Whether it writes no word beyond its result, so that the result may lie among other tensors."""
        return True

    @property
    def vector_tables(self) -> list[bytes]:
        """Tables of the vector unit that a tile uses, in order of use."""
        return [c.table for c in self.copies if c.table is not None]

    @abstractmethod
    def chunk_sizes(self) -> Sequence[int]:
        """Numbers of output blocks that a chunk may have, largest first."""

    @abstractmethod
    def layout(self, size: int) -> list[Chunk]:
        """The stage cut into chunks of `size` blocks, without weights."""

    def chunks(self, size: int, heights: Sequence[int]) -> list[Chunk]:
        """The same with weights, which are added to the constant image, for tasks of these heights."""
        return self.layout(size)

    @abstractmethod
    def weight_words(self, size: int) -> int:
        """Weight memory that the largest chunk of `size` blocks takes."""

    def constants(self, chunk: Chunk) -> bytes:
        """What a chunk has in the scratchpad beside tables: weights of the vector unit."""
        return b""

    def constant_words(self, size: int) -> int:
        """Words of the constants of a chunk of `size` blocks."""
        return 0

    @abstractmethod
    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The part of an operand that a tile reads."""

    @abstractmethod
    def compute(self, context: TileContext) -> None:
        """Emit the instructions that make a tile's result."""

    def tile_cycles(self, rect: Rect, blocks: int) -> int:
        """Cycles for `blocks` words of each pixel of a tile, with which the tile's copies overlap."""
        return 0

    def array_cycles(self, rows: int, heights: Sequence[int], *, new_table: bool) -> int:
        """Cycles of the array for `rows` rows, of a stage whose tasks have these heights; of one task if none."""
        return 0

    @property
    def depends_on_heights(self) -> bool:
        """Whether the weights, and so the cycles of the array, depend on the heights of all tasks."""
        return False

    def own_cycles(self, rect: Rect) -> int:
        """Cycles of the vector unit for a rectangle of the result, without copies."""
        return 0

    def vector_cycles(self, rows: int) -> int:
        """Cycles of the vector unit for `rows` rows: its own instruction and the copies."""
        slices, width = self.params.vector_slices, self.extent[1]
        cycles = self.own_cycles(Rect(0, rows, 0, width))
        for copy in self.copies:
            blocks = copy.target_blocks((copy.start, copy.stop))[1]
            words = rows * copy.factors[0] * width * copy.factors[1] * blocks
            cycles += words * slices + timing.VECTOR_END
        return cycles + len(self.vector_tables) * (TABLE_BYTES + timing.VECTOR_TABLE_LOAD)

    def copy_cycles(self, rect: Rect, chunk: Chunk) -> int:
        """Cycles of the vector unit for a tile's copies; of several tables each is loaded for every tile."""
        if not self.copies and not self.vector_tables:
            return 0
        made = self.result_channels(chunk)
        words = sum(c.target_rect(rect).area * c.target_blocks(made)[1] for c in self.copies)
        tables = len(set(self.vector_tables))
        return words * self.params.vector_slices + (tables * TABLE_BYTES if tables > 1 else 0)

    def operand_guard(self, operand: int) -> int:
        """Words before and after a loaded operand that the array may read."""
        return 0

    def ring_rows(self, operand: int) -> int:
        """Operand rows for each row of the result that must not wrap in a ring.

        0: instructions wrap the operand themselves, or read it row by row.
        """
        return 1

    def needs_whole(self, operand: int) -> bool:
        """Whether an instruction reads windows without a ring: the operand must be whole."""
        return False

    def operand_blocks(self, operand: int, chunk: Chunk) -> tuple[int, int]:
        """First block and number of blocks of an operand that a chunk reads."""
        return (chunk.in_first, chunk.in_blocks) if operand == 0 else self.result_blocks(chunk)

    def result_blocks(self, chunk: Chunk) -> tuple[int, int]:
        """First block and number of blocks of the result that a chunk makes and the tensor has."""
        return chunk.out_first, min(chunk.out_blocks, self.out.blocks - chunk.out_first)

    @property
    def weight_operands(self) -> tuple[View, ...]:
        """Tensors that are loaded from DRAM to the weight memory."""
        return ()

    def temporary_words(self, rect: Rect, chunk: Chunk) -> int:
        """Scratch words that a tile needs besides operands, result and copies."""
        return 0

    def operand_row(self, operand: int, rect: Rect) -> int:
        """Words from one row of a loaded rectangle of an operand to the next."""
        return rect.width

    def result_row(self, rect: Rect) -> int:
        """Words from one row of a tile's result to the next."""
        return rect.width

    @property
    def in_place(self) -> bool:
        """Whether the result is operand 0 itself."""
        return False

    def operand_clip(self, operand: int, rect: Rect) -> Rect:
        """A rectangle of an operand clipped to its tensor."""
        buffer = self.operands[operand].buffer
        return clip(rect, buffer.height, buffer.width)

    def emit_copies(self, context: TileContext) -> None:
        """Emit the copies of a finished tile."""
        for copy, target in zip(self.copies, context.copies, strict=True):
            if target is not None:
                emit_copy(context, copy, context.result, target, self.result_channels(context.chunk))

    def result_channels(self, chunk: Chunk) -> tuple[int, int]:
        """The half-open range of the result's channels that a chunk makes."""
        first = chunk.out_first * self.params.rows
        return first, min(first + chunk.out_blocks * self.params.rows, self.out.channels)
