"""VDEPTHWISE: a depthwise convolution of one channel block on the vector unit, its constants and its cycles.

A kernel has up to `TAPS` columns. The constants lie in the scratchpad, from `b_base` on:

1. for each kernel row and in it each kernel column one word: the weights (int8) of the block's channels;
2. the biases (int32) of the channels, in 4 words;
3. their scales, in 4 words: 32 bits for each channel, the mantissa in the low bits and from bit 24 on a right shift of
   `SHIFT_BITS` bits. The highest bit of the mantissa, which has `mantissa_bits` bits, is set; if it is not, the scale
   is 0.

A result is the sum of bias, weights and input words, wrapped to 32 bits and requantized as that of a CONV with the same
scale and `zp_out`. The bias contains `-zp_in` times the sum of the weights.

Input row `iy` starts at word `a_base + a_row_off + (iy - iy0) * a_row`, where the offset behind `a_base` is taken
modulo `a_ring` if that is not 0. In a ring, `a_row_off` is less than `a_ring`, and `a_row` at most `a_ring`.

The input words under the output are read row by row of the output, in each row column by column from left to right,
and each column from top to bottom: one word in each cycle, and at least `GROUPS` cycles from the last word of one
output pixel to that of the next. A word is multiplied by the weights of its kernel row for all kernel columns at once:
it belongs to the windows of up to `kernel_w` output pixels.
"""

import struct
from collections.abc import Sequence

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import Scale
from intloom.hw.spec.formats import CHANNEL_BYTES, SCALE_SHIFT_LSB
from intloom.hw.spec.isa import Fields

TAPS = 5
"""Columns of the widest kernel."""
GROUPS = 4
"""Groups of a word's channels that are requantized one after the other, one a cycle."""
SHIFT_BITS = 7
"""Width of the right shift in a scale word."""


def constant_words(kernel_h: int, kernel_w: int) -> int:
    """Words of the constants of one block: its weights, biases and scales."""
    return kernel_h * kernel_w + CHANNEL_BYTES


def normalized(scale: Scale, mantissa_bits: int) -> Scale:
    """The same scale with the mantissa's top bit set; a mantissa of 0 has a shift of 0."""
    if scale.mantissa == 0:
        return Scale(0, 0)
    up = mantissa_bits - scale.mantissa.bit_length()
    return Scale(scale.mantissa << up, scale.shift + up)


def pack_depthwise_scale(scale: Scale, mantissa_bits: int) -> int:
    """The scale word: a normalized mantissa of `mantissa_bits` in the low bits, and its right shift above bit 23."""
    fits = not scale.mantissa >> mantissa_bits
    found = normalized(scale, mantissa_bits) if fits else scale
    if not fits or not 0 <= found.shift < 1 << SHIFT_BITS:
        raise EncodingError(
            f"a scale must have a mantissa of {mantissa_bits} bits and a shift below {1 << SHIFT_BITS}, not {scale}"
        )
    return found.mantissa | found.shift << SCALE_SHIFT_LSB


def unpack_depthwise_scale(word: int, mantissa_bits: int) -> Scale:
    """The scale in a scale word; without the mantissa's top bit the scale is 0. Other bits are ignored."""
    mantissa = word & ((1 << mantissa_bits) - 1)
    shift = word >> SCALE_SHIFT_LSB & ((1 << SHIFT_BITS) - 1)
    return Scale(mantissa, shift) if mantissa >> (mantissa_bits - 1) else Scale(0, shift)


def pack_depthwise(
    weights: Sequence[Sequence[Sequence[int]]], biases: Sequence[int], scales: Sequence[Scale], mantissa_bits: int
) -> bytes:
    """The constants of one block; `weights[ky][kx]` has the weight of every channel."""
    return b"".join(
        [
            *(struct.pack(f"{len(tap)}b", *tap) for row in weights for tap in row),
            *(struct.pack("<i", bias) for bias in biases),
            *(struct.pack("<I", pack_depthwise_scale(scale, mantissa_bits)) for scale in scales),
        ]
    )


def walk_columns(i: Fields) -> int:
    """Input columns that are read for each output row."""
    return (i["out_w"] - 1) * i["stride_w"] + i["kernel_w"]


def walk_words(i: Fields) -> int:
    """Input words that are read; those outside the input are not read from memory, but take as many cycles."""
    return i["out_h"] * walk_columns(i) * i["kernel_h"]


def first_walk_cycles(i: Fields) -> int:
    """Cycles from the first input word of an output row to the one that completes its first result."""
    return max(i["kernel_h"] * i["kernel_w"], GROUPS)


def result_cycles(i: Fields) -> int:
    """Cycles from a result to the next one of its row."""
    return max(i["stride_w"] * i["kernel_h"], GROUPS)


def walk_cycles(i: Fields) -> int:
    """Cycles from the first input word to the last one: results are at least `GROUPS` cycles apart."""
    return i["out_h"] * (first_walk_cycles(i) + (i["out_w"] - 1) * result_cycles(i))
