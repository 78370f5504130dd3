"""Windows of pools as strided views, one for each tap of the kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from intloom.compiler.ir.node import Pads, Pair
from intloom.sim.golden.registry import Image


def shifted(x: Image, kernel: Pair, strides: Pair, pads: Pads, fill: int) -> Iterator[Image]:
    """For each tap of the kernel its input at every output pixel; the padding is `fill`."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=fill)
    rows = (padded.shape[1] - kernel[0]) // strides[0] + 1
    columns = (padded.shape[2] - kernel[1]) // strides[1] + 1
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            part = padded[:, ky : ky + (rows - 1) * strides[0] + 1 : strides[0], :]
            yield part[:, :, kx : kx + (columns - 1) * strides[1] + 1 : strides[1]]
