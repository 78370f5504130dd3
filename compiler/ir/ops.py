"""One frozen dataclass per integer operation, with typed fields.

All values are int8 inside. Tables are 256 bytes indexed by the value's own byte (`value & 0xFF`) and hold result bytes.
A node's optional `table` maps every result byte after rounding and clamping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.arith import Affine

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """What every operation has: a unique name, the tensors it reads and the one it writes, and where it came from."""

    name: str
    inputs: tuple[str, ...]
    output: str
    origin: tuple[str, ...] = ()
    """Names of the ONNX nodes that it stands for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Conv(Node):
    """Convolution; also fully connected layers (1x1) and depthwise ones (group = channels).

    `y[m] = table[clamp(zp_out + round((bias[m] + sum over planes of x*w) * mantissa[m] * 2**-shift[m]))]`. The
    input's zero point is folded into `bias`; padding feeds `zp_in`.
    """

    weights: NDArray[np.int8]
    """[planes, out channels, in channels / group, kernel rows, kernel columns]; one or two planes, to be added."""
    bias: NDArray[np.int32]
    mantissa: NDArray[np.uint32]
    shift: NDArray[np.uint8]
    zp_in: int
    zp_out: int
    pads: Pads = (0, 0, 0, 0)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    group: int = 1
    table: bytes | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvTranspose(Conv):
    """Transposed convolution: input pixel (i, j) adds `(x - zp_in) * w[ky, kx]` at output (i*s + ky*d - pad).

    Outputs see different taps, so unlike in `Conv` the zero point is not folded into `bias`: whoever splits the node
    by taps subtracts `zp_in * sum(w)` of each part's taps, and feeds `zp_in` outside the image.
    """

    output_padding: Pair = (0, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Node):
    """A function of one byte."""

    table: bytes


@dataclass(frozen=True, eq=False, kw_only=True)
class Add(Node):
    """`affine(a, b)`, then the table."""

    affine: Affine
    table: bytes | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Mul(Node):
    """`affine((a - zero_a) * (b - zero_b), 0)`, then the table."""

    affine: Affine
    zero_a: int
    zero_b: int
    table: bytes | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxPool(Node):
    """Largest value of each window; padding does not count."""

    kernel: Pair
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class AvgPool(Node):
    """`affine(sum of the window, 0)`, then the table; padding counts as `zp_in`."""

    kernel: Pair
    affine: Affine
    zp_in: int
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    table: bytes | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Resize(Node):
    """Nearest-neighbour enlargement by whole factors: output (y, x) takes input (y // factor_h, x // factor_w)."""

    factors: Pair


@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Node):
    """Concatenation along channels of tensors that already share one scale."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Node):
    """Channels `start` to `stop` (half-open)."""

    start: int
    stop: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Custom(Node):
    """An operation of the user's, with its semantics in the custom-op registry."""

    domain: str
    op: str
    attributes: Mapping[str, int | float | str | tuple[int, ...]] = field(default_factory=dict)
