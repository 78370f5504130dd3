"""Products of two tensors, a convolution whose weights are a tensor in DRAM, and constant tensors.

A word of the second operand, 16 channels of one pixel in `base`, is a column of a weight tile. So LOADs copy its words
to the weight memory, between the constants of the output blocks. The hardware subtracts the zero point of the first
operand times the sum of a column's weights, which the bias of a convolution contains.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from intloom.compiler.ir import Constant, Conv, MatMul
from intloom.compiler.program.memory import pack_blocks
from intloom.compiler.schedule.passes.blank_lanes import has_blank_lanes
from intloom.compiler.schedule.stages.conv import ConvStage
from intloom.compiler.schedule.stages.placement import Rect, View
from intloom.compiler.schedule.stages.stage import Chunk, LoadPart, TileContext
from intloom.compiler.schedule.stages.stage_list import StageList, check_fields, schedules, unsupported
from intloom.compiler.schedule.stages.weights import Geometry, InputRun, channel_parameters
from intloom.hw.spec.formats import pack_zero_points
from intloom.hw.spec.isa import Kind


@dataclass(frozen=True, eq=False, kw_only=True)
class MatMulStage(ConvStage):
    """Operand 0 passes the array; `stationary` is its weights.

    `node` and `passes` describe the convolution; its weights are blank.
    """

    stationary: View
    zero_point: int
    """Zero point of the stationary tensor."""

    @property
    def weight_operands(self) -> tuple[View, ...]:
        """The stationary tensor."""
        return (self.stationary,)

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The tile itself."""
        return rect

    def weights(self, chunk: Chunk) -> bytes | tuple[LoadPart, ...]:
        """Constants, and the words of the stationary tensor between them."""
        blocks = self._conv_range(chunk)
        parts = (self._constants(len(blocks)), *self._tiles_of(blocks.start, len(blocks)))
        if self.node.table is None:
            return parts
        return (LoadPart(self.node.table, 0, 0, (self.params.table_words, 1, 1)), *parts)

    @property
    def _head_words(self) -> int:
        return self.params.table_words if self.node.table is not None else 0

    @property
    def _constant_words(self) -> int:
        """Words before the tiles of an output block."""
        return self.params.channel_words + self.params.zero_point_words

    @property
    def _block_words(self) -> int:
        return self._constant_words + self.stationary.blocks * self.params.tile_words

    def _constants(self, count: int) -> LoadPart:
        """Constants of `count` output blocks, which are the same for all."""
        p, node = self.params, self.node
        channels = slice(0, p.cols)
        scales = channel_parameters(
            node.bias[:1].repeat(p.cols), node.mantissa[:1].repeat(p.cols), node.shift[:1].repeat(p.cols), p
        )
        data = scales[channels].tobytes() + pack_zero_points([self.zero_point] * p.cols, p.word_bytes)
        counts, steps = (self._constant_words, count, 1), (self._block_words, 0)
        return LoadPart(data, 0, self._head_words, counts, local_steps=steps)

    def _tiles_of(self, first: int, count: int) -> Iterator[LoadPart]:
        """The tiles of output blocks; columns without a pixel hold the zero point: their sums are 0."""
        p, view = self.params, self.stationary
        plane, blocks = view.buffer.plane, view.blocks
        source = view.first_block * plane + first * p.cols
        whole = min(count, plane // p.cols - first)
        rest = plane % p.cols if count > whole else 0
        local = self._head_words + self._constant_words
        if whole:
            steps = (p.tile_words, self._block_words)
            yield LoadPart(view.buffer, source, local, (p.cols, blocks, whole), (plane, p.cols), steps)
        if rest:
            local += whole * self._block_words
            at, steps = source + whole * p.cols, (p.tile_words, 0)
            yield LoadPart(view.buffer, at, local, (rest, blocks, 1), (plane, 0), steps)
            blank = pack_zero_points([self.zero_point] * p.word_bytes, 1) * (p.cols - rest)
            yield LoadPart(blank, 0, local + rest, (p.cols - rest, blocks, 1), local_steps=steps)

    def _weight_fields(self, context: TileContext, run: InputRun, at: int) -> dict[str, int]:
        return super()._weight_fields(context, run, at) | {"subtract_zp_in": int(self.node.zp_in != 0)}


@schedules(Constant)
def schedule_constant(stages: StageList, node: Constant) -> None:
    """No stage: the constant image holds the tensor."""
    stages.constants[stages.placement.view(node.output).buffer] = pack_blocks(node.values, stages.params)


@schedules(MatMul)
def schedule_matmul(stages: StageList, node: MatMul) -> None:
    """A convolution with the second operand as its weights."""
    moving, stationary = (stages.graph.tensors[name] for name in node.inputs)
    pixels = stationary.height * stationary.width
    rows, cols = stages.params.rows, stages.params.cols
    if moving.channels % rows and not _reads_blank_lanes(stages, node):
        raise unsupported(
            node,
            f"its sums are over {moving.channels} channels, which do not fill words of {rows}, and the array's {cols} "
            "columns do not fill the rest",
            f"use cols = {rows}, or rows = {cols}",
        )
    blocks = -(-moving.channels // stages.params.rows), -(-pixels // stages.params.cols)
    if node.zp_a and not stages.params.weight_sums:
        raise unsupported(node, f"its moving operand has the zero point {node.zp_a}", "set weight_sums = true")
    check_fields(node, Kind.CONV, {"in_blocks": blocks[0], "out_blocks": blocks[1]})
    weights = np.broadcast_to(np.zeros((), np.int16), (pixels, moving.channels, 1, 1))
    convolution = Conv(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.output,
        weights=weights,
        bias=np.zeros(pixels, np.int32),
        mantissa=np.full(pixels, node.mantissa, np.uint32),
        shift=np.full(pixels, node.shift, np.uint8),
        zp_in=node.zp_a,
        zp_out=node.zp_out,
        table=node.table,
    )
    stage = MatMulStage(
        params=stages.params,
        name=node.name,
        operands=(stages.placement.view(node.inputs[0]),),
        out=stages.placement.view(node.output),
        node=convolution,
        passes=((Geometry((1, 1), (0, 0), (1, 1), (1, 1)), weights),),
        group=1,
        stationary=stages.placement.view(node.inputs[1]),
        zero_point=node.zp_b,
    )
    stages.add(stage, node.output)


def _reads_blank_lanes(stages: StageList, node: MatMul) -> bool:
    return stages.params.cols >= stages.params.rows and has_blank_lanes(stages.graph, node)
