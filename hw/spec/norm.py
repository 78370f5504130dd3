"""Integer layer and RMS normalization: constants, widths and semantics, in plain Python integers.

A pixel of N channels has the deviations d = x - zp_in, their sum S (0 without `center`) and the sum Q of their squares,
all exact. V = N*Q - S*S is N*N times the variance in units of the input's scale, and W = 256*V + epsilon. With the
mantissa M of W in base 4, W = M * 4**(t - 8), the reciprocal root R(M) is nearly 2**25 / sqrt(M),
from a table of chords that lie below it.
Factor and offset of the pixel are A = N*R*32 >> t and B = S*R*32 >> t, both 0 if V is 0. A channel's normalized value
z = (d*A - B) >> 6 has 12 fractional bits, and its result is (z*gamma + (beta << 14)) >> 20, clamped to int8. gamma has
8 fractional bits and beta has 6; beta includes the result's zero point and the half that rounds.

The constants of a channel block are `CONSTANT_WORDS` words from `b_base` on. Each group of channels that the vector
unit takes in a cycle, its `softmax_lanes`, has its gammas and then its betas there, as int16. Bytes beyond the channels
have the deviation 0; z wraps in 18 bits, which matters only for them. `blocks` is at most `LARGEST_COUNT` / rows, and
`last_bytes` at most rows.

`error_bound` bounds the distance to the real result.
"""

import math
import struct
from collections.abc import Iterable, Sequence
from fractions import Fraction

from intloom.hw.spec.arith import LARGEST_DIFFERENCE, saturate, wrap

PASSES = 2
"""Times that each word is read: for the sums, and for the results."""
LARGEST_LINE = 32
"""Pixels of a line: their factors and offsets wait between the two passes."""
LINE_BITS = LARGEST_LINE.bit_length()
LARGEST_COUNT = 1024
"""Channels."""
COUNT_BITS = LARGEST_COUNT.bit_length()
EPSILON_BITS = 45
DEVIATION_BITS = 9
SUM_BITS = (LARGEST_COUNT * LARGEST_DIFFERENCE).bit_length() + 1
SQUARE_BITS = (LARGEST_COUNT * LARGEST_DIFFERENCE**2).bit_length()
MANTISSA_BITS = 18
ROOT_BITS = 17
"""Width of R."""
ROOT_EXPONENT = 25
ROOT_SHIFT = 5
FACTOR_BITS = 24
OFFSET_BITS = 33
VALUE_BITS = 18
CONSTANT_BITS = 16
"""Width of gamma and of beta."""
VARIANCE_SHIFT = 8
"""Bits of W below V."""
VALUE_SHIFT = 6
GAMMA_FRACTION = 8
BETA_FRACTION = 6
RESULT_SHIFT = 20
"""Fractional bits of z (12) and of gamma."""
SEGMENT_BITS = 10
"""Bits of a mantissa below the number of its chord."""
CONSTANT_WORDS = 4
"""Words of the constants of a channel block: two bytes of gamma and two of beta for each channel."""


def _segment(index: int) -> tuple[int, int]:
    """R at a segment's start and how much less it is at its end: a chord, lowered until no mantissa's root is less."""
    if index < 1 << MANTISSA_BITS - 2 - SEGMENT_BITS:
        return 0, 0  # a mantissa has one of its two highest bits
    # What is cut off behind a mantissa is less than 1.
    low = (index << SEGMENT_BITS) + 1
    high = low + (1 << SEGMENT_BITS)
    fall = _real_root(low) - _real_root(high)
    steepest = (fall / (1 << SEGMENT_BITS + ROOT_EXPONENT - 1)) ** (-2 / 3)
    sag = _real_root(low) - fall * (steepest - low) / (1 << SEGMENT_BITS) - _real_root(steepest)
    return math.floor(_real_root(low) - sag) - 1, math.ceil(fall)


def _real_root(value: float) -> float:
    return 2.0**ROOT_EXPONENT / math.sqrt(value)


SEGMENTS = tuple(_segment(index) for index in range(1 << MANTISSA_BITS - SEGMENT_BITS))
"""Start and fall of each chord."""
FALL_BITS = max(fall for _, fall in SEGMENTS).bit_length()


def reciprocal_root(mantissa: int) -> int:
    """At most 2**25 / sqrt(mantissa + 1), and near it, for mantissas from 2**16 to 2**18 - 1."""
    start, fall = SEGMENTS[mantissa >> SEGMENT_BITS]
    return start - ((mantissa & (1 << SEGMENT_BITS) - 1) * fall >> SEGMENT_BITS)


def factor_offset(count: int, total: int, squares: int, center: bool, epsilon: int) -> tuple[int, int]:
    """A and B of a pixel with these sums."""
    mean = total if center else 0
    variance = count * squares - mean * mean
    if variance == 0:
        return 0, 0
    w = (variance << VARIANCE_SHIFT) + epsilon
    t = (w.bit_length() - 1) // 2
    root = reciprocal_root((w << 16) >> 2 * t)
    return (count * root << ROOT_SHIFT) >> t, (mean * root << ROOT_SHIFT) >> t


