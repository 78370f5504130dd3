"""A stage: one array or vector operation and the copies of its result, executed tile by tile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.compiler.schedule.stages.placement import Buffer, Rect, Tile, View, clip
from intloom.hw.spec import timing
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import Kind, Unit
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True)
class LoadPart:
    """Words that one LOAD brings: the tuples count words of a run, runs of a plane, and planes."""

    source: Buffer | bytes
    """A tensor in DRAM, or constants."""
    first: int
    """First word in the source."""
    local: int
    """First word in what is loaded: the chunk's weights, a table, constants."""
    counts: tuple[int, int, int]
    source_steps: tuple[int, int] = (0, 0)
    local_steps: tuple[int, int] = (0, 0)
    coded: int = 0
    """Words in DRAM if they are coded, else 0."""

    def fields(self, source: int, address: int, ring: int) -> dict[str, int]:
        """Fields of the LOAD from the source at `source` to `address` and on, in a memory of `ring` words."""
        return {
            "dram": source + self.first,
            "local": (address + self.local) % ring,
            **dict(zip(("n0", "n1", "n2"), self.counts, strict=True)),
            **dict(zip(("dram_s1", "dram_s2"), self.source_steps, strict=True)),
            **dict(zip(("local_s1", "local_s2"), self.local_steps, strict=True)),
            "coded": self.coded,
        }


@dataclass(frozen=True)
class Chunk:
    """A group of a stage's output blocks (in words), and the input blocks that it reads.

    Input blocks count from the operand's first block. Chunks of the same output blocks, `first` to `last`, each add the
    products of other input blocks to the sums; the result is the last one's.
    """

    index: int
    out_first: int
    out_blocks: int
    in_first: int
    in_blocks: int
    first: bool = True
    last: bool = True


@dataclass
class LoadedTables:
    """The tables that the array and the vector unit hold at this point of the stream."""

    array: bytes | None = None
    vector: bytes | None = None
    exponentials: list[bytes] | None = None


@dataclass(frozen=True, eq=False)
class TileContext:
    """Where a tile's pieces lie while it is worked on."""

    emit: Callable[..., object]
    """Adds an instruction of this tile: its kind, a note on its purpose if it needs one, and its fields."""
    rect: Rect
    chunk: Chunk
    operands: list[Tile]
    result: Tile
    copies: list[Tile | None]
    temporary: int
    weights: int
    constants: int
    tables: dict[bytes, int]
    held: LoadedTables

    def use_exponentials(self, parts: list[bytes]) -> None:
        """Bring exponentials into the vector unit, byte by byte from the lowest on."""
        if self.held.exponentials == parts:
            return
        for number, part in enumerate(parts):
            self.emit(Kind.VEXP, "exponentials", a_base=self.tables[part], part=number)
        self.held.exponentials = parts

    def use_table(self, table: bytes | None) -> int:
        """Bring `table` into the vector unit; gives the value of the instruction's table field."""
        if table is None:
            return 0
        if self.held.vector != table:
            self.emit(Kind.VTABLE, "table", a_base=self.tables[table])
            self.held.vector = table
        return 1


class Motion(NamedTuple):
    """What becomes of channels from `start` on: each byte passes `table`, and the image is enlarged by `factors`."""

    start: int = 0
    table: bytes | None = None
    factors: tuple[int, int] = (1, 1)

    def then(self, other: Motion) -> Motion:
        """The motion, and another one of its result."""
        factors = (self.factors[0] * other.factors[0], self.factors[1] * other.factors[1])
        return Motion(self.start + other.start, compose(self.table, other.table), factors)


def compose(first: bytes | None, second: bytes | None) -> bytes | None:
    """The table that applies `first`, then `second`."""
    if first is None or second is None:
        return second if first is None else first
    return bytes(np.frombuffer(second, np.uint8)[np.frombuffer(first, np.uint8)])


