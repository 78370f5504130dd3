"""Integer Softmax: widths and semantics, in plain Python integers."""

from __future__ import annotations

EXPONENTIAL_BYTES = 3
"""Bytes of an exponential."""
EXPONENTIAL_BITS = 8 * EXPONENTIAL_BYTES
TOTAL_BITS = 32
"""Bits of the sum of a pixel's exponentials, which saturates."""
LARGEST_TOTAL = (1 << TOTAL_BITS) - 1
QUOTIENT_BITS = 9
"""Bits of a quotient: an exponential is at most the sum, so the rounded quotient is at most 256."""
PASSES = 3
"""Times that each word is read: for the maximum, the sum and the quotients."""


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
