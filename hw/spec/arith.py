"""Fixed-point semantics: every rounding, shift and saturation, in plain Python integers.

The golden model implements the same functions for numpy arrays. The RTL is tested and formally verified against this
module.

Requantization converts an int32 sum to int8 with the fp32 scale `mantissa * 2**-shift`. There are two rounding modes:

* `exact`: the exact product, rounded once, ties to even.
* `ort`: the result of fp32 arithmetic, `rint(float32(acc) * float32(scale))`, as in onnxruntime's x86 kernels.
"""

import struct
from dataclasses import dataclass
from enum import StrEnum

from intloom.common.errors import EncodingError

INT8_MIN = -128
INT8_MAX = 127
LARGEST_DIFFERENCE = INT8_MAX - INT8_MIN
"""Magnitude of an int8 minus a zero point."""
WEIGHT_BITS = 9
"""Width of a weight: an int8 minus an int8 zero point. Its product with an int8 has 16 bits, as that of two int8."""
FP32_SIGNIFICAND_BITS = 24
SHIFT_BITS = 6
MAX_SHIFT = (1 << SHIFT_BITS) - 1


class RoundingMode(StrEnum):
    """Rounding mode of the requantizer."""

    ORT = "ort"
    EXACT = "exact"


def saturate(value: int, low: int = INT8_MIN, high: int = INT8_MAX) -> int:
    """Clamp `value` into [low, high]."""
    return max(low, min(value, high))


def wrap(value: int, bits: int) -> int:
    """Two's complement of `value` in `bits` bits, as a signed number."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def shift_round_even(value: int, shift: int) -> int:
    """`value * 2**-shift`, rounded to nearest, ties to even."""
    if shift == 0:
        return value
    quotient = value >> shift
    remainder = value - (quotient << shift)
    half = 1 << (shift - 1)
    return quotient + (remainder > half or (remainder == half and quotient & 1 == 1))


def shift_round_up(value: int, shift: int) -> int:
    """`value * 2**-shift`, rounded to nearest, ties towards plus infinity."""
    return value if shift == 0 else (value + (1 << (shift - 1))) >> shift


def round_significand(magnitude: int, bits: int = FP32_SIGNIFICAND_BITS) -> int:
    """A non-negative integer rounded to `bits` significant bits, ties to even, as a conversion to float does."""
    excess = magnitude.bit_length() - bits
    return magnitude if excess <= 0 else shift_round_even(magnitude, excess) << excess


@dataclass(frozen=True)
class Scale:
    """A positive real factor `mantissa * 2**-shift`; mantissa 0 encodes a factor so small that every result is 0."""

    mantissa: int
    shift: int

    def __float__(self) -> float:
        return self.mantissa * 2.0**-self.shift


def to_fp32(value: float) -> float:
    """The nearest fp32 number."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def scale_from_float(factor: float, mantissa_bits: int = FP32_SIGNIFICAND_BITS) -> Scale:
    """The mantissa and shift of an fp32 factor; exact at 24 mantissa bits, rounded half to even below.

    A factor of `2**mantissa_bits` or more becomes the largest one without a shift: both send every sum but 0 beyond the
    clamp.

    Raises
    ------
    EncodingError
        The factor is negative or not finite.
    """
    single = to_fp32(factor) if abs(factor) < 3.0e38 else float("inf")
    if not 0.0 <= single < float("inf"):
        raise EncodingError(f"requantization scale must be finite and not negative, not {factor!r}")
    if single == 0.0:
        return Scale(0, 0)
    numerator, denominator = single.as_integer_ratio()
    shift = denominator.bit_length() - 1
    up = mantissa_bits - numerator.bit_length()
    mantissa = numerator << up if up >= 0 else shift_round_even(numerator, -up)
    shift += up
    if mantissa.bit_length() > mantissa_bits:
        mantissa, shift = mantissa >> 1, shift - 1
    if shift < 0:
        return Scale((1 << mantissa_bits) - 1, 0)
    if shift > MAX_SHIFT:
        # A 32-bit sum times the mantissa stays below half of 2**MAX_SHIFT here, so every result is zero.
        dropped = shift - MAX_SHIFT
        mantissa = 0 if dropped > mantissa_bits else shift_round_even(mantissa, dropped)
        shift = MAX_SHIFT if mantissa else 0
    return Scale(mantissa, shift)


def _requantize_magnitude_ort(magnitude: int, scale: Scale) -> int:
    """Round `magnitude * scale` as fp32 does: operand to 24 bits, product to 24 bits, then to an integer."""
    product = round_significand(magnitude) * scale.mantissa
    if scale.shift == 0:
        return product
    quotient = product >> scale.shift
    fraction = product - (quotient << scale.shift)
    half = 1 << (scale.shift - 1)
    # Half an fp32 ulp of the product. A product this close to a tie is the tie itself in fp32, and rounds to even.
    bits = product.bit_length()
    blur = 1 << (bits - FP32_SIGNIFICAND_BITS - 1) if bits > FP32_SIGNIFICAND_BITS else 0
    if abs(fraction - half) <= blur:
        return quotient + (quotient & 1)
    return quotient + (fraction > half)


def requantize(acc: int, scale: Scale, zero_point: int, match: RoundingMode) -> int:
    """An int32 sum to an int8: `clamp(zero_point + round(acc * scale))`."""
    if match is RoundingMode.EXACT:
        rounded = shift_round_even(acc * scale.mantissa, scale.shift)
    else:
        magnitude = _requantize_magnitude_ort(abs(acc), scale)
        rounded = -magnitude if acc < 0 else magnitude
    return saturate(rounded + zero_point)


FACTOR_BITS = FP32_SIGNIFICAND_BITS + 1
"""Bits of an affine factor: those of a float32 significand, and the sign."""
CONSTANT_BITS = 44
"""Bits of an affine constant, with its sign: the sum then has at most the 48 bits of an adder in a DSP block."""
MAX_AFFINE_SHIFT = CONSTANT_BITS - 1
"""The largest right shift of an affine operation."""


@dataclass(frozen=True)
class Affine:
    """Coefficients of the affine operation `clamp((x1*m1 + x2*m2 + c) * 2**-shift)`.

    `c` contains the zero points but not the rounding constant of half-up rounding. If `even` is true, the shift rounds
    ties to even; else it rounds ties up.
    """

    m1: int
    m2: int
    c: int
    shift: int
    even: bool = False

    @property
    def fields(self) -> dict[str, int]:
        """The fields of an instruction that hold the coefficients."""
        return {"m1": self.m1, "m2": self.m2, "c": self.c, "shift": self.shift, "even": int(self.even)}


def affine(x1: int, x2: int, k: Affine) -> int:
    """The affine operation of the vector unit and of the residual adder; see `Affine`."""
    total = x1 * k.m1 + x2 * k.m2 + k.c
    return saturate(shift_round_even(total, k.shift) if k.even else shift_round_up(total, k.shift))


def add(a: int, b: int, k: Affine) -> int:
    """Quantized addition of two int8 values."""
    return affine(a, b, k)


def multiply(a: int, b: int, zero_a: int, zero_b: int, k: Affine) -> int:
    """Quantized product of two int8 values: `(a - zero_a) * (b - zero_b)` scaled by `k.m1` (`k.m2` is ignored)."""
    return affine((a - zero_a) * (b - zero_b), 0, k)


def average(total: int, k: Affine) -> int:
    """Quantized average: the sum of a window scaled by `k.m1`; `k.c` contains both zero points."""
    return affine(total, 0, k)
