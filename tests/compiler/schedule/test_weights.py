"""The bytes of constants that a CONV finds."""

import numpy as np
import pytest

from intloom.compiler.schedule.stages.weights import (
    InputRun,
    block_tiles,
    channel_parameters,
    pack_blocks,
)
from intloom.hw.spec.arith import Scale
from intloom.hw.spec.formats import pack_channels, pack_tile, pack_zero_points, tile_order
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.params import PRESETS


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
    run = InputRun(first=0, count=2, start=0, step=0, blocks=2)
    tiles = np.stack([block_tiles(weights, run, number, 1, params) for number in (0, 1)])
    packed = pack_blocks(channel_parameters(bias, mantissa, shift, params), tiles, params)
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
