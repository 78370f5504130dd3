"""Quantized addition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.compiler.ir import Add
from intloom.sim.golden.affine import affine
from intloom.sim.golden.registry import Context, Image, golden, through


@golden(Add)
def add(node: Add, operands: Sequence[Image], context: Context) -> Image:
    """`table[affine(a, b)]`."""
    a, b = np.broadcast_arrays(*operands)
    return through(node.table, affine(a.astype(np.int64), b.astype(np.int64), node.affine))
