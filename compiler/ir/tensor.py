"""The int8 tensors of an integer graph."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.int8]
"""The values of a tensor: (channels, height, width); the batch is always one."""
Shape = tuple[int, int, int, int]
"""N, C, H, W."""


@dataclass(frozen=True)
class Tensor:
    """An int8 tensor: shape (N, C, H, W) with N = 1; vectors are (1, C, 1, 1).

    `scale` and `zero_point` (in int8 terms) say what real number a value stands for. `unsigned` tells that the
    model's own type is uint8: its values are these plus 128.
    """

    name: str
    shape: Shape
    scale: float
    zero_point: int
    unsigned: bool

    @property
    def channels(self) -> int:
        """C."""
        return self.shape[1]

    @property
    def height(self) -> int:
        """H."""
        return self.shape[2]

    @property
    def width(self) -> int:
        """W."""
        return self.shape[3]
