"""Constants of VDEPTHWISE, and the words and cycles of its walk."""

import struct
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import MAX_SHIFT, RoundingMode, Scale, requantize
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.params import PRESETS, preset
from intloom.hw.spec.vector_depthwise import (
    GROUPS,
    SHIFT_BITS,
    constant_words,
    normalized,
    pack_depthwise,
    pack_depthwise_scale,
    unpack_depthwise_scale,
    walk_columns,
    walk_cycles,
    walk_words,
)

bits = st.integers(8, 24)
SMALL = st.integers(1, 6)


@given(bits, st.data())
def test_a_scale_word_gives_the_scale_back(mantissa_bits: int, data: st.DataObject) -> None:
    scale = Scale(data.draw(st.integers(0, (1 << mantissa_bits) - 1)), data.draw(st.integers(0, MAX_SHIFT)))
    word = pack_depthwise_scale(scale, mantissa_bits)
    found = unpack_depthwise_scale(word, mantissa_bits)
    assert float(found) == float(scale)
    assert found == normalized(scale, mantissa_bits)
    assert found.mantissa >> mantissa_bits - 1 == (scale.mantissa > 0)
    assert word >> 24 + SHIFT_BITS == 0


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(1, (1 << 24) - 1), st.integers(0, MAX_SHIFT))
def test_normalized_scales_requantize_equally(total: int, mantissa: int, shift: int) -> None:
    scale = Scale(mantissa, shift)
    for match in RoundingMode:
        assert requantize(total, scale, 3, match) == requantize(total, normalized(scale, 24), 3, match)


def test_without_the_highest_bit_the_scale_is_0() -> None:
    assert unpack_depthwise_scale(0x05_7FFFFF, 24) == Scale(0, 5)
    assert unpack_depthwise_scale(0x85_800001, 24) == Scale(0x80_0001, 5)
    # Bits between mantissa and shift are ignored.
    assert unpack_depthwise_scale(0x05_FFFF81, 8) == Scale(0x81, 5)


@pytest.mark.parametrize("scale", [Scale(1 << 24, 0), Scale(1 << 23, 1 << SHIFT_BITS), Scale(1 << 23, -1)])
def test_a_scale_that_does_not_fit_is_refused(scale: Scale) -> None:
    with pytest.raises(EncodingError, match="24 bits and a shift below 128"):
        pack_depthwise_scale(scale, 24)


@pytest.mark.parametrize("params", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("kernel", [(1, 3), (3, 5), (15, 1)])
def test_constants_are_weights_by_tap_then_biases_then_scales(params, kernel: tuple[int, int]) -> None:
    kernel_h, kernel_w = kernel
    rows, columns = params.rows, range(kernel_w)
    weights = [[[(7 * ky + 3 * kx + c) % 256 - 128 for c in range(rows)] for kx in columns] for ky in range(kernel_h)]
    biases = [(-1) ** c * (c << 20) for c in range(rows)]
    scales = [Scale(1 << 23 | c, c) for c in range(rows)]
    data = pack_depthwise(weights, biases, scales, 24)
    assert len(data) == constant_words(kernel_h, kernel_w) * params.word_bytes
    for ky, kx in product(range(kernel_h), range(kernel_w)):
        word = data[(kernel_w * ky + kx) * rows :][:rows]
        assert [b - 256 if b > 127 else b for b in word] == weights[ky][kx]
    numbers = data[kernel_w * kernel_h * rows :]
    assert list(struct.unpack(f"<{rows}i", numbers[: 4 * rows])) == biases
    assert list(struct.unpack(f"<{rows}I", numbers[4 * rows :])) == [s.mantissa | s.shift << 24 for s in scales]


def _issues(out_h: int, out_w: int, kernel_h: int, kernel_w: int, stride_w: int) -> list[int]:
    """Cycles in which the words issue, from 0 on."""
    found: list[int] = []
    # The first result may follow at once.
    cycle, result = 0, -GROUPS
    for _ in range(out_h):
        for column in range((out_w - 1) * stride_w + kernel_w):
            for row in range(kernel_h):
                if row == kernel_h - 1 and column >= kernel_w - 1 and (column - kernel_w + 1) % stride_w == 0:
                    result = cycle = max(cycle, result + GROUPS)
                found.append(cycle)
                cycle += 1
    return found


@given(SMALL, SMALL, st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))
def test_the_walk_reads_a_word_a_cycle_and_ends_pixels_at_least_four_cycles_apart(
    out_h: int, out_w: int, kernel_h: int, kernel_w: int, stride_w: int
) -> None:
    i = make(Kind.VDEPTHWISE, out_h=out_h, out_w=out_w, kernel_h=kernel_h, kernel_w=kernel_w, stride_w=stride_w)
    issues = _issues(out_h, out_w, kernel_h, kernel_w, stride_w)
    assert walk_words(i) == len(issues) == out_h * walk_columns(i) * kernel_h
    # The first row of the output begins without a result before it.
    early = max(0, GROUPS - kernel_h * kernel_w)
    assert issues[-1] + 1 == walk_cycles(i) - early


def test_hardware_without_whole_groups_in_a_slice_has_no_depthwise_convolutions() -> None:
    base = preset("base")
    assert base.vector_depthwise
    assert base.depthwise_lanes == 4
    assert base.replace(vector_lanes=4).vector_depthwise
    assert not base.replace(vector_lanes=2).vector_depthwise
    assert not preset("nano").vector_depthwise
