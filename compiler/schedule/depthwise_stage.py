"""The stage of a depthwise convolution on the vector unit: an instruction for each channel block of a tile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.emit.constants import depthwise_constants
from intloom.compiler.ir import Conv, ConvTranspose
from intloom.compiler.program.cost import instruction_cost
from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.compiler.schedule.geometry import Rect, window_rect
from intloom.compiler.schedule.tile_context import Chunk, TileContext
from intloom.compiler.schedule.vector_stages import VectorStage
from intloom.hw.spec.isa import BY_KIND, Kind, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import TAPS, constant_words


def is_expressible(node: Conv, params: HardwareParams) -> bool:
    """Whether VDEPTHWISE can express a convolution of blocked pixels."""
    channels, per_group, _, kernel_w = (int(n) for n in node.weights.shape)
    if not params.vector_depthwise or isinstance(node, ConvTranspose) or node.weights.dtype != np.int8:
        return False
    spec = BY_KIND[Kind.VDEPTHWISE]
    limits = ((spec.field(name), value) for name, value in _kernel_fields(node).items())
    return (
        per_group == 1
        and node.group == channels > 1
        and kernel_w <= TAPS
        and node.dilations == (1, 1)
        and all(f.minimum <= value <= f.maximum for f, value in limits)
    )


def _kernel_fields(node: Conv) -> dict[str, int]:
    return {"kernel_h": int(node.weights.shape[2]), "stride_h": node.strides[0], "stride_w": node.strides[1]}


def instruction_cycles(node: Conv, rows: int, columns: int, params: HardwareParams) -> int:
    """Cycles of an instruction for some rows and columns of a block of the result."""
    return instruction_cost(make(Kind.VDEPTHWISE, out_h=rows, out_w=columns, **_kernel_fields(node)), params).occupancy


@dataclass(eq=False, kw_only=True)
class DepthwiseStage(VectorStage):
    """Operand 0 is convolved channel by channel; kernels of less than `TAPS` columns have zero weights on the right."""

    node: Conv

    @property
    def vector_tables(self) -> list[bytes]:
        """The node's own table first."""
        return [*([] if self.node.table is None else [self.node.table]), *super().vector_tables]

    @property
    def _kernel_h(self) -> int:
        return int(self.node.weights.shape[2])

    @property
    def _block_words(self) -> int:
        return constant_words(self._kernel_h)

    @cached_property
    def _constants(self) -> NDArray[np.uint8]:
        """The constants of each block."""
        node = self.node
        return depthwise_constants(node.weights[:, 0], node.bias, node.mantissa, node.shift, self.params)

    def constants(self, chunk: Chunk) -> bytes:
        """Those of the chunk's blocks."""
        return self._constants[chunk.out_first : chunk.out_first + chunk.out_blocks].tobytes()

    def constant_words(self, size: int) -> int:
        """Weights, biases and scales of each block."""
        return size * self._block_words

    def _window(self, rect: Rect) -> Rect:
        top, left = self.node.pads[:2]
        return window_rect(rect, (-top, -left), self.node.strides, (self._kernel_h, TAPS))

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The pixels under the tile's windows."""
        return self.operand_clip(operand, self._window(rect))

    def operand_row(self, operand: int, rect: Rect) -> int:
        """Odd, since columns are read: neighbors in a column then lie in different banks."""
        return rect.width | 1

    @property
    def overlaps_array(self) -> bool:
        """It does."""
        return True

    @property
    def follows_chunks(self) -> bool:
        """It does."""
        return True

    def ring_rows(self, operand: int) -> int:
        """VDEPTHWISE wraps its input itself."""
        return 0

    def own_cycles(self, rect: Rect) -> int:
        """Those of all blocks."""
        return self.tile_cycles(rect, self.out.blocks)

    def tile_cycles(self, rect: Rect, blocks: int) -> int:
        """Cycles of the instructions for some blocks of a tile."""
        return blocks * instruction_cycles(self.node, rect.height, rect.width, self.params)

    def compute(self, context: TileContext) -> None:
        """One VDEPTHWISE for each block."""
        use = context.use_table(self.node.table)
        shared = self._input_fields(context) | _kernel_fields(self.node)
        source, result, rect = context.operands[0], context.result, context.rect
        for block in range(context.chunk.out_blocks):
            context.emit(
                Kind.VDEPTHWISE,
                **shared,
                a_base=source.word(block, None, 0),
                b_base=context.constants + block * self._block_words,
                out_h=rect.height,
                out_w=rect.width,
                out_base=result.word(block, rect.y0, rect.x0),
                out_row=result.row,
                out_x=1,
                table=use,
            )

    def _input_fields(self, context: TileContext) -> dict[str, int]:
        source, buffer, window = context.operands[0], self.operands[0].buffer, self._window(context.rect)
        ring = source.ring * source.row
        return {
            # Negative where a window starts in the padding; the hardware adds addresses modulo the address space, or
            # modulo the ring.
            "a_row_off": (window.y0 - source.y0) * source.row % (ring or ADDRESS_SPACE),
            "a_ring": ring,
            "a_row": source.row,
            "in_h": buffer.height,
            "in_w": buffer.width,
            "iy0": window.y0,
            "ix0": window.x0,
            "zp_in": self.node.zp_in,
            "zp_out": self.node.zp_out,
        }
