"""The code of words in memory: each takes only as many bits of a byte as its bytes need.

A LOAD with `coded` reads that many words for each run, and writes the n0 words that they stand for. A coded run is a
sequence of units of `rows` bits, from the lowest bits of its first word on:

1. A word of width w, from 0 to 8, has w units. Bit b of unit k is bit k of its byte b. Bytes are signed numbers of w
   bits, so higher bits of a byte equal its bit w - 1; with w = 0 all bytes are 0.
2. Before each group of `rows / 4` words, one unit has their widths, four bits each, from the lowest on. Those after the
   run's last word are ignored.

The last word in memory is padded. A width above 8, and a number of coded words other than the run's units need, is a
fault with cause BAD_FIELD.
"""

UNITS = 8
"""Units of a word in memory, and the most that a coded word takes."""
WIDTH_BITS = 4
"""Bits of a width."""


def group_words(rows: int) -> int:
    """Words whose widths one unit has."""
    return rows // WIDTH_BITS
