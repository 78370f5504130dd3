"""Quantized product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.compiler.ir import Mul
from intloom.sim.golden.affine import affine
from intloom.sim.golden.registry import Context, Image, golden, through


@golden(Mul)
def mul(node: Mul, operands: Sequence[Image], context: Context) -> Image:
    """`table[affine((a - zero_a) * (b - zero_b), 0)]`."""
    a, b = operands
    product = (a.astype(np.int64) - node.zero_a) * (b.astype(np.int64) - node.zero_b)
    return through(node.table, affine(product, 0, node.affine))
