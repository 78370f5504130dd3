"""Selection by one-hot bits: an OR of ANDs takes fewer LUTs than a chain of multiplexers."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Value


def one_hot_value(selects: Value, values: Sequence[Value]) -> Value:
    """The bits of the value whose select bit is high, 0 if none is; at most one is."""
    chosen = (value.as_unsigned() & selects[number].replicate(len(value)) for number, value in enumerate(values))
    return reduce(or_, chosen)