@dataclass(frozen=True)
class Copy:
    """Channels of a result that go to `target`, as many as it has."""

    motion: Motion
    target: View
    node: str
    """The graph node that asked for the copy."""

    @property
    def written(self) -> range:
        """The target's blocks that the copy of all chunks writes."""
        first, count = self.target_blocks((0, self.motion.start + self.target.channels))
        return range(first, first + count)

    def channels(self, made: tuple[int, int]) -> tuple[int, int]:
        """The result channels of a chunk (half-open range `made`) that are copied; empty if start >= stop."""
        return max(self.motion.start, made[0]), min(self.motion.start + self.target.channels, made[1])

    def target_blocks(self, made: tuple[int, int]) -> tuple[int, int]:
        """First block (of the target's buffer) and number of blocks that the copy of a chunk writes."""
        start, stop = self.channels(made)
        if start >= stop:
            return 0, 0
        rows = self.target.buffer.params.rows
        shift = self.target.channel - self.motion.start
        first = (start + shift) // rows
        return first, -(-(stop + shift) // rows) - first

    def target_rect(self, rect: Rect) -> Rect:
        """Where a tile's copy lies in the target."""
        return rect.scaled(*self.motion.factors)


def segments(start: int, stop: int, to: int, rows: int) -> list[tuple[int, int, int, int, int]]:
    """How channels `start` to `stop` move to channels from `to` on, in words of `rows` bytes.

    Each segment has blocks whose bytes move alike: source and target block, number of blocks, first byte, bytes.
    """
    merged: list[tuple[int, int, int, int, int]] = []
    channel = start
    while channel < stop:
        # A piece ends where the source word or the target word ends.
        source, (target, first) = channel // rows, divmod(to + channel - start, rows)
        width = min(rows - channel % rows, rows - first, stop - channel)
        channel += width
        # Channels that move to other bytes of a word alternate between two byte ranges, so a piece may continue the
        # last segment or the one before it.
        for i in range(len(merged) - 1, max(len(merged) - 3, -1), -1):
            a, b, count, *part = merged[i]
            if (a + count, b + count, part) == (source, target, [first, width]):
                merged[i] = (a, b, count + 1, first, width)
                break
        else:
            merged.append((source, target, 1, first, width))
    return merged


@dataclass(frozen=True, eq=False)
class Stage(ABC):
    """What all stages share.

    `out` is where the result belongs; `keep_result` says that it must reach it (else only the copies matter).
    """

    params: HardwareParams
    name: str
    """Of the graph node that it stands for."""
    operands: tuple[View, ...]
    out: View
    copies: tuple[Copy, ...] = ()
    keep_result: bool = True

    unit: ClassVar[Unit]
    """The unit that makes the result; the vector unit makes all copies."""
    overlaps_array: ClassVar[bool] = False
    """Whether the vector unit computes the stage for as long as the array may compute others."""
    follows_chunks: ClassVar[bool] = False
    """Whether chunks of at most the size of its producer's let it run in parallel with the producer."""
    in_place: ClassVar[bool] = False
    """Whether the result is operand 0 itself."""

    @property
    def cost_key(self) -> object:
        """Stages with the same key have the same cost, extents and needs of memory; contents do not matter."""
        tables = self.vector_tables
        return (
            type(self),
            self.keep_result,
            *(view.shape for view in (*self.operands, self.out)),
            *((c.motion.start, c.motion.factors, c.target.shape, c.target.lane) for c in self.copies),
            # Equal tables are loaded once.
            *map(tables.index, tables),
            self.geometry,
        )

    @property
    def geometry(self) -> object:
        """What else the cost depends on."""
        return None

    @property
    def overlaps_producer(self) -> bool:
        """Whether it works for long, chunk by chunk, in parallel with the convolution that makes its operand."""
        return self.overlaps_array and self.follows_chunks

    @property
    def overlaps_bands(self) -> bool:
        """The same band by band, since it needs all channels."""
        return self.overlaps_array and not self.follows_chunks

    def takes_turns(self, other: Stage) -> bool:
        """Whether this stage and the one that it reads or that reads it work at the same time only in bands."""
        return self.unit is not other.unit and (self.overlaps_bands or other.overlaps_bands)

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of the result, which tiles cut up."""
        return self.out.buffer.height, self.out.buffer.width

    @property
    def row_step(self) -> tuple[int, int]:
        """Tiles must start at multiples of these rows and columns."""
        return 1, 1

    @property
    def most_pixels(self) -> int | None:
        """Pixels that a tile may have where chunks continue each other's sums, so that they follow each other."""
        return None

    @property
    def writes_only_result(self) -> bool:
        """Whether it writes no word beyond its result, so that the result may lie among other tensors."""
        return True

    @property
    def vector_tables(self) -> list[bytes]:
        """Tables of the vector unit that a tile uses, in order of use."""
        return [c.motion.table for c in self.copies if c.motion.table is not None]

    @property
    def reloaded_tables(self) -> list[bytes]:
        """Those that each tile loads, where stages take turns."""
        return self.vector_tables

    @abstractmethod
    def chunk_sizes(self) -> Sequence[int]:
        """Numbers of output blocks that a chunk may have, largest first."""

    @abstractmethod
    def layout(self, size: int) -> list[Chunk]:
        """The stage cut into chunks of `size` blocks."""

    @abstractmethod
    def compute(self, context: TileContext) -> None:
        """Emit the instructions that make a tile's result."""

    def weights(self, chunk: Chunk) -> bytes | tuple[LoadPart, ...]:
        """Constants in the weight memory, which may be loaded in pieces, or parts, which are loaded all at once."""
        return b""

    def chunk_words(self, chunk: Chunk) -> int:
        """Words of a chunk's weights."""
        return 0

    def weight_words(self, size: int) -> int:
        """Weight memory that the largest chunk of `size` blocks takes."""
        return 0

    def constants(self, chunk: Chunk) -> bytes:
        """What a chunk has in the scratchpad beside tables: weights of the vector unit."""
        return b""

    def constant_words(self, size: int) -> int:
        """Words of the constants of a chunk of `size` blocks."""
        return 0

    @abstractmethod
    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The part of an operand that a tile reads."""

    def tile_cycles(self, rect: Rect, blocks: int) -> int:
        """Cycles for `blocks` words of each pixel of a tile, with which the tile's copies overlap."""
        return 0

    def array_cycles(self, rows: int, *, new_table: bool) -> int:
        """Cycles of the array for `rows` rows."""
        return 0

    def own_cycles(self, rect: Rect) -> int:
        """Cycles of the vector unit for a rectangle of the result, without copies."""
        return 0

    def vector_cycles(self, rows: int) -> int:
        """Cycles of the vector unit for `rows` rows: its own instruction and the copies."""
        slices, width = self.params.vector_slices, self.extent[1]
        cycles = self.own_cycles(Rect(0, rows, 0, width))
        for copy in self.copies:
            words = copy.target_rect(Rect(0, rows, 0, width)).area * len(copy.written)
            cycles += words * slices + timing.VECTOR_END
        return cycles + len(self.reloaded_tables) * (TABLE_BYTES + timing.VECTOR_TABLE_LOAD)

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

    @property
    def written(self) -> list[tuple[Buffer, range]]:
        """Buffers and their blocks that the stage writes: the result, if it is kept, and the copies."""
        result = [(self.out.buffer, self.out.block_range)] if self.keep_result else []
        return result + [(c.target.buffer, c.written) for c in self.copies]

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

    def operand_runs(self, operand: int, rect: Rect) -> tuple[int, int]:
        """Runs of a loaded rectangle's row that become rows, and pixels from one to the next; (1, 0): it is whole."""
        return 1, 0

    def result_row(self, rect: Rect) -> int:
        """Words from one row of a tile's result to the next."""
        return rect.width

    def operand_clip(self, operand: int, rect: Rect) -> Rect:
        """A rectangle of an operand clipped to its tensor."""
        buffer = self.operands[operand].buffer
        return clip(rect, buffer.height, buffer.width)

    def padded_fields(self, source: Tile, name: str, y: int, x: int) -> dict[str, int]:
        """Fields of operand 0, in the tile `source`, for windows from row y and column x on, which may be padding."""
        buffer, ring = self.operands[0].buffer, source.ring * source.row
        return {
            # Negative in the padding; the hardware adds addresses modulo the address space, or modulo the ring.
            f"{name}_row_off": (y - source.y0) * source.row % (ring or ADDRESS_SPACE),
            f"{name}_ring": ring,
            f"{name}_row": source.row,
            "in_h": buffer.height,
            "in_w": buffer.width,
            "iy0": y,
            "ix0": x,
        }

    def emit_copies(self, context: TileContext) -> None:
        """Emit the copies of a finished tile."""
        for copy, target in zip(self.copies, context.copies, strict=True):
            if target is not None:
                self.emit_copy(context, copy, context.result, target, self.result_channels(context.chunk))

    def emit_copy(self, context: TileContext, copy: Copy, source: Tile, target: Tile, made: tuple[int, int]) -> None:
        """Copy channels `made` of a tile; block 0 of `source` holds channel made[0], of `target` the first written."""
        start, stop = copy.channels(made)
        rect, rows = context.rect, self.params.rows
        to = copy.target.channel + start - copy.motion.start - copy.target_blocks(made)[0] * rows
        first, out, factors = start - made[0], copy.target_rect(rect), copy.motion.factors
        use = context.use_table(copy.motion.table)
        for block, to_block, count, first_byte, width in segments(first, stop - made[0], to, rows):
            context.emit(
                Kind.VCOPY,
                f"copy for {copy.node}" if copy.node != self.name else "copy",
                **source.fields("a", rect.y0, rect.x0, block),
                **target.fields("out", out.y0, out.x0, to_block),
                a_x=1,
                out_h=out.height,
                out_w=out.width,
                blocks=count,
                table=use,
                up_h=factors[0],
                up_w=factors[1],
                rotate=(to - first) % rows,
                first_byte=first_byte,
                byte_count=width,
            )

    def result_channels(self, chunk: Chunk) -> tuple[int, int]:
        """The half-open range of the result's channels that a chunk makes."""
        first = chunk.out_first * self.params.rows
        return first, min(first + chunk.out_blocks * self.params.rows, self.out.channels)


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorStage(Stage, ABC):
    """A stage without weights, which may be cut along channels between any two blocks."""

    table: bytes | None = None
    """What the stage's own instruction passes its result through."""

    unit = Unit.VEC
    all_channels: ClassVar[bool] = False
    """Whether an instruction needs all channels of a pixel."""

    @property
    def vector_tables(self) -> list[bytes]:
        """The stage's own table first."""
        return [*([] if self.table is None else [self.table]), *super().vector_tables]

    @property
    def last_bytes(self) -> int:
        """Channels in the last block."""
        return self.out.channels - (self.out.blocks - 1) * self.params.rows

    def own_words(self, rect: Rect) -> int:
        """Words that the stage's instructions process for a rectangle of the result."""
        return rect.area * self.out.blocks * max(1, len(self.operands) // 2)

    def own_cycles(self, rect: Rect) -> int:
        """A cycle for each slice of a word."""
        words = self.own_words(rect)
        return words * self.params.vector_slices + (timing.VECTOR_END if words else 0)

    def chunk_sizes(self) -> Sequence[int]:
        """Any number of blocks, unless an instruction or a copy needs all of them."""
        rows, blocks = self.params.rows, self.out.blocks
        # After a shift, one target word has bytes of two source blocks, which must then be in one chunk.
        if self.all_channels or any((c.motion.start - c.target.channel) % rows for c in self.copies):
            return [blocks]
        return sorted({-(-blocks // n) for n in range(1, blocks + 1)}, reverse=True)

    def layout(self, size: int) -> list[Chunk]:
        """Even cuts along channels; input and output blocks are the same."""
        cuts = range(0, self.out.blocks, size)
        sizes = [min(size, self.out.blocks - f) for f in cuts]
        return [Chunk(i, f, n, f, n) for i, (f, n) in enumerate(zip(cuts, sizes, strict=True))]

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The tile itself."""
        return rect

    def output_fields(self, context: TileContext, target: Tile, rect: Rect) -> dict[str, int]:
        """Where the result of a rectangle goes."""
        size = {"out_h": rect.height, "out_w": rect.width, "blocks": context.chunk.out_blocks}
        return target.fields("out", rect.y0, rect.x0) | size


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyStage(VectorStage):
    """Nothing but copies of operand 0."""

    in_place = True

    def own_words(self, rect: Rect) -> int:
        """None."""
        return 0

    def compute(self, context: TileContext) -> None:
        """Nothing: the copies follow."""
