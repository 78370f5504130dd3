"""Convolutions whose kernel or stride exceeds the instruction: blocks of pixels become channels first.

Over a sequence, a CONV has 15 rows of 15 taps, which all read the only row, any number of pixels apart. Such a kernel
is padded with zeros to whole rows, and the sequence with its zero point.

Elsewhere, with a stride of t and a divisor s of t, each block of s by s pixels becomes one pixel with s * s times the
channels. The kernel then has `ceil(k / s)` rows and columns, filled with zeros at the end, and the stride is `t / s`. A
convolution with a single 1 for each channel moves the bytes, so the result is exact. Patches of a vision transformer
are such convolutions. A kernel as large as the image has one position, and may have any stride.
"""

from dataclasses import replace
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import Weights
from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.ir import Tensor
from intloom.compiler.ir.node import Pads, Pair
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.limits import LARGEST_DILATION, LARGEST_KERNEL, LARGEST_SIZE, LARGEST_STRIDE
from intloom.compiler.refusals import Refusal

_MOST_STRIDE = 64
"""Larger strides would make very many channels."""
_MOST_DENSE = 4
"""Channels up to which a dense convolution moves the bytes: it may read packed pixels."""


def fit_kernel(mover: SpatialOps, x: Tensor, weights: Weights, name: str) -> tuple[Tensor, Weights]:
    """An equal convolution whose kernel and stride fit the instruction: its input and weights.

    Raises
    ------
    UnsupportedPattern
        No divisor of the stride makes it fit.
    """
    weights = replace(weights, window=_simplified(weights.window, (x.height, x.width)))
    if _is_long_sequence(weights.window, x):
        return _padded_sequence(mover, x, weights, name)
    if max(weights.window.dilations) > LARGEST_DILATION:
        raise Refusal.WINDOW(
            f"its dilations are {weights.window.dilations}",
            f"use dilations of at most {LARGEST_DILATION}, or a kernel of one row over sequences",
        )
    geometry = weights.window
    for taps, stride, dilation in zip(geometry.kernel, geometry.strides, geometry.dilations, strict=True):
        if not _has_blocks(taps, stride, dilation):
            raise Refusal.WINDOW(
                f"its kernel has {taps} rows or columns, with stride {stride} and dilation {dilation}",
                f"use at most {LARGEST_KERNEL} with strides up to {LARGEST_STRIDE}, or without dilation a stride "
                f"up to {_MOST_STRIDE} that is a product of 2 and 3",
            )
    step = 0
    while (sizes := _block(weights.window)) != (1, 1):
        geometry = weights.window
        step += 1
        count = geometry.output((x.height, x.width))
        kernel = tuple(-(-k // s) for k, s in zip(geometry.kernel, sizes, strict=True))
        strides = tuple(t // s for t, s in zip(geometry.strides, sizes, strict=True))
        rows, columns = ((n - 1) * t + k for n, t, k in zip(count, strides, kernel, strict=True))
        top, left, _, _ = geometry.pads
        bottom, right = rows * sizes[0] - x.height - top, columns * sizes[1] - x.width - left
        x = _blocks(mover, x, (top, left, max(0, bottom), max(0, right)), sizes, f"{name}/blocks{step}")
        geometry = Window((kernel[0], kernel[1]), (strides[0], strides[1]), geometry.dilations, (0, 0, 0, 0))
        weights = replace(weights, values=_split(weights.values, sizes), window=geometry)
    return x, weights


def _simplified(geometry: Window, size: Pair) -> Window:
    """The window with a dilation of 1 for one tap, and with a stride that has divisors for one position of a kernel."""
    strides, dilations = list(geometry.strides), list(geometry.dilations)
    for axis, (kernel, count) in enumerate(zip(geometry.kernel, geometry.output(size), strict=True)):
        if kernel == 1:
            dilations[axis] = 1
        if kernel > LARGEST_KERNEL and count == dilations[axis] == strides[axis] == 1:
            strides[axis] = LARGEST_STRIDE ** ceil(log(kernel / LARGEST_KERNEL, LARGEST_STRIDE))
    return replace(geometry, strides=(strides[0], strides[1]), dilations=(dilations[0], dilations[1]))


def _is_long_sequence(geometry: Window, x: Tensor) -> bool:
    """Whether a window over a sequence fits kernel rows that all read its only row, and nothing else."""
    (rows, taps), stride, dilation = geometry.kernel, geometry.strides[1], geometry.dilations[1]
    if x.height > 1 or rows > 1 or any(geometry.pads[::2]):
        return False
    if stride > LARGEST_STRIDE:
        most = LARGEST_KERNEL * stride if stride <= LARGEST_KERNEL else LARGEST_KERNEL
        return dilation == 1 and taps <= most and not _has_blocks(taps, stride)
    if dilation > LARGEST_DILATION:
        return taps <= LARGEST_KERNEL
    return LARGEST_KERNEL < taps <= LARGEST_KERNEL**2 and not _has_blocks(taps, stride, dilation)


def _has_blocks(kernel: int, stride: int, dilation: int = 1) -> bool:
    """Whether blocks of pixels make kernel and stride small enough."""
    while kernel > LARGEST_KERNEL or stride > LARGEST_STRIDE:
        divisors = _divisors(stride)
        if not divisors or stride > _MOST_STRIDE or dilation > 1:
            return False
        kernel, stride = -(-kernel // divisors[-1]), stride // divisors[-1]
    return True


def _divisors(stride: int) -> list[int]:
    """Strides of the instruction that divide a stride."""
    return [s for s in range(2, LARGEST_STRIDE + 1) if stride % s == 0]


def _padded_sequence(mover: SpatialOps, x: Tensor, weights: Weights, name: str) -> tuple[Tensor, Weights]:
    """The convolution with explicit padding, and with taps of weight 0 at the end that make whole kernel rows."""
    geometry = weights.window
    taps, dilation, (_, left, _, right) = geometry.kernel[1], geometry.dilations[1], geometry.pads
    stride = geometry.strides[1]
    # Whole kernel rows have as many taps as the stride has pixels, where that does not fit.
    blank = -taps % (stride if LARGEST_STRIDE < stride < taps > LARGEST_KERNEL else -(-taps // LARGEST_KERNEL))
    right += blank * dilation
    if x.width + left + right > LARGEST_SIZE:
        raise Refusal.WINDOW(
            f"it reads {x.width + left + right} pixels with padding", f"use sequences of at most {LARGEST_SIZE} pixels"
        )
    if left or right:
        x = mover.pad(x, (0, left, 0, right), x.zero_point, f"{name}/padded")
    values = np.pad(weights.values, [(0, 0), (0, 0), (0, 0), (0, blank)])
    window = replace(geometry, kernel=(1, taps + blank), pads=(0, 0, 0, 0))
    return x, replace(weights, values=values, window=window)


def _block(geometry: Window) -> Pair:
    """Rows and columns of the blocks, 1 along an axis that fits."""
    sizes = [
        1 if kernel <= LARGEST_KERNEL and stride <= LARGEST_STRIDE else _divisors(stride)[-1]
        for kernel, stride in zip(geometry.kernel, geometry.strides, strict=True)
    ]
    return sizes[0], sizes[1]


def _blocks(mover: SpatialOps, x: Tensor, pads: Pads, sizes: Pair, name: str) -> Tensor:
    """Emit the image of blocks; the padding has the value of the zero point."""
    top, left, bottom, right = pads
    height, width = (x.height + top + bottom) // sizes[0], (x.width + left + right) // sizes[1]
    area, channels = sizes[0] * sizes[1], x.channels
    dense = channels <= _MOST_DENSE
    weights = np.zeros((channels, area, channels if dense else 1, area), np.int8)
    for c in range(channels):
        weights[c, range(area), c if dense else 0, range(area)] = 1
    count = channels * area
    result = replace(x, name=name, shape=(1, count, height, width))
    window = {"pads": pads, "strides": sizes, "group": 1 if dense else channels}
    node = moving_conv(name, x, weights.reshape(count, -1, *sizes), **window, origin=mover.origin)
    mover.builder.emit(node, result)
    return result


def _split(values: NDArray[np.int32], sizes: Pair) -> NDArray[np.int32]:
    """The weights for blocks: the pixels of a block are channels, in row-major order after the channel."""
    out, per_group, *kernel = values.shape
    fill = [(0, -k % s) for k, s in zip(kernel, sizes, strict=True)]
    padded = np.pad(values, [(0, 0), (0, 0), *fill])
    rows, columns = (n // s for n, s in zip(padded.shape[2:], sizes, strict=True))
    split = padded.reshape(out, per_group, rows, sizes[0], columns, sizes[1]).transpose(0, 1, 3, 5, 2, 4)
    return split.reshape(out, per_group * sizes[0] * sizes[1], rows, columns)
