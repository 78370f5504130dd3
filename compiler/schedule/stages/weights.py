"""Weights and constants as the hardware reads them: weight tiles, channel parameters, residual constants.

A `Geometry` is one pass over the output: an ordinary convolution has one, a transposed one has one for each phase of
its stride.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import Conv, ConvTranspose, Tensor
from intloom.compiler.ir.ops.conv import ArrayWeights
from intloom.compiler.program.cost import array_cycles
from intloom.compiler.program.memory import PIXEL_CHANNELS
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine
from intloom.hw.spec.formats import SCALE_SHIFT_LSB, pack_residual
from intloom.hw.spec.params import HardwareParams

Weights = ArrayWeights
"""[out channel, in channel of the group, kernel row, kernel column]."""


@dataclass(frozen=True)
class Geometry:
    """How output pixels of one pass read the input; `first` is the input pixel under the kernel's corner at (0, 0).

    The pass makes output pixels `offset + step * k`; `first` and `stride` are for k.
    """

    kernel: tuple[int, int]
    first: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    offset: tuple[int, int] = (0, 0)
    step: tuple[int, int] = (1, 1)
    first_block: int = 0
    """The first input block that the pass reads."""
    pitch: int = 0
    """Pixels from one kernel row to the next where all of them read the only row of a sequence; 0 in an image."""

    @property
    def pixels_are_rows(self) -> bool:
        """Whether pixels of a sequence are rows of the instruction, as far apart as its kernel rows."""
        return 0 < self.pitch == self.stride[1]

    @property
    def reach(self) -> tuple[int, int]:
        """Input rows and columns from a window's first to its last pixel."""
        rows, columns = (
            (self.kernel[0] - 1) * self.dilation[0] + 1,
            (self.kernel[1] - 1) * self.dilation[1] + 1,
        )
        return (1, (self.kernel[0] - 1) * self.pitch + columns) if self.pitch else (rows, columns)


@dataclass(frozen=True)
class InputRun:
    """Output blocks (of cols channels) from `first` on: the k-th reads `blocks` input blocks from start + k*step."""

    first: int
    count: int
    start: int
    step: int
    blocks: int


def _input_range(block: int, params: HardwareParams, out_channels: int, per_group: int, group: int) -> tuple[int, int]:
    """The half-open range of input blocks that an output block's channels depend on."""
    each = out_channels // group
    first = block * params.cols // each
    last = (min((block + 1) * params.cols, out_channels) - 1) // each
    return first * per_group // params.rows, -(-(last + 1) * per_group // params.rows)


