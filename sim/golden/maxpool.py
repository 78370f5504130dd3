"""Maximum of windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.compiler.ir import MaxPool
from intloom.hw.spec.arith import INT8_MIN
from intloom.sim.golden.pooling import shifted
from intloom.sim.golden.registry import Context, Image, golden


@golden(MaxPool)
def maxpool(node: MaxPool, operands: Sequence[Image], context: Context) -> Image:
    """Largest value of each window, rows first, then columns; padding never wins."""
    (kernel_h, kernel_w), (stride_h, stride_w) = node.kernel, node.strides
    top, left, bottom, right = node.pads
    # A maximum is separable, so both passes together give the window's maximum exactly.
    rows = _largest(operands[0], (kernel_h, 1), (stride_h, 1), (top, 0, bottom, 0))
    return _largest(rows, (1, kernel_w), (1, stride_w), (0, left, 0, right))


def _largest(x: Image, kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, int, int, int]) -> Image:
    parts = shifted(x, kernel, strides, pads, INT8_MIN)
    best = next(parts).copy()
    for part in parts:
        np.maximum(best, part, out=best)
    return best
