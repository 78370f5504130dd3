"""Quantised product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir import Mul

from .affine import affine
from .registry import Context, Image, golden, through


@golden(Mul)
def mul(node: Mul, operands: Sequence[Image], context: Context) -> Image:
    """`table[affine((a - zero_a) * (b - zero_b), 0)]`."""
    a, b = operands
    product = (a.astype(np.int64) - node.zero_a) * (b.astype(np.int64) - node.zero_b)
    return through(node.table, affine(product, 0, node.law))
