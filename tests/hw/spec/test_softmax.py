"""The byte format of a Softmax's exponentials."""

import pytest

from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.softmax import (
    EXPONENTIAL_BITS,
    LARGEST_TOTAL,
    MOST_LESS,
    largest_exponential,
    pack_exponentials,
    unpack_exponentials,
)

TOP = (1 << EXPONENTIAL_BITS) - 1


def test_exponentials_at_their_limits_are_little_endian() -> None:
    numbers = [0, 1, TOP - 1, TOP, 1 << EXPONENTIAL_BITS - 1]
    packed = pack_exponentials(numbers)
    assert packed.hex(" ", 3) == "000000 010000 feffff ffffff 000080"
    assert unpack_exponentials(packed) == numbers


@pytest.mark.parametrize("number", [-1, TOP + 1])
def test_a_number_of_more_bits_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        pack_exponentials([number])


@pytest.mark.parametrize("count", [1, 2, 256, 257, 4000])
def test_the_sum_of_the_largest_exponentials_fits(count: int) -> None:
    one = largest_exponential(count)
    assert one <= TOP
    assert one * count <= LARGEST_TOTAL
    assert one == TOP or (one + 1) * count > LARGEST_TOTAL


def test_the_field_holds_what_may_be_missing_of_256() -> None:
    assert BY_KIND[Kind.VSOFTMAX].field("less").maximum == MOST_LESS == 3
