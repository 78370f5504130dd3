"""Depthwise convolutions: how a CONV of mode 2 or 3 reads its input, and which kernel tap each array row has.

Array column c works on channel c of an output block, and reads byte c of every input word. The array rows hold the
last words that were read: in every cycle a word enters at row 0, and the words in the rows move up by one. The word
before a tile's first one is 0.

For each weight tile, the input under the output tile is read column by column, from left to right, and each column from
top to bottom. A column has as many rows as all output rows need, or `in_blocks` rows if that is more. Rows and columns
under a kernel of `kernel_h` rows (mode 2) or one row (mode 3) are counted with dilation; in mode 3 weight tile t starts
`t * dilation_h` rows further down. The sum of an output pixel takes the rows of the array when the last word under its
kernel has entered. In a tile, the tap (ky, kx) is therefore array row
`(kernel_w - 1 - kx) * dilation_w * column_rows + (kernel_h - 1 - ky) * dilation_h`, with `kernel_h` = 1 and ky = 0 in
mode 3. Taps above the last array row do not count; weights of rows without a tap are 0.

The output tile has at most `strip` pixels. The hardware parameter `depthwise` enables the modes.
"""

from collections.abc import Iterator

from intloom.hw.spec.fields import ConvMode
from intloom.hw.spec.isa import Fields

DEPTHWISE_MODES = (ConvMode.DEPTHWISE, ConvMode.DEPTHWISE_ROWS)


def is_depthwise(conv: Fields) -> bool:
    """Whether array rows are kernel taps."""
    return conv["mode"] in DEPTHWISE_MODES


def tile_kernel(conv: Fields) -> tuple[int, int]:
    """Kernel rows and columns of one weight tile of a depthwise CONV."""
    return conv["kernel_h"] if conv["mode"] == ConvMode.DEPTHWISE else 1, conv["kernel_w"]


def column_rows(conv: Fields) -> int:
    """Input rows that a weight tile of a depthwise CONV reads in each column."""
    reach = (tile_kernel(conv)[0] - 1) * conv["dilation_h"] + 1
    return max(conv["in_blocks"], (conv["out_h"] - 1) * conv["stride_h"] + reach)


def tile_columns(conv: Fields) -> int:
    """Input columns that a weight tile of a depthwise CONV reads."""
    return (conv["out_w"] - 1) * conv["stride_w"] + (conv["kernel_w"] - 1) * conv["dilation_w"] + 1


def tile_cycles(conv: Fields) -> int:
    """Cycles of the array for one weight tile of a depthwise CONV: one for each word that it reads."""
    return column_rows(conv) * tile_columns(conv)


def tap_rows(conv: Fields) -> Iterator[tuple[int, int, int]]:
    """Array row, kernel row and kernel column of each tap of a weight tile."""
    kernel_h, kernel_w = tile_kernel(conv)
    height = column_rows(conv)
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            below = (kernel_h - 1 - ky) * conv["dilation_h"]
            yield (kernel_w - 1 - kx) * conv["dilation_w"] * height + below, ky, kx