@cache
def input_runs(
    blocks: range, params: HardwareParams, out_channels: int, per_group: int, group: int
) -> tuple[InputRun, ...]:
    """Output blocks grouped so that within a run the input block advances evenly, which one CONV can do."""
    ranges = [_input_range(b, params, out_channels, per_group, group) for b in blocks]
    total = -(-per_group * group // params.rows)
    width = max(hi - lo for lo, hi in ranges)
    # All blocks of a run read `width` input blocks. A block near the end starts earlier, so that its reads stay inside
    # the tensor; the additional lanes have zero weights.
    starts = [min(lo, total - width) for lo, _ in ranges]
    runs: list[InputRun] = []
    at = 0
    while at < len(starts):
        step = starts[at + 1] - starts[at] if at + 1 < len(starts) else 0
        end = at + 1
        # A CONV steps by a fixed, non-negative number of blocks, so a change of step ends the run.
        while end < len(starts) and starts[end] - starts[end - 1] == step and step >= 0:
            end += 1
        runs.append(InputRun(blocks[at], end - at, starts[at], step if end - at > 1 else 0, width))
        at = end
    return tuple(runs)


def block_tiles(weights: Weights, run: InputRun, number: int, group: int, params: HardwareParams) -> Weights:
    """Weight tiles [tile, column, lane] of the output block of this number in a run."""
    block, start, in_blocks = run.first + number, run.start + number * run.step, run.blocks
    channels, per_group, kernel_h, kernel_w = weights.shape
    # Lanes outside an output channel's own group keep zero weights, so one block may hold several groups.
    tiles = np.zeros((kernel_h, kernel_w, params.cols, in_blocks * params.rows), weights.dtype)
    each = channels // group
    stop = min((block + 1) * params.cols, channels)
    for g in range(block * params.cols // each, (stop - 1) // each + 1):
        low, high = max(g * each, block * params.cols), min((g + 1) * each, stop)
        # Where chunks add to the same sums, a run has some of the input blocks only.
        lane = g * per_group - start * params.rows
        first, end = max(0, -lane), min(per_group, in_blocks * params.rows - lane)
        part = weights[low:high, first:end].transpose(2, 3, 0, 1)
        tiles[..., low - block * params.cols : high - block * params.cols, lane + first : lane + end] = part
    split = tiles.reshape(kernel_h, kernel_w, params.cols, in_blocks, params.rows)
    return split.transpose(0, 1, 3, 2, 4).reshape(-1, params.cols, params.rows)


def packed_kernel(weights: Weights, params: HardwareParams) -> Weights:
    """Weights of a packed convolution: kernel columns become groups of pixels, lanes are pixel * 4 + channel."""
    channels, inputs, kernel_h, kernel_w = weights.shape
    group = params.pixels_per_word
    groups = -(-kernel_w // group)
    # Columns beyond the kernel have zero weights: the array reads whole words of pixels.
    wide = np.zeros((channels, PIXEL_CHANNELS, kernel_h, groups * group), weights.dtype)
    wide[:, :inputs, :, :kernel_w] = weights
    split = wide.reshape(channels, PIXEL_CHANNELS, kernel_h, groups, group)
    return split.transpose(0, 4, 1, 2, 3).reshape(channels, group * PIXEL_CHANNELS, kernel_h, groups)


def _phase_taps(phase: int, pad: int, size: int, stride: int, dilation: int) -> tuple[list[int], int, int]:
    """Kernel taps of one output phase along one axis, ordered by input offset, the first offset, and their spacing."""
    # In the order of input offsets, the taps of one phase are an ordinary kernel whose dilation is their spacing.
    taps = sorted(
        ((phase + pad - k * dilation) // stride, k) for k in range(size) if (phase + pad - k * dilation) % stride == 0
    )
    if not taps:
        return [], 0, 1
    return [k for _, k in taps], taps[0][0], taps[1][0] - taps[0][0] if len(taps) > 1 else 1


def transposed_passes(
    weights: Weights, stride: tuple[int, int], dilation: tuple[int, int], pads: tuple[int, int]
) -> list[tuple[Geometry, Weights]]:
    """A transposed convolution as ordinary ones, one for each phase; phases without taps get zero weights."""
    kernel = weights.shape[2:]
    passes: list[tuple[Geometry, Weights]] = []
    for py in range(stride[0]):
        rows, y, dy = _phase_taps(py, pads[0], kernel[0], stride[0], dilation[0])
        for px in range(stride[1]):
            columns, x, dx = _phase_taps(px, pads[1], kernel[1], stride[1], dilation[1])
            # A phase without taps still has outputs, which are the bias alone.
            blank = not rows or not columns
            part = np.zeros_like(weights[..., :1, :1]) if blank else weights[..., rows, :][..., columns]
            geometry = Geometry(
                kernel=(part.shape[2], part.shape[3]),
                first=(y, x),
                stride=(1, 1),
                dilation=(1, 1) if blank else (dy, dx),
                offset=(py, px),
                step=stride,
            )
            passes.append((geometry, part))
    return passes


def without_blank_blocks(geometry: Geometry, weights: Weights, params: HardwareParams) -> tuple[Geometry, Weights]:
    """A pass that reads only the input blocks from the first to the last that has weights."""
    used = np.flatnonzero(weights.any(axis=(0, 2, 3)))
    if not used.size:
        return geometry, weights
    first, stop = used[0] // params.rows, -(-(used[-1] + 1) // params.rows)
    return replace(geometry, first_block=int(first)), weights[:, first * params.rows : stop * params.rows]


def residual_constants(affine: Affine, params: HardwareParams) -> bytes:
    """The residual adder's constants as a CONV finds them: m1 and m2 (int32), c (int64), padded to whole words."""
    return pack_residual(affine).ljust(params.residual_words * params.word_bytes, b"\0")


def surplus_bits(mantissa: NDArray[np.integer], available: int) -> NDArray[np.integer]:
    """Bits of each mantissa beyond those of the hardware."""
    surplus: NDArray[np.integer] = np.maximum(np.frexp(mantissa.astype(np.float64))[1] - available, 0)
    return surplus


def channel_parameters(
    bias: NDArray[np.int32], mantissa: NDArray[np.uint32], shift: NDArray[np.uint8], params: HardwareParams
) -> NDArray[np.uint8]:
    """Biases and packed scales of every output block: [block, bytes]; missing channels are zero."""
    channels = len(bias)
    blocks = -(-channels // params.cols)
    words = np.zeros((blocks, 2, params.cols), np.uint32)
    flat_bias = np.zeros(blocks * params.cols, np.int32)
    flat_scale = np.zeros(blocks * params.cols, np.uint32)
    flat_bias[:channels] = bias
    # Without low bits that are 0 (`check_widths`), the mantissa fits hardware with fewer bits.
    surplus = surplus_bits(mantissa, params.mantissa_bits)
    flat_scale[:channels] = mantissa.astype(np.uint32) >> surplus | (shift - surplus) << SCALE_SHIFT_LSB
    words[:, 0] = flat_bias.view(np.uint32).reshape(blocks, params.cols)
    words[:, 1] = flat_scale.reshape(blocks, params.cols)
    return words.reshape(blocks, -1).view(np.uint8)


def pack_blocks(parameters: NDArray[np.uint8], tiles: ArrayWeights, params: HardwareParams) -> NDArray[np.uint8]:
    """Every output block's bytes: its channel parameters, then its weight tiles [block, tile, column, lane].

    Weights of nine bits are stored as int8, with their zero points before the first tile.
    """
    if tiles.dtype == np.int8:
        return np.concatenate([parameters, _flat_bytes(tiles)], axis=1)
    # The value nearest to 0 with which all weights of a column fit.
    low, high = INT8_MIN - tiles.min(axis=(1, 3)), INT8_MAX - tiles.max(axis=(1, 3))
    zero_points = np.clip(0, low, high)
    stored = (tiles + zero_points[:, None, :, None]).astype(np.int8)
    padded = np.zeros((len(tiles), params.zero_point_words * params.word_bytes), np.int8)
    padded[:, : params.cols] = zero_points
    return np.concatenate([parameters, _flat_bytes(padded), _flat_bytes(stored)], axis=1)


def _flat_bytes(blocks: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(blocks).view(np.uint8).reshape(len(blocks), -1)


def kernel_words(node: Conv, params: HardwareParams, *, packed: bool) -> int:
    """Words of the input that a row of the kernel needs; `packed` says that the input is stored as packed pixels."""
    width: int = node.weights.shape[3]
    return -(-width // params.pixels_per_word) if packed else width


def weight_tiles(node: Conv, params: HardwareParams, *, packed: bool) -> int:
    """Weight tiles of an output block of a convolution without groups."""
    inputs, height = int(node.weights.shape[1]), int(node.weights.shape[2])
    return height * kernel_words(node, params, packed=packed) * (1 if packed else -(-inputs // params.rows))


def node_cycles(node: Conv, tensors: Mapping[str, Tensor], params: HardwareParams, *, packed: bool) -> int:
    """Cycles of the array for a convolution without groups, for choices that are made before there are stages."""
    pixels = tensors[node.output].height * tensors[node.output].width
    tiles = weight_tiles(node, params, packed=packed)
    # Every phase of a transposed convolution has its share of the pixels and of the kernel.
    phases = node.strides[0] * node.strides[1] if isinstance(node, ConvTranspose) else 1
    blocks = ceil(len(node.weights) / params.cols)
    nine_bits = node.weights.dtype != np.int8
    return phases * array_cycles(params, ceil(tiles / phases), ceil(pixels / phases), blocks, zero_points=nine_bits)
