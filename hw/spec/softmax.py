"""Integer Softmax: widths and semantics, in plain Python integers.

`error_bound` bounds the distance to the real result.
"""

from collections.abc import Iterable
from fractions import Fraction

EXPONENTIAL_BYTES = 3
"""Bytes of an exponential."""
EXPONENTIAL_BITS = 8 * EXPONENTIAL_BYTES
TOTAL_BITS = 32
"""Bits of the sum of a pixel's exponentials, which saturates."""
LARGEST_TOTAL = (1 << TOTAL_BITS) - 1
QUOTIENT_BITS = 9
"""Bits of a quotient: an exponential is at most the sum, so the rounded quotient is at most 256."""
LESS_BITS = 2
MOST_LESS = (1 << LESS_BITS) - 1
"""The result that stands for 1 is 256 or up to this much less."""
PASSES = 3
"""Times that each word is read: for the maximum, the sum and the quotients."""
QUEUE_GROUPS = 64
"""Groups of a cycle that may wait for the dividers or be on their way there: with 8 bytes a cycle no pixel of up to 640
channels loses a cycle."""


def largest_exponential(count: int) -> int:
    """The exponential that stands for 1 among `count` values: their sum must fit."""
    return min((1 << EXPONENTIAL_BITS) - 1, LARGEST_TOTAL // count)


EXPONENTIAL_ERROR = Fraction(1, 2) + Fraction(1, 1 << 64)
"""Bound of the distance of exponentials from the real ones."""


def error_bound(count: int) -> Fraction:
    """A bound of the distance of results from the real ones, clamped but not rounded, for `count` values.

    Let E be the real exponentials, S their sum and P = E / S; e and s are the integer ones. e / s - P is
    ((e - E) + P * (S - s)) / s, where s is at least the exponential of the largest value, which stands for 1 and is
    exact. So its size is at most `EXPONENTIAL_ERROR` * (1 + (count - 1) * P) / s, and P is at most 1. The result that
    stands for 1 is at most 256. The quotient rounds by at most 1/2. The sum saturates for no values.
    """
    return 256 * EXPONENTIAL_ERROR * count / largest_exponential(count) + Fraction(1, 2)


def pack_exponentials(numbers: Iterable[int]) -> bytes:
    """The bytes of exponentials one after the other, little-endian."""
    return b"".join(number.to_bytes(EXPONENTIAL_BYTES, "little") for number in numbers)


def unpack_exponentials(packed: bytes) -> list[int]:
    """The exponentials in these bytes."""
    starts = range(0, len(packed), EXPONENTIAL_BYTES)
    return [int.from_bytes(packed[k : k + EXPONENTIAL_BYTES], "little") for k in starts]


def numerator(exponential: int, total: int, less: int) -> int:
    """What is divided by the sum: the exponential times the result that stands for 1, and one half to round."""
    return exponential * (256 - less) + (total >> 1)


def quotient(dividend: int, total: int) -> int:
    """The rounded-down quotient; all ones if the sum is 0."""
    return dividend // total if total else (1 << QUOTIENT_BITS) - 1


def softmax(
    values: list[int], exponentials: list[int], less: int, zp_out: int, counted: int | None = None
) -> list[int]:
    """The int8 results of int8 values, of which the first `counted` are channels."""
    count = len(values) if counted is None else counted
    largest = max(values[:count])
    found = [exponentials[255 + x - largest] if k < count else 0 for k, x in enumerate(values)]
    total = min(sum(found), LARGEST_TOTAL)
    return [min(quotient(numerator(e, total, less), total) + zp_out + 128, 255) - 128 for e in found]
