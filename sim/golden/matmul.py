"""Product of two tensors over their channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.compiler.ir.ops.matmul import MatMul
from intloom.hw.spec.arith import LARGEST_DIFFERENCE
from intloom.sim.golden.exact_product import exact_product
from intloom.sim.golden.registry import Context, Image, golden, through
from intloom.sim.golden.requantize import requantize


@golden(MatMul)
def matmul(node: MatMul, operands: Sequence[Image], context: Context) -> Image:
    """`table[requantize(sum of (a - zp_a) * (b - zp_b))]`."""
    zero_points = (node.zp_a, node.zp_b)
    a, b = (x.reshape(len(x), -1).astype(np.int32) - z for x, z in zip(operands, zero_points, strict=True))
    sums = exact_product(b.T, a, len(a) * LARGEST_DIFFERENCE**2)
    count = len(sums)
    scales = np.full(count, node.mantissa, np.uint32), np.full(count, node.shift, np.uint8)
    done = requantize(sums, *scales, node.zp_out, context.match)
    return through(node.table, done.reshape(count, *operands[0].shape[1:]))
