"""Maximum and average pooling."""

from dataclasses import dataclass

from intloom.compiler.ir import AvgPool, MaxPool
from intloom.compiler.schedule.stages.placement import Rect, Tile, window_rect
from intloom.compiler.schedule.stages.stage import Chunk, TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import (
    StageList,
    check_fields,
    check_instruction,
    schedules,
    unsupported,
    window_fields,
)
from intloom.hw.spec import timing
from intloom.hw.spec.isa import Kind


@dataclass(frozen=True, eq=False, kw_only=True)
class PoolStage(VectorStage):
    """Windows of one tensor: averages, and maxima, which go along rows and then along columns."""

    follows_chunks = True
    node: MaxPool | AvgPool

    @property
    def geometry(self) -> object:
        """The window."""
        return type(self.node), self.node.kernel, self.node.strides, self.node.pads

    @property
    def separable(self) -> bool:
        """Whether two passes read fewer words than one."""
        return isinstance(self.node, MaxPool) and min(self.node.kernel) > 1

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
            **source.fields("a", 0, 0),
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
            table=context.use_table(self.table),
            m1=affine.m1,
            m2=affine.m1,
            c=affine.c,
            shift=affine.shift,
            even=int(affine.even),
            zp_in=node.zp_in,
        )


_WINDOW_SUM_BITS = 17
_INT8_BITS = 7


@schedules(MaxPool)
def schedule_max_pool(stages: StageList, node: MaxPool) -> None:
    """VMAX, once or once per axis."""
    check_fields(node, Kind.VMAX, window_fields(node.kernel, node.strides))
    stages.add(PoolStage(*stages.common(node), node=node), node.output)


@schedules(AvgPool)
def schedule_average_pool(stages: StageList, node: AvgPool) -> None:
    """VAVG."""
    check_instruction(node, Kind.VAVG, stages.params)
    check_fields(node, Kind.VAVG, window_fields(node.kernel, node.strides))
    if node.kernel[0] * node.kernel[1] << _INT8_BITS > 1 << _WINDOW_SUM_BITS:
        raise unsupported(node, f"the window may have {1 << _WINDOW_SUM_BITS - _INT8_BITS} pixels", "pool in two steps")
    stages.add(PoolStage(*stages.common(node), node=node, table=node.table), node.output)
