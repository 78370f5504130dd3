"""Depthwise convolutions on the vector unit, and the choice between it and the array."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import numpy as np

from intloom.compiler.ir import Conv, ConvTranspose, IntGraph, Node, Table
from intloom.compiler.program.cost import instruction_cost
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.stages.placement import Rect, window_rect
from intloom.compiler.schedule.stages.stage import Chunk, TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import StageList, window_fields
from intloom.compiler.schedule.stages.weights import node_cycles, surplus_bits
from intloom.hw.spec.arith import Scale
from intloom.hw.spec.isa import BY_KIND, Kind, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import constant_words, pack_depthwise


def pays_on_vector_unit(node: Conv, stages: StageList) -> bool:
    """Whether the vector unit's cycles that no neighbor on the array hides are fewer than the array's."""
    graph, params = stages.graph, stages.params
    out = graph.tensors[node.output]
    blocks = -(-out.channels // params.rows)
    rows = min(out.height, tuning.DEPTHWISE_ROWS)
    vector = -(-out.height // rows) * blocks * instruction_cycles(node, rows, out.width, params)
    return vector - _hidden(node, stages) < _on_array(node, graph, params)


def _on_array(node: Conv, graph: IntGraph, params: HardwareParams) -> int:
    """Cycles of the array, which takes a diagonal weight tile for each tap."""
    out, taps = graph.tensors[node.output], int(node.weights.shape[2] * node.weights.shape[3])
    return -(-out.channels // params.cols) * out.height * out.width * max(taps, params.cols // params.lanes)


def _hidden(node: Conv, stages: StageList) -> int:
    """Cycles of the convolutions that make the operand or read the result: the stage may run at the same time."""
    neighbors = {n.name: n for n in (*_makers(node.inputs[0], stages.graph), *_readers(node.output, stages.graph))}
    tensors, params = stages.graph.tensors, stages.params
    return sum(node_cycles(n, tensors, params, packed=stages.is_packed(n)) for n in neighbors.values())


def _is_ungrouped(node: Node | None) -> TypeGuard[Conv]:
    return isinstance(node, Conv) and node.group == 1


def _makers(tensor: str, graph: IntGraph) -> Iterator[Conv]:
    """The convolution without groups that makes a tensor; a table may follow it."""
    node = graph.producer(tensor)
    if isinstance(node, Table):
        yield from _makers(node.inputs[0], graph)
    elif _is_ungrouped(node):
        yield node


def _readers(tensor: str, graph: IntGraph) -> Iterator[Conv]:
    """The convolutions without groups that read a tensor, also through a table."""
    for node in graph.consumers(tensor):
        if isinstance(node, Table):
            yield from _readers(node.output, graph)
        elif _is_ungrouped(node):
            yield node


def is_expressible(node: Conv, params: HardwareParams) -> bool:
    """Whether VDEPTHWISE can express a convolution of blocked pixels."""
    channels, per_group = node.weights.shape[:2]
    if not params.vector_depthwise or isinstance(node, ConvTranspose) or node.weights.dtype != np.int8:
        return False
    spec = BY_KIND[Kind.VDEPTHWISE]
    limits = ((spec.field(name), value) for name, value in _kernel_fields(node).items())
    return (
        per_group == 1
        and node.group == channels > 1
        and node.dilations == (1, 1)
        and all(f.minimum <= value <= f.maximum for f, value in limits)
    )


def _kernel_fields(node: Conv) -> dict[str, int]:
    return window_fields((int(node.weights.shape[2]), int(node.weights.shape[3])), node.strides)


def instruction_cycles(node: Conv, rows: int, columns: int, params: HardwareParams) -> int:
    """Cycles of an instruction for some rows and columns of a block of the result."""
    return instruction_cost(make(Kind.VDEPTHWISE, out_h=rows, out_w=columns, **_kernel_fields(node)), params).cycles


@dataclass(frozen=True, eq=False, kw_only=True)
class DepthwiseStage(VectorStage):
    """Operand 0 is convolved channel by channel."""

    overlaps_array = True
    follows_chunks = True
    node: Conv

    @property
    def geometry(self) -> object:
        """The window."""
        return self._kernel, self.node.strides, self.node.pads

    @property
    def _kernel(self) -> tuple[int, int]:
        return int(self.node.weights.shape[2]), int(self.node.weights.shape[3])

    @property
    def _block_words(self) -> int:
        return constant_words(*self._kernel)

    @cached_property
    def _constants(self) -> list[bytes]:
        """The constants of each block; channels beyond the last one have zeros."""
        node, rows, bits = self.node, self.params.rows, self.params.mantissa_bits
        # Low bits of a mantissa beyond those of the hardware are 0 (`check_widths`).
        surplus = surplus_bits(node.mantissa, bits)
        columns = (node.weights[:, 0], node.bias, node.mantissa >> surplus, node.shift - surplus)
        fill = -len(node.bias) % rows
        weights, biases, mantissas, shifts = (np.pad(c, [(0, fill)] + [(0, 0)] * (c.ndim - 1)) for c in columns)
        scales = [Scale(int(m), int(s)) for m, s in zip(mantissas, shifts, strict=True)]
        blocks = (slice(first, first + rows) for first in range(0, len(biases), rows))
        taps = weights.transpose(1, 2, 0)
        return [pack_depthwise(taps[:, :, b].tolist(), biases[b].tolist(), scales[b], bits) for b in blocks]

    def constants(self, chunk: Chunk) -> bytes:
        """Weights, biases and scales of the chunk's blocks."""
        return b"".join(self._constants[chunk.out_first : chunk.out_first + chunk.out_blocks])

    def constant_words(self, size: int) -> int:
        """Weights, biases and scales of each block."""
        return size * self._block_words

    def _window(self, rect: Rect) -> Rect:
        top, left = self.node.pads[:2]
        return window_rect(rect, (-top, -left), self.node.strides, self._kernel)

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The pixels under the tile's windows."""
        return self.operand_clip(operand, self._window(rect))

    def operand_row(self, operand: int, rect: Rect) -> int:
        """Odd, since columns are read: neighbors in a column then lie in different banks."""
        return rect.width | 1

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
        use = context.use_table(self.table)
        source, result, rect = context.operands[0], context.result, context.rect
        window = self._window(rect)
        shared = self.padded_fields(source, "a", window.y0, window.x0) | _kernel_fields(self.node)
        for block in range(context.chunk.out_blocks):
            context.emit(
                Kind.VDEPTHWISE,
                **shared,
                zp_in=self.node.zp_in,
                zp_out=self.node.zp_out,
                a_base=source.word(block, None, 0),
                b_base=context.constants + block * self._block_words,
                out_h=rect.height,
                out_w=rect.width,
                out_base=result.word(block, rect.y0, rect.x0),
                out_row=result.row,
                out_x=1,
                table=use,
            )
