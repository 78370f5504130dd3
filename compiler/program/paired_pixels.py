"""Tensors that the scheduler stores with two neighboring pixels in a word (`compiler.schedule.pixel_pairs`).

Pixels 2p and 2p + 1 of channel c are channels c and C + c of pixel p.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_SUFFIX = ":pairs"


def paired_name(name: str) -> str:
    """The name of a tensor with pairs of pixels."""
    return name + _SUFFIX


def without_pairs(tensors: Mapping[str, NDArray[np.int8]]) -> dict[str, NDArray[np.int8]]:
    """Tensors [..., channel, row, column] with the names and pixels that they have in the graph."""
    return {
        name.removesuffix(_SUFFIX): _separated(tensor) if name.endswith(_SUFFIX) else tensor
        for name, tensor in tensors.items()
    }


def _separated(tensor: NDArray[np.int8]) -> NDArray[np.int8]:
    *batch, channels, height, width = tensor.shape
    # [..., pixel of the pair, channel, row, pair]
    pairs = tensor.reshape(*batch, 2, channels // 2, height, width)
    return np.moveaxis(pairs, -4, -1).reshape(*batch, channels // 2, height, 2 * width)
