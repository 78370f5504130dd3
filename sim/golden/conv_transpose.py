"""Transposed convolution: every input pixel scatters a scaled kernel into the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir import ConvTranspose

from .registry import Context, Image, golden, through
from .requantize import requantize


@golden(ConvTranspose)
def conv_transpose(node: ConvTranspose, operands: Sequence[Image], context: Context) -> Image:
    """Input pixel (i, j) adds `(x - zp_in) * w[ky, kx]` at (i*s + ky*d - pad); then bias, requantisation, table."""
    (x,) = operands
    weights = node.weights.sum(axis=0, dtype=np.int64)
    out_channels, per_group, kernel_h, kernel_w = weights.shape
    (stride_h, stride_w), (dilation_h, dilation_w) = node.strides, node.dilations
    top, left, _, _ = node.pads
    wanted = context.tensors[node.output].shape[2:]
    spread = (
        max(wanted[0] + top, (x.shape[1] - 1) * stride_h + dilation_h * (kernel_h - 1) + 1),
        max(wanted[1] + left, (x.shape[2] - 1) * stride_w + dilation_w * (kernel_w - 1) + 1),
    )
    sums = np.zeros((out_channels, *spread), dtype=np.int64)
    each = out_channels // node.group
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            y, x0 = ky * dilation_h, kx * dilation_w
            place = (
                slice(y, y + (x.shape[1] - 1) * stride_h + 1, stride_h),
                slice(x0, x0 + (x.shape[2] - 1) * stride_w + 1, stride_w),
            )
            for g in range(node.group):
                part = weights[g * each : (g + 1) * each, :, ky, kx].astype(np.float64)
                flat = x[g * per_group : (g + 1) * per_group].reshape(per_group, -1).astype(np.float64) - node.zp_in
                # float64 holds every sum of byte products that an int32 accumulator holds.
                product = (part @ flat).astype(np.int64).reshape(each, x.shape[1], x.shape[2])
                sums[(slice(g * each, (g + 1) * each), *place)] += product
    kept = sums[:, top : top + wanted[0], left : left + wanted[1]] + node.bias[:, None, None]
    flat_sums = kept.reshape(out_channels, -1).astype(np.int32)
    done = requantize(flat_sums, node.mantissa, node.shift, node.zp_out, context.match)
    return through(node.table, done.reshape(out_channels, *wanted))
