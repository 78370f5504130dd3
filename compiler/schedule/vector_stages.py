"""Stages of the vector unit: sums, products, pools, plain copies and concatenation."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intloom.compiler.ir import AvgPool, MaxPool
from intloom.compiler.schedule.copying import emit_move
from intloom.compiler.schedule.geometry import Rect, Tile, window_rect
from intloom.compiler.schedule.stage import Stage
from intloom.compiler.schedule.tile_context import Chunk, TileContext
from intloom.hw.spec import timing
from intloom.hw.spec.isa import BY_KIND, Kind, Unit


@dataclass(eq=False, kw_only=True)
class VectorStage(Stage, ABC):
    """A stage without weights, which may be cut along channels between any two blocks."""

    @property
    def unit(self) -> Unit:
        """The vector unit."""
        return Unit.VEC

    def own_words(self, rect: Rect) -> int:
        """Words that the stage's instructions process for a rectangle of the result."""
        return rect.area * self.out.blocks * max(1, len(self.operands) // 2)

    def own_cycles(self, rect: Rect) -> int:
        """A cycle for each slice of a word."""
        words = self.own_words(rect)
        return words * self.params.vector_slices + (timing.VECTOR_END if words else 0)

    def chunk_sizes(self) -> Sequence[int]:
        """Any number of blocks; only all of them when a copy moves channels to other bytes of a word."""
        rows, blocks = self.params.rows, self.out.blocks
        # After a shift, one target word has bytes of two source blocks, which must then be in one chunk.
        if any((c.start - c.target.channel) % rows for c in self.copies):
            return [blocks]
        return sorted({-(-blocks // n) for n in range(1, blocks + 1)}, reverse=True)

    def weight_words(self, size: int) -> int:
        """None: the vector unit has no weights."""
        return 0

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
        return {
            "out_h": rect.height,
            "out_w": rect.width,
            "out_base": target.word(0, rect.y0, rect.x0),
            "out_plane": target.plane,
            "out_row": target.row,
            "blocks": context.chunk.out_blocks,
        }


def _operand_fields(name: str, tile: Tile, rect: Rect) -> dict[str, int]:
    base = tile.word(0, rect.y0, rect.x0)
    return {f"{name}_base": base, f"{name}_plane": tile.plane, f"{name}_row": tile.row}


@dataclass(eq=False, kw_only=True)
class ElementwiseStage(VectorStage):
    """One elementwise instruction of two tensors, of which one may be a pixel that is broadcast."""

    kind: Kind
    fields: Mapping[str, int]
    """The instruction's own fields."""
    table: bytes | None = None

    @property
    def vector_tables(self) -> list[bytes]:
        """The node's own table first."""
        return ([self.table] if self.table is not None else []) + super().vector_tables

    def _spread(self, operand: int) -> bool:
        buffer = self.operands[operand].buffer
        return (buffer.height, buffer.width) != self.extent

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The tile, or the only pixel."""
        return Rect(0, 1, 0, 1) if self._spread(operand) else rect

    def operand_blocks(self, operand: int, chunk: Chunk) -> tuple[int, int]:
        """The chunk's own blocks."""
        return chunk.in_first, chunk.in_blocks

    def _runs(self, context: TileContext) -> list[Rect]:
        """The tile, or with a pixel, parts of it whose pixels follow each other in the operand and in the result."""
        rect = context.rect
        wide = [t for k, t in enumerate(context.operands) if not self._spread(k)]
        if len(wide) == len(context.operands):
            return [rect]
        rows = 1
        if all(t.row == rect.width for t in (*wide, context.result)):
            rows = max(1, BY_KIND[self.kind].field("out_h").maximum // rect.width)
        return [Rect(y, min(y + rows, rect.y1), rect.x0, rect.x1) for y in range(rect.y0, rect.y1, rows)]

    def compute(self, context: TileContext) -> None:
        """One instruction; with a pixel, pixels of the other operand are rows, of which each adds 0 to its address."""
        for rect in self._runs(context):
            fields = self.output_fields(context, context.result, rect)
            for k, (name, tile) in enumerate(zip("ab", context.operands, strict=True)):
                fields |= _operand_fields(name, tile, Rect(0, 1, 0, 1) if self._spread(k) else rect)
            if self._spread(0) or self._spread(1):
                fields |= {"out_h": rect.area, "out_w": 1, "out_row": 1}
                fields |= {f"{name}_row": int(not self._spread(k)) for k, name in enumerate("ab")}
            context.emit(self.kind, **fields, table=context.use_table(self.table), **self.fields)


@dataclass(eq=False, kw_only=True)
class PoolStage(VectorStage):
    """Windows of one tensor: averages, and maxima, which go along rows and then along columns."""

    node: MaxPool | AvgPool

    @property
    def vector_tables(self) -> list[bytes]:
        """The node's own table first."""
        own = [self.node.table] if isinstance(self.node, AvgPool) and self.node.table is not None else []
        return own + super().vector_tables

    @property
    def separable(self) -> bool:
        """Whether two passes read fewer words than one."""
        return isinstance(self.node, MaxPool) and min(self.node.kernel) > 1

    @property
    def follows_chunks(self) -> bool:
        """It does."""
        return True

    def own_words(self, rect: Rect) -> int:
        """Each word of a window; a sliding maximum reads each word of a line once."""
        kernel_h, kernel_w = self.node.kernel
        if isinstance(self.node, AvgPool):
            return rect.area * self.out.blocks * kernel_h * kernel_w
        across = 1 if kernel_w <= timing.SLIDING_TAPS and self.node.strides[1] == 1 else kernel_w
        down = 1 if kernel_h <= timing.SLIDING_TAPS and self.node.strides[0] == 1 else kernel_h
        rows = self.operand_rect(0, rect).height
        return rect.width * self.out.blocks * (rows * across + rect.height * down)

    def ring_rows(self, operand: int) -> int:
        """Operand rows of a row of the result if no other row reads them, so that a ring of such blocks can hold them.

        0 if windows overlap, or start above the operand.
        """
        rows = self.node.kernel[0]
        return rows if isinstance(self.node, AvgPool) and self.node.strides[0] == rows and not self.node.pads[0] else 0

    def needs_whole(self, operand: int) -> bool:
        """The rows of a maximum go to a temporary one by one."""
        return not self.separable and not self.ring_rows(operand)

    def _window(self, rect: Rect) -> Rect:
        top, left = self.node.pads[:2]
        return window_rect(rect, (-top, -left), self.node.strides, self.node.kernel)

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The pixels under the tile's windows."""
        return self.operand_clip(operand, self._window(rect))

    def temporary_words(self, rect: Rect, chunk: Chunk) -> int:
        """All input rows at output width, for a separable maximum."""
        return self.operand_rect(0, rect).height * self.result_row(rect) * chunk.out_blocks if self.separable else 0

    def result_row(self, rect: Rect) -> int:
        """Odd where the last pass goes down columns: then neighbors in a column lie in different banks."""
        return rect.width | 1 if self.separable else rect.width

    def _pool_fields(
        self, source: Tile, size: tuple[int, int], first: tuple[int, int], kernel: tuple[int, int]
    ) -> dict[str, int]:
        """Fields of a window over `source`, whose tile coordinates are those of the whole tensor of `size`."""
        return {
            "a_base": source.word(0, 0, 0),
            "a_plane": source.plane,
            "a_row": source.row,
            "in_h": size[0],
            "in_w": size[1],
            "iy0": first[0],
            "ix0": first[1],
            "kernel_h": kernel[0],
            "kernel_w": kernel[1],
        }

    def compute(self, context: TileContext) -> None:
        """One VAVG; or VMAX along x into a temporary, and along y from there."""
        if isinstance(self.node, AvgPool):
            self._average(context, self.node)
            return
        window, rect = self._window(context.rect), context.rect
        size = (self.operands[0].buffer.height, self.operands[0].buffer.width)
        (kernel_h, kernel_w), (stride_h, stride_w) = self.node.kernel, self.node.strides
        source, first = context.operands[0], (window.y0, window.x0)
        if self.separable:
            # The first pass makes only rows that exist; the second one handles the padding above and below.
            rows = self.operand_rect(0, rect)
            row = self.result_row(rect)
            middle = Tile(context.temporary, rows.height * row, row, rows.y0, 0)
            for low, high, part in source.straight(rows.y0, rows.y1):
                context.emit(
                    Kind.VMAX,
                    "along rows",
                    **self._pool_fields(part, size, (low, window.x0), (1, kernel_w)),
                    stride_w=stride_w,
                    **self.output_fields(context, middle, Rect(low, high, 0, rect.width)),
                )
            source, size, first, kernel_w, stride_w = middle, (size[0], rect.width), (window.y0, 0), 1, 1
        context.emit(
            Kind.VMAX,
            **self._pool_fields(source, size, first, (kernel_h, kernel_w)),
            stride_h=stride_h,
            stride_w=stride_w,
            **self.output_fields(context, context.result, rect),
        )

    def _average(self, context: TileContext, node: AvgPool) -> None:
        window, affine = self._window(context.rect), node.affine
        size = (self.operands[0].buffer.height, self.operands[0].buffer.width)
        rows = self.operand_rect(0, context.rect)
        # In a ring, the tile's rows do not wrap: the tiles of a group in stripes end where it does.
        _, _, source = next(context.operands[0].straight(rows.y0, rows.y1))
        context.emit(
            Kind.VAVG,
            **self._pool_fields(source, size, (window.y0, window.x0), node.kernel),
            stride_h=node.strides[0],
            stride_w=node.strides[1],
            **self.output_fields(context, context.result, context.rect),
            table=context.use_table(node.table),
            m1=affine.m1,
            m2=affine.m1,
            c=affine.c,
            shift=affine.shift,
            even=int(affine.even),
            zp_in=node.zp_in,
        )


@dataclass(eq=False, kw_only=True)
class CopyStage(VectorStage):
    """Nothing but copies of operand 0."""

    @property
    def in_place(self) -> bool:
        """The loaded tile is the result."""
        return True

    def own_words(self, rect: Rect) -> int:
        """None."""
        return 0

    def compute(self, context: TileContext) -> None:
        """Nothing: the copies follow."""


@dataclass(eq=False, kw_only=True)
class ConcatStage(VectorStage):
    """Concatenation of tensors whose channels do not fill whole words: copied together in the scratchpad."""

    def chunk_sizes(self) -> Sequence[int]:
        """Only all blocks at once."""
        return [self.out.blocks]

    def operand_blocks(self, operand: int, chunk: Chunk) -> tuple[int, int]:
        """All blocks of every operand."""
        return 0, self.operands[operand].blocks

    def compute(self, context: TileContext) -> None:
        """Copies of every operand, in channel order."""
        to = 0
        for view, tile in zip(self.operands, context.operands, strict=True):
            emit_move(context, (0, view.channels, to), tile, context.result)
            to += view.channels
