"""Estimated cycles of a stage's tiles, for the choice between schedules; the forecast counts the result exactly."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from intloom.compiler.ir import MaxPool
from intloom.compiler.schedule.conv_stage import ConvStage
from intloom.compiler.schedule.depthwise_stage import DepthwiseStage
from intloom.compiler.schedule.geometry import Rect
from intloom.compiler.schedule.softmax_stage import SoftmaxStage
from intloom.compiler.schedule.stage import Stage
from intloom.compiler.schedule.vector_stages import CopyStage, PoolStage
from intloom.hw.spec import timing
from intloom.hw.spec.formats import TABLE_BYTES


def conv_cycles(stage: ConvStage, rows: int, heights: Sequence[int], *, new_table: bool) -> int:
    """Cycles of the array for `rows` rows of a stage whose tasks have these heights; of one task if there are none."""
    p, blocks, passes = stage.params, stage.conv_blocks, len(stage.passes)
    block = _block_cycles(stage, rows, heights)
    busy = max(block, rows * stage.extent[1] * (p.cols // p.lanes) // passes, 2 * p.cols + timing.CONSTANTS_GAP)
    table = TABLE_BYTES if new_table and stage.node.table is not None else 0
    # Constants are requested while the instruction before is executing.
    late = max(0, table + 2 * p.cols + p.cols - block) if table or blocks > 1 else 0
    return passes * (blocks * busy + timing.MAC_GAP) + late


def _block_cycles(stage: ConvStage, rows: int, heights: Sequence[int]) -> int:
    """Cycles of the products of one output block in one pass."""
    p, width = stage.params, stage.extent[1]
    if stage.depthwise:
        return stage.depthwise.for_tiles(heights or (rows,), width).cycles(rows, width)
    _, per_group, kernel_h, kernel_w = (int(n) for n in stage.passes[0][1].shape)
    # The passes of a transposed convolution share the pixels.
    pixels = ceil(rows * width / len(stage.passes))
    tiles = kernel_h * kernel_w * ceil(per_group / p.rows)
    return tiles * max(pixels, ceil(rows * width / p.strip) * p.cols)


def _own_words(stage: Stage, rect: Rect) -> int:
    """Words that a vector stage's own instruction processes for a rectangle of its result."""
    if isinstance(stage, ConvStage | CopyStage):
        return 0
    words = rect.area * stage.out.blocks
    if isinstance(stage, SoftmaxStage):
        return stage.own_slices(rect)
    if isinstance(stage, PoolStage):
        kernel_h, kernel_w = stage.node.kernel
        if isinstance(stage.node, MaxPool):
            rows = stage.operand_rect(0, rect).height
            across = 1 if kernel_w <= timing.SLIDING_TAPS and stage.node.strides[1] == 1 else kernel_w
            down = 1 if kernel_h <= timing.SLIDING_TAPS and stage.node.strides[0] == 1 else kernel_h
            return rect.width * stage.out.blocks * (rows * across + rect.height * down)
        return words * kernel_h * kernel_w
    return words * max(1, len(stage.operands) // 2)


def _own_cycles(stage: Stage, rect: Rect) -> int:
    if isinstance(stage, DepthwiseStage):
        return stage.own_cycles(rect, stage.out.blocks)
    own = _own_words(stage, rect)
    return own * stage.params.vector_slices + (timing.VECTOR_END if own else 0)


def vector_cycles(stage: Stage, rows: int) -> int:
    """Cycles of the vector unit for `rows` rows of a stage: its own instruction and the copies."""
    slices, width = stage.params.vector_slices, stage.extent[1]
    cycles = _own_cycles(stage, Rect(0, rows, 0, width))
    for copy in stage.copies:
        blocks = copy.target_blocks((copy.start, copy.stop))[1]
        words = rows * copy.factors[0] * width * copy.factors[1] * blocks
        cycles += words * slices + timing.VECTOR_END
    return cycles + len(stage.vector_tables) * (TABLE_BYTES + timing.VECTOR_TABLE_LOAD)
