"""Linear enlargement along an axis as a transposed convolution."""

import numpy as np
from numpy.typing import NDArray

TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric")
"""Coordinate transformations for which results lie outside of the first and last pixel."""


def linear_axis(factor: int, transform: str) -> tuple[NDArray[np.float64], tuple[int, int]]:
    """The weights of an axis, and how many results both ends have too many.

    `transform` is ONNX's name of the coordinate transformation. The operand has its first and last pixel twice, except
    with `align_corners`, where no result lies outside of the pixels.
    """
    center = 0.5 if transform.endswith("half_pixel") else 0.0
    first = (factor + 1) // 2 if center else factor - 1
    taps = np.arange(2 * factor if center else 2 * factor - 1)
    weights = np.maximum(0.0, 1.0 - np.abs((taps - first + center) / factor - center))
    inside = transform == "align_corners"
    return weights, (first + factor * (not inside), taps.size - first - inside)
