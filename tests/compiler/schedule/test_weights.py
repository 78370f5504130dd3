"""The constant image: words, sharing, and the bytes that a CONV finds."""

import numpy as np
import pytest

from intloom.compiler.schedule.stages.weights import (
    channel_parameters,
    dense_tiles,
    pack_blocks,
    residual_constants,
)
from intloom.hw.spec.arith import Affine, Scale
from intloom.hw.spec.formats import pack_channels, pack_residual, pack_tile, pack_zero_points, tile_order
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.params import PRESETS, preset


def test_residual_constants_fill_whole_words():
    affine = Affine(-5, 7, -(1 << 40), 17)
    for name in ("nano", "base", "large"):
        params = preset(name)
        data = residual_constants(affine, params)
        assert len(data) == params.residual_words * params.word_bytes
        assert data.startswith(pack_residual(affine))
        assert int.from_bytes(data[:4], "little", signed=True) == -5
        assert int.from_bytes(data[8:16], "little", signed=True) == -(1 << 40)


def test_channel_parameters_are_biases_then_packed_scales():
    params = preset("nano")
    bias = np.arange(-3, 3, dtype=np.int32)
    scales = np.full(6, 0xABCDEF, np.uint32), np.arange(6, dtype=np.uint8)
    blocks = channel_parameters(bias, *scales, params)
    assert blocks.shape == (2, params.channel_words * params.word_bytes)
    assert blocks[1, :16].view("<i4").tolist() == [1, 2, 0, 0]
    assert blocks[1, 16:].view("<u4").tolist() == [0x04ABCDEF, 0x05ABCDEF, 0, 0]


def test_blocks_are_parameters_followed_by_tiles():
    parameters = np.zeros((2, 32), np.uint8)
    tiles = np.full((2, 3, 4, 4), -1, np.int8)
    packed = pack_blocks(parameters, tiles, preset("nano"))
    assert packed.shape == (2, 32 + 48)
    assert (packed[:, 32:] == 255).all()


@pytest.mark.parametrize("params", [PRESETS["nano"], PRESETS["base"].replace(cols=4, lanes=4, lut_products=0)])
@pytest.mark.parametrize("nine_bits", [False, True])
def test_whole_arrays_are_packed_as_the_specification_packs_one_block(params, nine_bits):
    rng = np.random.default_rng(3)
    kernel, channels, inputs = (3, 2), 2 * params.cols, 2 * params.rows
    weights = stored = rng.integers(-128, 128, (channels, inputs, *kernel)).astype(np.int8)
    zero_points = rng.integers(-128, 128, channels)
    if nine_bits:
        # With both ends of its bytes, a channel has one zero point only.
        stored[:, 0, 0] = -128, 127
        weights = stored.astype(np.int16) - zero_points.astype(np.int16).reshape(-1, 1, 1, 1)
    bias = rng.integers(-(1 << 31), 1 << 31, channels).astype(np.int32)
    mantissa = rng.integers(0, 1 << 24, channels).astype(np.uint32)
    shift = rng.integers(0, 64, channels).astype(np.uint8)
    packed = pack_blocks(channel_parameters(bias, mantissa, shift, params), dense_tiles(weights, params), params)
    conv = make(Kind.CONV, kernel_h=kernel[0], kernel_w=kernel[1], in_blocks=2, out_blocks=2)
    for number, block in enumerate(packed):
        own = slice(number * params.cols, (number + 1) * params.cols)
        scales = [Scale(int(m), int(s)) for m, s in zip(mantissa[own], shift[own], strict=True)]
        expected = pack_channels(bias[own].tolist(), scales)
        if nine_bits:
            expected += pack_zero_points(zero_points[own].tolist(), params.word_bytes)
        for y, x, k in tile_order(conv):
            expected += pack_tile(stored[own, k * params.rows : (k + 1) * params.rows, y, x].tolist())
        assert block.tobytes() == expected
