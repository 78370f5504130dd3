"""A stage: one array or vector operation and the copies of its result, executed tile by tile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from intloom.compiler.schedule.copying import Copy, emit_copy
from intloom.compiler.schedule.geometry import Rect, View, clip
from intloom.compiler.schedule.tile_context import Chunk, TileContext
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
