"""Convolutions on the array: ordinary, grouped, packed, transposed, with an optional residual addition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import Conv, ConvTranspose
from intloom.compiler.limits import LARGEST_DILATION, LARGEST_KERNEL, LARGEST_STRIDE
from intloom.compiler.program.cost import array_cycles
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule.stages.depthwise import DepthwiseStage, is_expressible, pays_on_vector_unit
from intloom.compiler.schedule.stages.placement import Rect, Tile, node_input, window_rect
from intloom.compiler.schedule.stages.stage import Chunk, LoadPart, Stage, TileContext
from intloom.compiler.schedule.stages.stage_list import StageList, check_fields, schedules, window_fields
from intloom.compiler.schedule.stages.weights import (
    Geometry,
    InputRun,
    Weights,
    block_tiles,
    channel_parameters,
    input_runs,
    pack_blocks,
    packed_kernel,
    residual_constants,
    transposed_passes,
    without_blank_blocks,
)
from intloom.hw.spec import timing
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.conv_stream import ConvStream
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import ConvMode, Kind, TableUse, Unit

GUARD_WORDS = 1
"""Words around a packed input, since the array also reads the neighboring word."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvStage(Stage):
    """Operand 0 is convolved; operand 1, if there is one, is added by `residual`."""

    node: Conv
    passes: tuple[tuple[Geometry, Weights], ...]
    group: int
    residual: Affine | None = None

    unit = Unit.MAC

    @property
    def packed(self) -> bool:
        """Whether the input is stored as packed pixels."""
        return self.operands[0].buffer.layout is Layout.PIXELS4

    @property
    def zero_points(self) -> bool:
        """Whether the array subtracts zero points from the weights."""
        return self.node.weights.dtype != np.int8

    @property
    def geometry(self) -> object:
        """Kernels and what else is in the weight memory."""
        passes = tuple((geometry, weights.shape) for geometry, weights in self.passes)
        return passes, self.group, self.residual is None, self.zero_points, self.node.table is None

    @property
    def writes_only_result(self) -> bool:
        """All columns of each output block are written."""
        return not self.keep_result or -(-self.conv_blocks * self.params.cols // self.params.rows) == self.out.blocks

    @property
    def row_step(self) -> tuple[int, int]:
        """A transposed convolution's tiles start at phase 0."""
        return self.passes[0][0].step

    @property
    def conv_blocks(self) -> int:
        """Output blocks of `cols` channels."""
        return -(-self.out.channels // self.params.cols)

    @property
    def grain(self) -> int:
        """Output blocks that fill a whole number of words."""
        return max(1, self.params.rows // self.params.cols)

    @property
    def most_pixels(self) -> int | None:
        """Those of a strip, whose sums stay in the accumulators."""
        return self.params.strip if self._piece_blocks else None

    @cached_property
    def _piece_blocks(self) -> int:
        """Input blocks of a chunk where an output block's weights do not fit the weight memory; 0 where they do.

        A piece takes half of the memory, so that the next one can be loaded while the array reads it.
        """
        p, (_, weights) = self.params, self.passes[0]
        if len(self.passes) > 1 or self.group > 1 or self.packed or self.grain > 1 or self.weight_operands:
            return 0
        (run,) = self._runs(range(1), weights)
        words, tap = self._run_words(run, weights), weights.shape[2] * weights.shape[3] * p.tile_words
        head = words - tap * run.blocks
        return max(1, (p.weight_words // 2 - head) // tap) if words > p.weight_words else 0

    def chunk_sizes(self) -> Sequence[int]:
        """All numbers of words that hold whole output blocks, evenly spread, largest first."""
        word_step = max(1, self.params.cols // self.params.rows)
        steps = -(-self.conv_blocks // self.grain)
        counts = sorted({-(-steps // n) for n in range(1, steps + 1)}, reverse=True)
        return [c * word_step for c in counts]

    def _conv_range(self, chunk: Chunk) -> range:
        first = chunk.out_first * self.params.rows // self.params.cols
        count = max(1, chunk.out_blocks * self.params.rows // self.params.cols)
        return range(first, min(first + count, self.conv_blocks))

    def _runs(self, blocks: range, weights: Weights) -> tuple[InputRun, ...]:
        return input_runs(blocks, self.params, self.out.channels, weights.shape[1], self.group)

    def _chunk_runs(self, chunk: Chunk, weights: Weights) -> tuple[InputRun, ...]:
        """Those of a chunk: of its input blocks, if it is one of several that add to the same sums."""
        runs = self._runs(self._conv_range(chunk), weights)
        if chunk.first and chunk.last:
            return runs
        return tuple(replace(r, start=chunk.in_first, blocks=chunk.in_blocks) for r in runs)

    def _run_words(self, run: InputRun, weights: Weights) -> int:
        kernel_h, kernel_w = weights.shape[2:]
        return ConvStream(
            params=self.params,
            table=self.node.table is not None,
            residual=self.residual is not None,
            zero_points=self.zero_points,
            out_blocks=run.count,
            tiles=kernel_h * kernel_w * run.blocks,
        ).words

    def layout(self, size: int) -> list[Chunk]:
        """Output blocks; where the weights of one do not fit, its input blocks in pieces."""
        return self._cuts(size)[0]

    def weight_words(self, size: int) -> int:
        """Weight memory that the largest chunk takes."""
        return self._cuts(size)[1]

    @cached_property
    def _cuts(self) -> Callable[[int], tuple[list[Chunk], int]]:
        """Chunks of each size, and words of the largest; the search for tilings asks for most of them several times."""
        return cache(self._cut)

    def _cut(self, size: int) -> tuple[list[Chunk], int]:
        total = -(-self.conv_blocks * self.params.cols // self.params.rows)
        chunks = []
        for index, first in enumerate(range(0, total, size)):
            # `input_runs` needs the output blocks only; the input range follows from the runs of all passes.
            blank = Chunk(index, first, min(size, total - first), 0, 0)
            runs = [(g.first_block, r) for g, w in self.passes for r in self._runs(self._conv_range(blank), w)]
            low = min(at + r.start for at, r in runs)
            high = max(at + r.start + (r.count - 1) * r.step + r.blocks for at, r in runs)
            chunks.append(Chunk(index, first, blank.out_blocks, low, high - low))
        if self._piece_blocks and size == self.chunk_sizes()[-1]:
            chunks = self._pieces(chunks)
        return chunks, max(map(self.chunk_words, chunks))

    def _pieces(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks cut along input channels, evenly."""
        pieces: list[Chunk] = []
        for chunk in chunks:
            count = -(-chunk.in_blocks // self._piece_blocks)
            ends = [chunk.in_blocks * k // count for k in range(count + 1)]
            for low, high in pairwise(ends):
                first, last = low == 0, high == chunk.in_blocks
                piece = replace(chunk, in_first=chunk.in_first + low, in_blocks=high - low, first=first, last=last)
                pieces.append(replace(piece, index=len(pieces)))
        return pieces

    def chunk_words(self, chunk: Chunk) -> int:
        """Those of all runs of all passes."""
        return sum(self._run_words(r, w) for _, w in self.passes for r in self._chunk_runs(chunk, w))

    def weights(self, chunk: Chunk) -> bytes | tuple[LoadPart, ...]:
        """Table and residual constants, then parameters and weight tiles, of one CONV after the other."""
        head = self._head()
        return b"".join(head + self._run_bytes(number, run).tobytes() for number, run, _ in self._convs(chunk))

    def _head(self) -> bytes:
        head = self.node.table or b""
        return head + (residual_constants(self.residual, self.params) if self.residual else b"")

    def _parameters(self, number: int) -> NDArray[np.uint8]:
        """Channel parameters of a pass; a transposed convolution leaves the zero point of each pass's taps to us."""
        bias = self.node.bias.astype(np.int64)
        if isinstance(self.node, ConvTranspose):
            bias = bias - self.node.zp_in * self.passes[number][1].sum(axis=(1, 2, 3), dtype=np.int64)
        return channel_parameters(bias.astype(np.int32), self.node.mantissa, self.node.shift, self.params)

    def _run_bytes(self, number: int, run: InputRun) -> NDArray[np.uint8]:
        weights = self.passes[number][1]
        tiles = np.stack([block_tiles(weights, run, k, self.group, self.params) for k in range(run.count)])
        return pack_blocks(self._parameters(number)[run.first : run.first + run.count], tiles, self.params)

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """Rows and word columns that a tile reads."""
        if operand == 1:
            return rect
        rects = [self.operand_clip(0, self._window(g, rect)) for g, _ in self.passes]
        joined = Rect(
            min(r.y0 for r in rects), max(r.y1 for r in rects), min(r.x0 for r in rects), max(r.x1 for r in rects)
        )
        if not self.packed:
            return joined
        group = self.params.pixels_per_word
        return Rect(joined.y0, joined.y1, joined.x0 // group, -(-joined.x1 // group))

    def operand_runs(self, operand: int, rect: Rect) -> tuple[int, int]:
        """Kernel rows of a sequence as runs of their own, where pixels between them are not needed."""
        geometry = self.passes[0][0]
        return (geometry.kernel[0], geometry.pitch) if 0 < self._run_width(rect) < geometry.pitch else (1, 0)

    def _run_width(self, rect: Rect) -> int:
        """Pixels of a sequence under one kernel row, in the rectangle under all of them."""
        geometry = self.passes[0][0]
        return rect.width - (geometry.kernel[0] - 1) * geometry.pitch

    def operand_guard(self, operand: int) -> int:
        """One word around packed pixels."""
        return GUARD_WORDS if self.packed and operand == 0 else 0

    def ring_rows(self, operand: int) -> int:
        """A CONV wraps its input itself."""
        return 0 if operand == 0 else 1

    def tile_cycles(self, rect: Rect, blocks: int) -> int:
        """Cycles of the array."""
        return self._busy(rect.height, rect.width, max(1, blocks * self.params.rows // self.params.cols))

    def array_cycles(self, rows: int, *, new_table: bool) -> int:
        """Those of one task of all output blocks, with a new table."""
        p, blocks = self.params, self.conv_blocks
        busy = self._busy(rows, self.extent[1], blocks) + len(self.passes) * timing.MAC_GAP
        table = TABLE_BYTES if new_table and self.node.table is not None else 0
        # Constants are requested while the instruction before is executing.
        waits = table + 3 * p.cols if table or blocks > 1 else 0
        return busy + max(0, waits - busy // (blocks * len(self.passes)))

    def _busy(self, rows: int, width: int, blocks: int) -> int:
        """Cycles of the instructions for output blocks of a tile."""
        # The passes of a transposed convolution share the pixels.
        tiles, pixels = self._weight_tiles, ceil(rows * width / len(self.passes))
        return len(self.passes) * array_cycles(self.params, tiles, pixels, blocks, zero_points=self.zero_points)

    @cached_property
    def _weight_tiles(self) -> int:
        """Weight tiles of an output block in the first pass."""
        weights = self.passes[0][1]
        (run, *_) = self._runs(range(self.conv_blocks), weights)
        return int(weights.shape[2] * weights.shape[3]) * run.blocks

    def _window(self, g: Geometry, rect: Rect) -> Rect:
        width = g.kernel[1] * self.params.pixels_per_word if self.packed else g.reach[1]
        steps = Rect(rect.y0 // g.step[0], -(-rect.y1 // g.step[0]), rect.x0 // g.step[1], -(-rect.x1 // g.step[1]))
        return window_rect(steps, g.first, g.stride, (g.reach[0], width))

    def compute(self, context: TileContext) -> None:
        """One CONV for each run of each pass that has pixels in the tile."""
        for number, run, at in self._convs(context.chunk):
            self._emit(context, self.passes[number][0], run, at)

    @cached_property
    def _convs(self) -> Callable[[Chunk], list[tuple[int, InputRun, int]]]:
        """The CONVs of a chunk, which all its tiles share: number of the pass, run, and first word of the weights."""
        return cache(self._convs_of)

    def _convs_of(self, chunk: Chunk) -> list[tuple[int, InputRun, int]]:
        convs: list[tuple[int, InputRun, int]] = []
        at = 0
        for number, (_, weights) in enumerate(self.passes):
            for run in self._chunk_runs(chunk, weights):
                convs.append((number, run, at))
                at += self._run_words(run, weights)
        return convs

    def _emit(self, context: TileContext, g: Geometry, run: InputRun, at: int) -> None:
        """The CONV of a run whose weights begin at word `at` of the chunk's."""
        rect = context.rect
        y0, x0 = rect.y0 // g.step[0], rect.x0 // g.step[1]
        out_h = -(-(rect.height - g.offset[0]) // g.step[0])
        out_w = -(-(rect.width - g.offset[1]) // g.step[1])
        # The last tile of a transposed convolution may be smaller than the stride, so some phases have no pixel in
        # it.
        if out_h < 1 or out_w < 1:
            return
        first_block = context.chunk.out_first * self.params.rows // self.params.cols
        channel = (run.first - first_block) * self.params.cols
        result = context.result
        context.emit(
            Kind.CONV,
            **self._input_fields(context, g, run, (g.first[0] + y0 * g.stride[0], g.first[1] + x0 * g.stride[1])),
            **self._weight_fields(context, run, at),
            out_h=out_w if g.pixels_are_rows else out_h,
            out_w=1 if g.pixels_are_rows else out_w,
            out_base=result.word(channel // self.params.rows, rect.y0 + g.offset[0], rect.x0 + g.offset[1]),
            out_plane=result.plane,
            out_row=1 if g.pixels_are_rows else result.row * g.step[0],
            out_x=g.step[1],
            out_lane=channel % self.params.rows,
            **self._residual_fields(context, channel, rect),
        )

    def _input_fields(self, context: TileContext, g: Geometry, run: InputRun, first: tuple[int, int]) -> dict[str, int]:
        source = context.operands[0]
        column = first[1] if g.pitch else 0
        geometry_fields = self._sequence_fields(context) if g.pitch else self.padded_fields(source, "in", *first)
        return {
            **geometry_fields,
            "in_base": source.word(g.first_block + run.start - context.chunk.in_first, None, column),
            "in_plane": source.plane,
            "in_block_step": run.step * source.plane,
            "mode": ConvMode.PACKED if self.packed else ConvMode.BLOCKS,
            "kernel_h": g.kernel[0],
            "kernel_w": g.kernel[1],
            "stride_h": g.stride[0],
            "stride_w": 1 if g.pixels_are_rows else g.stride[1],
            "dilation_h": g.dilation[0],
            "dilation_w": g.dilation[1],
            "in_blocks": run.blocks,
        }

    def _sequence_fields(self, context: TileContext) -> dict[str, int]:
        """Kernel rows that read runs of a sequence: all pixels are inside."""
        geometry, source = self.passes[0][0], context.operands[0]
        if geometry.pixels_are_rows:
            rows = context.rect.width + geometry.kernel[0] - 1
            return {"in_row": geometry.pitch, "in_h": rows, "in_w": geometry.kernel[1]}
        width = self._run_width(self.operand_rect(0, context.rect))
        # Runs that were loaded apart follow one another; in a whole row they are `pitch` words apart.
        row = width if source.row == width else geometry.pitch
        return {"in_row": row, "in_h": geometry.kernel[0], "in_w": width}

    def _weight_fields(self, context: TileContext, run: InputRun, at: int) -> dict[str, int]:
        node = self.node
        use = self._table_use(context)
        if use is TableUse.KEEP:
            at += self.params.table_words
        return {
            "out_blocks": run.count,
            "weight_zero_points": int(self.zero_points),
            # A chunk may wrap in the ring of the weight memory.
            "weights": (context.weights + at) % self.params.weight_words,
            "zp_in": node.zp_in,
            "zp_out": node.zp_out,
            "table": use,
            "continue_sums": int(not context.chunk.first),
        }

    def _table_use(self, context: TileContext) -> TableUse:
        """Loading a table takes a cycle for each of its bytes, so one that the array holds already is stepped over."""
        table = self.node.table
        if table is None:
            return TableUse.NONE
        # Tasks are emitted in the order in which the MAC unit executes them, so the last LOAD is the table in the
        # array.
        if context.held.array == table:
            return TableUse.KEEP
        context.held.array = table
        return TableUse.LOAD

    def _residual_fields(self, context: TileContext, channel: int, rect: Rect) -> dict[str, int]:
        if self.residual is None:
            return {}
        other: Tile = context.operands[1]
        row = {"res_row": 1} if self.passes[0][0].pixels_are_rows else {}
        return {
            **other.fields("res", rect.y0, rect.x0, channel // self.params.rows),
            **row,
            "residual": 1,
            "res_shift": self.residual.shift,
            "res_even": int(self.residual.even),
        }


@schedules(Conv, ConvTranspose)
def schedule_conv(stages: StageList, node: Conv) -> None:
    """One ConvStage; the Add adds it if the convolution performs a residual addition."""
    kernel = (node.weights.shape[2], node.weights.shape[3])
    if stages.is_packed(node):
        kernel = (kernel[0], -(-kernel[1] // stages.params.pixels_per_word))
    strides, dilations = node.strides, node.dilations
    if _reads_runs(stages, node):
        geometry, _ = _runs_of_sequence(node)
        kernel, dilations = geometry.kernel, geometry.dilation
        strides = (1, 1) if geometry.pixels_are_rows else strides
    # A transposed convolution writes every n-th pixel, and reads each.
    transposed = isinstance(node, ConvTranspose)
    fields = window_fields(kernel, (1, 1) if transposed else strides)
    fields |= {"dilation_h": dilations[0], "dilation_w": dilations[1], "out_x": node.strides[1] if transposed else 1}
    check_fields(node, Kind.CONV, fields)
    if not stages.is_packed(node) and is_expressible(node, stages.params) and pays_on_vector_unit(node, stages):
        stages.add(DepthwiseStage(*stages.common(node), node=node, table=node.table), node.output)
    elif node not in stages.residuals.values():
        stages.add(conv_stage(stages, node, node.output), node.output)


def conv_stage(
    stages: StageList, node: Conv, output: str, residual: Affine | None = None, other: str | None = None
) -> ConvStage:
    """The stage that writes tensor `output`: the convolution, plus tensor `other` by the affine `residual` if given."""
    placement = stages.placement
    source = placement.view(node_input(node))
    return ConvStage(
        params=stages.params,
        name=node.name,
        operands=(source,) if other is None else (source, placement.view(other)),
        out=placement.view(output),
        node=node,
        passes=_passes(stages, node),
        group=node.group,
        residual=residual,
    )


def _passes(stages: StageList, node: Conv) -> tuple[tuple[Geometry, Weights], ...]:
    if isinstance(node, ConvTranspose):
        passes = transposed_passes(node.weights, node.strides, node.dilations, node.pads[:2])
        # With groups, blocks belong to output blocks.
        return tuple(without_blank_blocks(*p, stages.params) if node.group == 1 else p for p in passes)
    if _reads_runs(stages, node):
        return (_runs_of_sequence(node),)
    weights = packed_kernel(node.weights, stages.params) if stages.is_packed(node) else node.weights
    kernel = (weights.shape[2], weights.shape[3])
    return ((Geometry(kernel, (-node.pads[0], -node.pads[1]), node.strides, node.dilations), weights),)


def _reads_runs(stages: StageList, node: Conv) -> bool:
    """Whether taps or pixels of a convolution over a sequence are more, or farther apart, than an instruction's are."""
    taps, dilation, stride = node.weights.shape[3], node.dilations[1], node.strides[1]
    sequence = stages.graph.tensors[node_input(node)].height == 1 and node.weights.shape[2] == 1
    fits = taps <= LARGEST_KERNEL and dilation <= LARGEST_DILATION and stride <= LARGEST_STRIDE
    if not sequence or fits or any(node.pads) or stages.is_packed(node):
        return False
    return int(taps) % _kernel_rows(node) == 0 and (stride <= LARGEST_STRIDE or dilation == 1)


def _kernel_rows(node: Conv) -> int:
    """Kernel rows for the taps of a sequence: one for each tap where the dilation exceeds that of columns."""
    taps, stride = int(node.weights.shape[3]), node.strides[1]
    if stride > LARGEST_STRIDE:
        return 1 if taps <= LARGEST_KERNEL else -(-taps // stride)
    return taps if node.dilations[1] > LARGEST_DILATION else -(-taps // LARGEST_KERNEL)


def _runs_of_sequence(node: Conv) -> tuple[Geometry, Weights]:
    """Geometry and weights of an equal convolution whose kernel rows all read the only row, `pitch` pixels apart.

    Rows of a CONV's input are a number of words apart, and nothing requires that they do not overlap. With a large
    stride, pixels of the result are rows, too, and the pitch is the stride.
    """
    rows, dilation, stride = _kernel_rows(node), node.dilations[1], node.strides[1]
    weights = node.weights.reshape(*node.weights.shape[:2], rows, -1)
    columns = weights.shape[3]
    between = (1, dilation if columns > 1 else 1)
    pitch = stride if stride > LARGEST_STRIDE else columns * dilation
    return Geometry((rows, columns), (0, 0), node.strides, between, pitch=pitch), weights