def normalize(
    values: Sequence[int],
    constants: Sequence[tuple[int, int]],
    center: bool,
    zp_in: int,
    epsilon: int,
    counted: int | None = None,
) -> list[int]:
    """The int8 results of a pixel's int8 values, of which the first `counted` are channels.

    `constants` has gamma and beta of each value.
    """
    count = len(values) if counted is None else counted
    deviations = [x - zp_in if k < count else 0 for k, x in enumerate(values)]
    total, squares = sum(deviations), sum(d * d for d in deviations)
    a, b = factor_offset(count, total, squares, center, epsilon)
    scaled = [wrap((d * a - b) >> VALUE_SHIFT, VALUE_BITS) for d in deviations]
    shift = RESULT_SHIFT - BETA_FRACTION
    return [
        saturate((z * gamma + (beta << shift)) >> RESULT_SHIFT)
        for z, (gamma, beta) in zip(scaled, constants, strict=True)
    ]


def integer_constant(gamma: Fraction, beta: Fraction) -> tuple[int, int]:
    """The integers of a channel with the real result z*gamma + beta, in units of the result's scale.

    `beta` includes the zero point. The integers may be too large for `CONSTANT_BITS`.
    """
    return round(gamma * (1 << GAMMA_FRACTION)), round((beta + Fraction(1, 2)) * (1 << BETA_FRACTION))


def fits(constant: tuple[int, int]) -> bool:
    """Whether the hardware can hold these integers."""
    return all(-1 << CONSTANT_BITS - 1 <= n < 1 << CONSTANT_BITS - 1 for n in constant)


def integer_epsilon(epsilon: Fraction, scale: Fraction, count: int) -> int:
    """The epsilon of a normalization over `count` values of this scale, in units of W."""
    return round(epsilon * count * count / (scale * scale) * (1 << VARIANCE_SHIFT))


def pack_constants(constants: Sequence[tuple[int, int]], lanes: int) -> bytes:
    """Gammas, then betas, of each group of `lanes` channels, as int16."""
    groups = [constants[k : k + lanes] for k in range(0, len(constants), lanes)]
    return b"".join(struct.pack(f"<{lanes}h", *numbers) for group in groups for numbers in zip(*group, strict=True))


def unpack_constants(packed: bytes, lanes: int) -> list[tuple[int, int]]:
    """Gamma and beta of each channel."""
    numbers = struct.unpack(f"<{len(packed) // 2}h", packed)
    starts = range(0, len(numbers), 2 * lanes)
    return [(numbers[k + lane], numbers[k + lanes + lane]) for k in starts for lane in range(lanes)]


def root_error(mantissas: Iterable[int] = range(1 << MANTISSA_BITS - 2, 1 << MANTISSA_BITS)) -> Fraction:
    """A bound of the relative error of R, over these mantissas and everything that is cut off behind them."""
    worst = 0
    for mantissa in mantissas:
        square = reciprocal_root(mantissa) ** 2
        if square * (mantissa + 1) > 1 << 2 * ROOT_EXPONENT:
            return Fraction(1)  # larger than the real root
        # In units of 2**-40.
        worst = max(worst, (1 << 40) - math.isqrt(square * mantissa << 80 - 2 * ROOT_EXPONENT))
    return Fraction(worst, 1 << 40)


ROOT_ERROR = Fraction(49, 1 << 20)
"""Bound of `root_error` over all mantissas; a test computes it."""


def error_bound(count: int, gamma: Fraction) -> Fraction:
    """A bound of the distance of results from the real ones, clamped but not rounded, if no channel exceeds `gamma`.

    Rounding epsilon changes W by at most 1/2, and W is at least 256 * (count - 1) if V is not 0: the root's relative
    error from it is at most 5/8 of that of W. With the relative error e of the root in all, A = A'(1 + e) - a and
    B = B'(1 + e) - b, where A' and B' are real, and a and b from 0 to 1. So z differs from the real
    z' = (d*A' - B') / 64 by at most |z'|*e + (255 + 1)/64 + 1 in units of its last bit. |z'| is at most sqrt(count), as
    the squares of all z' add up to at most count. The errors of gamma and beta are at most half of their last bits.
    The result's shift rounds by at most 1/2, since beta includes the half.
    """
    largest = Fraction(math.isqrt(count << 20) + 1, 1 << 10)
    e = ROOT_ERROR + Fraction(5, 8 << VARIANCE_SHIFT + 1) / max(1, count - 1)
    z = largest * e + Fraction(256 // 64 + 1, 1 << RESULT_SHIFT - GAMMA_FRACTION)
    constants = (largest + z) / (1 << GAMMA_FRACTION + 1) + Fraction(1, 1 << BETA_FRACTION + 1)
    return gamma * z + constants + Fraction(1, 2)
