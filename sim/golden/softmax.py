"""Softmax over channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.ops.softmax import Softmax
from intloom.hw.spec.softmax import LARGEST_TOTAL, QUOTIENT_BITS, unpack_exponentials
from intloom.sim.golden.registry import Context, Image, golden


def softmax_bytes(
    values: NDArray[np.int8], exponentials: NDArray[np.int64], less: int, zp_out: int, channels: int
) -> NDArray[np.int8]:
    """The Softmax of each row; bytes from `channels` on do not count."""
    counted = values[:, :channels].astype(np.int64)
    found = np.zeros(values.shape, np.int64)
    found[:, :channels] = exponentials[255 + counted - counted.max(axis=1, keepdims=True)]
    total = np.minimum(found.sum(axis=1, keepdims=True), LARGEST_TOTAL)
    quotient = (found * (256 - less) + (total >> 1)) // np.maximum(total, 1)
    quotient = np.where(total == 0, (1 << QUOTIENT_BITS) - 1, quotient)
    return (np.minimum(quotient + zp_out + 128, 255) - 128).astype(np.int8)


@golden(Softmax)
def softmax(node: Softmax, operands: Sequence[Image], context: Context) -> Image:
    """Exponential by exponential, over the sum of a pixel's."""
    (x,) = operands
    pixels = x.reshape(len(x), -1).T
    found = softmax_bytes(pixels, np.array(unpack_exponentials(node.exponentials)), node.less, node.zp_out, len(x))
    return np.ascontiguousarray(found.T).reshape(x.shape)
