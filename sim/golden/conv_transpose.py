"""Transposed convolution: every input pixel scatters a scaled kernel into the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import ConvTranspose
from intloom.compiler.ir.node import Pair
from intloom.sim.golden.registry import Context, Image, golden, through
from intloom.sim.golden.requantize import requantize


@golden(ConvTranspose)
def conv_transpose(node: ConvTranspose, operands: Sequence[Image], context: Context) -> Image:
    """Input pixel (i, j) adds `(x - zp_in) * w[ky, kx]` at (i*s + ky*d - pad); then bias, requantization, table."""
    height, width = context.tensors[node.output].shape[2:]
    sums = scattered_sums(node, operands[0], (height, width)) + node.bias[:, None, None]
    flat = sums.reshape(sums.shape[0], -1).astype(np.int32)
    done = requantize(flat, node.mantissa, node.shift, node.zp_out, context.match)
    return through(node.table, done.reshape(sums.shape))


def scattered_sums(node: ConvTranspose, x: Image, wanted: Pair) -> NDArray[np.int64]:
    """The sums of products (channels, rows, columns) of an output of `wanted` rows and columns."""
    weights = node.weights.astype(np.int64)
    out_channels, _, kernel_h, kernel_w = weights.shape
    (stride_h, stride_w), (dilation_h, dilation_w) = node.strides, node.dilations
    top, left, _, _ = node.pads
    # Large enough for every tap of every pixel; `pads` then crops the result, and `output_padding` may extend it.
    spread = (
        max(wanted[0] + top, (x.shape[1] - 1) * stride_h + dilation_h * (kernel_h - 1) + 1),
        max(wanted[1] + left, (x.shape[2] - 1) * stride_w + dilation_w * (kernel_w - 1) + 1),
    )
    sums = np.zeros((out_channels, *spread), dtype=np.int64)
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            y, x0 = ky * dilation_h, kx * dilation_w
            rows = slice(y, y + (x.shape[1] - 1) * stride_h + 1, stride_h)
            columns = slice(x0, x0 + (x.shape[2] - 1) * stride_w + 1, stride_w)
            sums[:, rows, columns] += _tap_products(node, weights[:, :, ky, kx], x)
    return sums[:, top : top + wanted[0], left : left + wanted[1]]


def _tap_products(node: ConvTranspose, weights: NDArray[np.int64], x: Image) -> NDArray[np.int64]:
    """What one tap of the kernel makes of every input pixel, for all output channels."""
    each, per_group = weights.shape[0] // node.group, weights.shape[1]
    # float64 holds every sum of byte products that an int32 accumulator holds.
    groups = weights.reshape(node.group, each, per_group).astype(np.float64)
    # The zero point is subtracted here: outputs have different numbers of taps, so no bias can contain it.
    pixels = x.reshape(node.group, per_group, -1).astype(np.float64) - node.zp_in
    return (groups @ pixels).astype(np.int64).reshape(weights.shape[0], *x.shape[1:])
