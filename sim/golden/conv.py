"""Convolution: exact integer sums through the matrix product of a float type that holds them, which is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import Conv
from intloom.hw.spec.arith import INT8_MIN
from intloom.sim.golden.exact_product import exact_product
from intloom.sim.golden.registry import Context, Image, golden, through
from intloom.sim.golden.requantize import requantize

_COLUMN_VALUES = 1 << 21
"""Values of the unfolded input made at a time: about what a processor's cache holds."""


@golden(Conv)
def conv(node: Conv, operands: Sequence[Image], context: Context) -> Image:
    """`table[requantize(bias + sum of x*w)]`; padding feeds the input's zero point."""
    out = np.empty(context.tensors[node.output].shape[1:], dtype=np.int8)
    for channels, rows, sums in conv_sums(node, operands[0]):
        out[channels, rows] = _finish(node, sums, channels, context)
    return through(node.table, out)


def conv_sums(node: Conv, x: Image) -> Iterator[tuple[slice, slice, NDArray[np.int32]]]:
    """The sums of products, in pieces: which channels, which rows, and the sums (channels, rows, columns)."""
    top, left, bottom, right = node.pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=node.zp_in) if any(node.pads) else x
    weights = node.weights.astype(np.int32)
    out_channels, per_group, kernel_h, kernel_w = weights.shape
    rows = (padded.shape[1] - node.dilations[0] * (kernel_h - 1) - 1) // node.strides[0] + 1
    columns = (padded.shape[2] - node.dilations[1] * (kernel_w - 1) - 1) // node.strides[1] + 1
    each = out_channels // node.group
    # A matrix product per channel would have a single row, so shifted products are used.
    if per_group == 1 and each == 1:
        yield slice(None), slice(None), _depthwise(node, padded, weights, rows, columns)
        return
    for g in range(node.group):
        channels = slice(g * each, (g + 1) * each)
        windows = _windows(node, padded[g * per_group : (g + 1) * per_group], kernel_h, kernel_w, rows, columns)
        matrix = weights[channels].reshape(each, -1)
        for first, last in _strips(rows, columns * matrix.shape[1]):
            sums = _product(matrix, windows[..., first:last, :].reshape(matrix.shape[1], -1))
            yield channels, slice(first, last), sums.reshape(each, last - first, columns)


def _finish(node: Conv, sums: NDArray[np.int32], channels: slice, context: Context) -> NDArray[np.int8]:
    sums += node.bias[channels].reshape(-1, *([1] * (sums.ndim - 1)))
    flat = sums.reshape(sums.shape[0], -1)
    done = requantize(flat, node.mantissa[channels], node.shift[channels], node.zp_out, context.match)
    return done.reshape(sums.shape)


def _windows(node: Conv, x: Image, kernel_h: int, kernel_w: int, rows: int, columns: int) -> Image:
    """A view (channels, kernel rows, kernel columns, rows, columns) of the input under each tap of the kernel."""
    plane, row, column = x.strides
    (stride_h, stride_w), (dilation_h, dilation_w) = node.strides, node.dilations
    return np.lib.stride_tricks.as_strided(
        x,
        (x.shape[0], kernel_h, kernel_w, rows, columns),
        (plane, row * dilation_h, column * dilation_w, row * stride_h, column * stride_w),
        writeable=False,
    )


def _strips(rows: int, values_a_row: int) -> Iterator[tuple[int, int]]:
    step = max(1, _COLUMN_VALUES // max(1, values_a_row))
    for first in range(0, rows, step):
        yield first, min(rows, first + step)


def _product(weights: NDArray[np.int32], columns: Image) -> NDArray[np.int32]:
    """Sums of products: [channel, pixel]."""
    reach = int(np.abs(weights).sum(axis=1, dtype=np.int64).max()) * -INT8_MIN
    return exact_product(weights, columns, reach)


def _depthwise(node: Conv, x: Image, weights: NDArray[np.int32], rows: int, columns: int) -> NDArray[np.int32]:
    """One kernel per channel: shifted products, in plain integers."""
    sums = np.zeros((weights.shape[0], rows, columns), dtype=np.int32)
    for ky in range(weights.shape[2]):
        for kx in range(weights.shape[3]):
            y, x0 = ky * node.dilations[0], kx * node.dilations[1]
            part = x[:, y : y + (rows - 1) * node.strides[0] + 1 : node.strides[0], :]
            part = part[:, :, x0 : x0 + (columns - 1) * node.strides[1] + 1 : node.strides[1]]
            sums += part * weights[:, 0, ky, kx][:, None, None]
    return sums
