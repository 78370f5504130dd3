"""The constant image: words, sharing, and the bytes that a CONV finds."""

import numpy as np

from intloom.compiler.emit.constants import ConstantImage, channel_parameters, pack_blocks, residual_constants
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.params import preset


def test_equal_constants_are_stored_once_and_start_at_words():
    image = ConstantImage(preset("base"))
    assert [image.add(b"a" * 17), image.add(b"b" * 16), image.add(b"a" * 17)] == [0, 2, 0]
    assert image.words == 3
    assert image.to_bytes() == b"a" * 17 + bytes(15) + b"b" * 16


def test_residual_constants_fill_whole_words():
    affine = Affine(-5, 7, -(1 << 40), 17)
    for name in ("nano", "base", "large"):
        params = preset(name)
        data = residual_constants(affine, params)
        assert len(data) == params.residual_words * params.word_bytes
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
    packed = pack_blocks(parameters, tiles)
    assert packed.shape == (2, 32 + 48)
    assert (packed[:, 32:] == 255).all()
