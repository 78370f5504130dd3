"""Depthwise convolutions: on the array with kernel taps on its rows, or on the vector unit; and the choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import Conv, ConvTranspose, IntGraph, Node, Table
from intloom.compiler.program.cost import conv_busy, instruction_cost
from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.stages.placement import Rect, window_rect
from intloom.compiler.schedule.stages.stage import Chunk, TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import StageList, window_fields
from intloom.compiler.schedule.stages.weights import Geometry, Weights, depthwise_constants, node_cycles
from intloom.hw.spec.depthwise import DEPTHWISE_MODES, tap_rows
from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import BY_KIND, ConvMode, Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import constant_words


@dataclass(frozen=True)
class DepthwiseCut:
    """Instructions of at most `rows` output rows, which share weights made for columns of `column_rows` words."""

    params: HardwareParams
    geometry: Geometry
    mode: ConvMode
    rows: int
    column_rows: int
    blocks: int = 2
    """Output blocks of the stage, at most 2: instructions of a single one take longer."""

    def conv(self, height: int = 1, width: int = 1, blocks: int = 1) -> Instruction:
        """The shape of an instruction for `blocks` blocks of an output of `height` rows and `width` columns."""
        g = self.geometry
        return make(
            Kind.CONV, mode=self.mode, in_blocks=self.column_rows, kernel_h=g.kernel[0], kernel_w=g.kernel[1],
            stride_h=g.stride[0], stride_w=g.stride[1], dilation_h=g.dilation[0], dilation_w=g.dilation[1],
            out_h=height, out_w=width, out_blocks=blocks,
        )  # fmt: skip

    @cached_property
    def tiles(self) -> int:
        """Weight tiles of an output block."""
        return conv_tiles(self.conv())

    def parts(self, rect: Rect) -> Iterator[Rect]:
        """An output tile cut into those of its instructions; columns evenly."""
        for y in range(rect.y0, rect.y1, self.rows):
            bottom = min(y + self.rows, rect.y1)
            count = -(-rect.width // (self.params.strip // (bottom - y)))
            edges = [rect.x0 + rect.width * k // count for k in range(count + 1)]
            yield from (Rect(y, bottom, a, b) for a, b in pairwise(edges))

    def cycles(self, height: int, width: int, blocks: int = 2) -> int:
        """Cycles of one block of a tile of `blocks` blocks."""
        bands = {self.rows: height // self.rows, height % self.rows: 1}
        blocks = min(blocks, self.blocks)
        return sum(count * self._band_cycles(rows, width, blocks) for rows, count in bands.items() if rows)

    def _band_cycles(self, rows: int, width: int, blocks: int) -> int:
        """Cycles of the parts with the same rows; their widths are equal, or differ by one."""
        count = -(-width // (self.params.strip // rows))
        narrow, wide = divmod(width, count)
        cycles = (count - wide) * conv_busy(self.conv(rows, narrow, blocks), self.params)
        cycles += wide * conv_busy(self.conv(rows, narrow + 1, blocks), self.params) if wide else 0
        return cycles // blocks

    def for_tiles(self, heights: Sequence[int], width: int) -> DepthwiseCut:
        """The cheapest cut of output tiles of these heights, in the same mode: they share their weights."""
        tiles = tuple(sorted(Counter(heights).items()))
        return _best(replace(self, rows=0, column_rows=0), tiles, width) or self

    @property
    def fits(self) -> bool:
        """Whether every tap has an array row."""
        return max(row for row, _, _ in tap_rows(self.conv())) < self.params.rows

    def weight_tiles(self, weights: Weights, blocks: Sequence[int]) -> Weights:
        """Weight tiles [block, tile, column, lane] of some output blocks; missing channels are zero."""
        cols = self.params.cols
        padded = np.zeros((-(-len(weights) // cols) * cols, *weights.shape[2:]), weights.dtype)
        padded[: len(weights)] = weights[:, 0]
        chosen = padded.reshape(-1, cols, *weights.shape[2:])[list(blocks)]
        tiles = np.zeros((len(chosen), self.tiles, cols, self.params.rows), weights.dtype)
        for row, ky, kx in tap_rows(self.conv()):
            for tile in range(self.tiles):
                tiles[:, tile, :, row] = chosen[:, :, ky + tile, kx]
        return tiles


def depthwise_cut(
    geometry: Geometry, extent: tuple[int, int], params: HardwareParams, blocks: int = 2
) -> DepthwiseCut | None:
    """The cheapest cut of `blocks` output blocks of `extent`, or None if a diagonal tile for each tap is as fast."""
    height, width = extent
    blank = [DepthwiseCut(params, geometry, mode, 0, 0, min(blocks, 2)) for mode in DEPTHWISE_MODES]
    cuts = [_best(cut, ((height, 1),), width) for cut in blank]
    fitting = [cut for cut in cuts if cut is not None]
    if not fitting:
        return None
    best = min(fitting, key=lambda cut: cut.cycles(height, width))
    diagonal = height * width * max(geometry.kernel[0] * geometry.kernel[1], params.cols // params.lanes)
    return best if best.cycles(height, width) < diagonal else None


@cache
def _best(blank: DepthwiseCut, tiles: tuple[tuple[int, int], ...], width: int) -> DepthwiseCut | None:
    """The cheapest cut of tiles (height, count) like one without rows, or None if the kernel does not fit the array."""
    geometry = blank.geometry
    reach = geometry.reach[0] if blank.mode is ConvMode.DEPTHWISE else 1
    fitting = []
    for rows in range(1, min(max(height for height, _ in tiles), blank.params.strip) + 1):
        cut = replace(blank, rows=rows, column_rows=reach + (rows - 1) * geometry.stride[0])
        if not cut.fits:
            break
        fitting.append(cut)
    return min(fitting, key=lambda cut: sum(n * cut.cycles(h, width) for h, n in tiles), default=None)


def pays_on_vector_unit(node: Conv, stages: StageList) -> bool:
    """Whether the vector unit's cycles that no neighbor on the array hides are fewer than the array's."""
    graph, params = stages.graph, stages.params
    out = graph.tensors[node.output]
    blocks = -(-out.channels // params.rows)
    rows = min(out.height, tuning.DEPTHWISE_ROWS)
    vector = -(-out.height // rows) * blocks * instruction_cycles(node, rows, out.width, params)
    return vector - _hidden(node, stages) < _on_array(node, graph, params)


def _on_array(node: Conv, graph: IntGraph, params: HardwareParams) -> int:
    out = graph.tensors[node.output]
    kernel = (int(node.weights.shape[2]), int(node.weights.shape[3]))
    geometry = Geometry(kernel, (-node.pads[0], -node.pads[1]), node.strides, node.dilations)
    blocks = -(-out.channels // params.cols)
    extent = (out.height, out.width)
    cut = depthwise_cut(geometry, extent, params, blocks) if params.depthwise else None
    if cut is not None:
        return blocks * cut.cycles(*extent, blocks)
    return blocks * out.height * out.width * max(kernel[0] * kernel[1], params.cols // params.lanes)


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
    def vector_tables(self) -> list[bytes]:
        """The node's own table first."""
        return [*([] if self.node.table is None else [self.node.table]), *super().vector_tables]

    @property
    def _kernel(self) -> tuple[int, int]:
        return int(self.node.weights.shape[2]), int(self.node.weights.shape[3])

    @property
    def _block_words(self) -> int:
        return constant_words(*self._kernel)

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
