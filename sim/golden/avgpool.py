"""Average of windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.compiler.ir import AvgPool
from intloom.sim.golden.affine import affine
from intloom.sim.golden.pooling import shifted
from intloom.sim.golden.registry import Context, Image, golden, through


@golden(AvgPool)
def avgpool(node: AvgPool, operands: Sequence[Image], context: Context) -> Image:
    """`table[affine(sum of the window, 0)]`; padding counts as the input's zero point."""
    parts = shifted(operands[0], node.kernel, node.strides, node.pads, node.zp_in)
    total = next(parts).astype(np.int64)
    for part in parts:
        total += part
    return through(node.table, affine(total, 0, node.affine))
