"""Kernel rows and columns that see only padding: their products are 0, so the kernel is stored without them.

In an image of one row, as in a line of text, a 3x3 kernel with padding is a 1x3 kernel.
"""

from dataclasses import replace

from intloom.compiler.fold.arithmetic.weights import Weights
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.ir.node import Pair


def without_padding_taps(weights: Weights, size: Pair) -> Weights:
    """The weights of an equal convolution of an image of `size`."""
    geometry = weights.window
    counts = geometry.output(size)
    kept = [_kept(geometry, axis, size[axis], counts[axis]) for axis in (0, 1)]
    rows, columns = kept
    top, left, bottom, right = geometry.pads
    (down, across), (height, width) = geometry.dilations, geometry.kernel
    pads = (
        top - rows.start * down,
        left - columns.start * across,
        bottom - (height - rows.stop) * down,
        right - (width - columns.stop) * across,
    )
    smaller = replace(geometry, kernel=(len(rows), len(columns)), pads=pads)
    values = weights.values[:, :, rows.start : rows.stop, columns.start : columns.stop]
    return replace(weights, values=values, window=smaller)


def _kept(geometry: Window, axis: int, length: int, count: int) -> range:
    """Taps along an axis without those at its ends that see only padding; the padding that remains is not negative."""
    dilation, start = geometry.dilations[axis], -geometry.pads[axis]

    def sees_image(tap: int) -> bool:
        first = start + tap * dilation
        return any(0 <= first + i * geometry.strides[axis] < length for i in range(count))

    low, high = 0, geometry.kernel[axis]
    while high - low > 1 and not sees_image(low) and geometry.pads[axis] >= (low + 1) * dilation:
        low += 1
    spare = geometry.pads[axis + 2]
    while high - low > 1 and not sees_image(high - 1) and spare >= dilation:
        high, spare = high - 1, spare - dilation
    return range(low, high)
