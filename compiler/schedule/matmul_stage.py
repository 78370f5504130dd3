"""Products of two tensors: a convolution whose weights are a tensor in DRAM.

A word of the second operand, 16 channels of one pixel in `base`, is a column of a weight tile. So LOADs copy its words
to the weight memory, between the constants of the output blocks. The hardware subtracts the zero point of the first
operand times the sum of a column's weights, which the bias of a convolution contains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from intloom.compiler.emit.constants import channel_parameters
from intloom.compiler.schedule.conv_stage import ConvStage, Part
from intloom.compiler.schedule.geometry import Rect, View
from intloom.compiler.schedule.tile_context import Chunk, TileContext
from intloom.compiler.schedule.weight_part import WeightPart
from intloom.hw.spec.formats import pack_zero_points


@dataclass(eq=False, kw_only=True)
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

    def _with_weights(self, chunk: Chunk) -> Chunk:
        (run,) = self._runs(self._conv_range(chunk), self.passes[0][1])
        parts = [self._constants(run.count), *self._tiles_of(run.first, run.count)]
        table = self.node.table
        if table is not None:
            words = self.params.table_words
            parts.insert(0, WeightPart(None, self.image.add(table), 0, (words, 1, 1), (0, 0), (0, 0)))
        complete = replace(chunk, weight_words=self._run_words(run, self.passes[0][1]), weight_parts=tuple(parts))
        self._parts[complete] = [Part(self.passes[0][0], run, 0)]
        return complete

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

    def _constants(self, count: int) -> WeightPart:
        """Constants of `count` output blocks, which are the same for all."""
        p, node = self.params, self.node
        channels = slice(0, p.cols)
        scales = channel_parameters(
            node.bias[:1].repeat(p.cols), node.mantissa[:1].repeat(p.cols), node.shift[:1].repeat(p.cols), p
        )
        data = scales[channels].tobytes() + pack_zero_points([self.zero_point] * p.cols, p.word_bytes)
        at = self.image.add(data)
        return WeightPart(None, at, self._head_words, (self._constant_words, count, 1), (0, 0), (self._block_words, 0))

    def _tiles_of(self, first: int, count: int) -> Iterator[WeightPart]:
        """The tiles of output blocks; columns without a pixel hold the zero point: their sums are 0."""
        p, view = self.params, self.stationary
        plane, blocks = view.buffer.plane, view.blocks
        source = view.first_block * plane + first * p.cols
        whole = min(count, plane // p.cols - first)
        rest = plane % p.cols if count > whole else 0
        local = self._head_words + self._constant_words
        if whole:
            steps = (p.tile_words, self._block_words)
            yield WeightPart(view.buffer, source, local, (p.cols, blocks, whole), (plane, p.cols), steps)
        if rest:
            local += whole * self._block_words
            at, steps = source + whole * p.cols, (p.tile_words, 0)
            yield WeightPart(view.buffer, at, local, (rest, blocks, 1), (plane, 0), steps)
            blank = self.image.add(pack_zero_points([self.zero_point] * p.word_bytes, 1) * (p.cols - rest))
            yield WeightPart(None, blank, local + rest, (p.cols - rest, blocks, 1), (0, 0), steps)

    def _weight_fields(self, context: TileContext, part: Part) -> dict[str, int]:
        return super()._weight_fields(context, part) | {"subtract_zp_in": int(self.node.zp_in != 0)}
