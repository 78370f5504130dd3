"""The constant image: weights, channel parameters and tables, laid out word by word in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.ops.conv import ArrayWeights
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine
from intloom.hw.spec.formats import SCALE_SHIFT_LSB, pack_residual
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import TAPS


class ConstantImage:
    """Grows as constants are added; equal constants are stored once."""

    def __init__(self, params: HardwareParams) -> None:
        self._word = params.word_bytes
        self._chunks: list[bytes] = []
        self._offsets: dict[bytes, int] = {}
        self.words = 0

    def add(self, data: bytes) -> int:
        """Store whole words of data (the last one padded with zeros); gives the first word's number in the image."""
        data += bytes(-len(data) % self._word)
        # Tables that several layers share are stored once.
        if data not in self._offsets:
            self._offsets[data] = self.words
            self._chunks.append(data)
            self.words += len(data) // self._word
        return self._offsets[data]

    def to_bytes(self) -> bytes:
        """The whole image."""
        return b"".join(self._chunks)


def residual_constants(affine: Affine, params: HardwareParams) -> bytes:
    """The residual adder's constants as a CONV finds them: m1 and m2 (int32), c (int64), padded to whole words."""
    return pack_residual(affine).ljust(params.residual_words * params.word_bytes, b"\0")


def surplus_bits(mantissa: NDArray[np.integer], available: int) -> NDArray[np.integer]:
    """Bits of each mantissa beyond those of the hardware."""
    found: NDArray[np.integer] = np.maximum(np.frexp(mantissa.astype(np.float64))[1] - available, 0)
    return found


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
    least, most = INT8_MIN - tiles.min(axis=(1, 3)), INT8_MAX - tiles.max(axis=(1, 3))
    zero_points = np.clip(0, least, most)
    stored = (tiles + zero_points[:, None, :, None]).astype(np.int8)
    padded = np.zeros((len(tiles), params.zero_point_words * params.word_bytes), np.int8)
    padded[:, : params.cols] = zero_points
    return np.concatenate([parameters, _flat_bytes(padded), _flat_bytes(stored)], axis=1)


def depthwise_constants(
    weights: ArrayWeights,
    bias: NDArray[np.int32],
    mantissa: NDArray[np.uint32],
    shift: NDArray[np.uint8],
    params: HardwareParams,
) -> NDArray[np.uint8]:
    """What VDEPTHWISE reads for each channel block, as `pack_depthwise` defines it: [block, bytes].

    `weights` are [channel, kernel row, kernel column]. Missing columns and channels are zero.
    """
    channels, kernel_h, kernel_w = weights.shape
    blocks = -(-channels // params.rows)
    padded = np.zeros((blocks * params.rows, kernel_h, TAPS), np.int8)
    padded[:channels, :, :kernel_w] = weights
    taps = padded.reshape(blocks, params.rows, kernel_h * TAPS).transpose(0, 2, 1)
    words = np.zeros((2, blocks * params.rows), np.uint32)
    words[0, :channels] = bias.view(np.uint32)
    words[1, :channels] = _normalized_scales(mantissa, shift, params.mantissa_bits)
    values = words.reshape(2, blocks, params.rows).transpose(1, 0, 2)
    return np.concatenate([_flat_bytes(taps), _flat_bytes(values)], axis=1)


def _normalized_scales(mantissa: NDArray[np.uint32], shift: NDArray[np.uint8], bits: int) -> NDArray[np.uint32]:
    """Scale words whose mantissa has its top bit set; 0 for a mantissa of 0."""
    up = bits - np.frexp(mantissa.astype(np.float64))[1]
    # Bits below the hardware's are 0 (`check_widths`).
    normal = mantissa.astype(np.int64) << np.maximum(up, 0) >> np.maximum(-up, 0)
    found = normal | (shift + up) << SCALE_SHIFT_LSB
    return np.where(mantissa > 0, found, 0).astype(np.uint32)


def _flat_bytes(blocks: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(blocks).view(np.uint8).reshape(len(blocks), -1)
