"""Memory formats: exact bytes, and packing and unpacking as inverses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import EncodingError
from intloom.hw.spec import formats
from intloom.hw.spec.arith import Affine, Scale
from intloom.hw.spec.conv_stream import conv_stream
from intloom.hw.spec.isa import Kind, TableUse, make
from intloom.hw.spec.params import PRESETS, HardwareParams

SCALES = st.builds(Scale, st.integers(0, (1 << 24) - 1), st.integers(0, 63))
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


def test_a_scale_word_has_the_shift_above_the_mantissa() -> None:
    assert formats.pack_scale(Scale(0x800001, 0x2A)) == 0x2A800001


@given(SCALES)
def test_scales_come_back(scale: Scale) -> None:
    assert formats.unpack_scale(formats.pack_scale(scale)) == scale


@pytest.mark.parametrize("scale", [Scale(1 << 24, 0), Scale(-1, 0), Scale(0, 64), Scale(0, -1)])
def test_a_scale_that_does_not_fit_is_refused(scale: Scale) -> None:
    with pytest.raises(EncodingError, match="24 bits and a shift of at most 63"):
        formats.pack_scale(scale)


def test_residual_constants_are_two_factors_and_a_constant() -> None:
    data = formats.pack_residual(Affine(1, -2, 3, 17, even=True))
    assert data.hex() == "01000000feffffff0300000000000000"
    assert formats.unpack_residual(data, 17, even=True) == Affine(1, -2, 3, 17, even=True)


@given(st.lists(st.tuples(INT32, SCALES), min_size=1, max_size=8))
def test_channel_constants_come_back(channels: list[tuple[int, Scale]]) -> None:
    biases, scales = [b for b, _ in channels], [s for _, s in channels]
    data = formats.pack_channels(biases, scales)
    assert len(data) == formats.CHANNEL_BYTES * len(channels)
    assert data[:4] == biases[0].to_bytes(4, "little", signed=True)
    assert formats.unpack_channels(data) == (biases, scales)


def test_a_tile_has_a_word_for_each_column() -> None:
    assert formats.pack_tile([[1, -1], [2, -2]]) == b"\x01\xff\x02\xfe"


def test_zero_points_fill_whole_words() -> None:
    assert formats.pack_zero_points([1, -1, 127, -128], 16).hex() == "01ff7f80" + 12 * "00"
    assert len(formats.pack_zero_points([0] * 32, 4)) == 32


def test_tiles_are_ordered_by_kernel_row_kernel_column_and_input_block() -> None:
    conv = make(Kind.CONV, kernel_h=2, kernel_w=3, in_blocks=2)
    order = list(formats.tile_order(conv))
    assert len(order) == formats.conv_tiles(conv) == 12
    assert order[:3] == [(0, 0, 0), (0, 0, 1), (0, 1, 0)]
    assert order[6] == (1, 0, 0)


@pytest.mark.parametrize("params", PRESETS.values(), ids=PRESETS)
def test_a_stream_is_table_residual_constants_and_blocks(params: HardwareParams) -> None:
    conv = make(Kind.CONV, table=TableUse.LOAD, residual=1, kernel_h=3, out_blocks=2)
    stream = conv_stream(conv, params)
    word = params.word_bytes
    assert stream.residual_start * word == formats.TABLE_BYTES
    assert (stream.blocks_start - stream.residual_start) * word == max(formats.RESIDUAL_BYTES, word)
    assert stream.block_words * word == formats.CHANNEL_BYTES * params.cols + 3 * params.cols * params.rows
    assert stream.words == stream.blocks_start + 2 * stream.block_words
    shifted = conv_stream(conv.with_fields(weight_zero_points=1), params)
    assert (shifted.block_words - stream.block_words) * word == len(formats.pack_zero_points([0] * params.cols, word))
    kept = conv_stream(conv.with_fields(table=TableUse.KEEP, residual=0), params)
    assert kept.blocks_start == 0


def test_a_move_is_planes_of_runs_of_words() -> None:
    assert formats.move_words(make(Kind.LOAD, n0=5, n1=3, n2=2)) == 30
