"""The building blocks of YOLOv8: Conv, Bottleneck, C2f, SPPF and the detection branches."""

from collections.abc import Sequence

import numpy as np

from intloom.zoo.activations import silu
from intloom.zoo.builder import Builder, Target, Value


def conv_silu(
    b: Builder, path: str, x: Value, channels: int, kernel: int = 1, stride: int = 1, group: int = 1
) -> Value:
    """Convolution (batch norm folded) and SiLU."""
    return silu(b, f"{path}/act", b.conv(f"{path}/conv", x, channels, kernel, stride, group))


def split_half(b: Builder, path: str, x: Value) -> tuple[Value, Value]:
    """The two halves of x's channels."""
    first, second = b.split(f"{path}/Split", x, [x.channels // 2] * 2)
    return first, second


def concat(b: Builder, name: str, parts: Sequence[Value], axis: int = 1) -> Value:
    """Concatenation of all parts."""
    return b.op(name, "Concat", parts, sum(p.channels for p in parts), axis=axis)


def bottleneck(b: Builder, path: str, x: Value, shortcut: bool) -> Value:
    """Two 3x3 convolutions; `shortcut` adds the input to their result."""
    y = conv_silu(b, f"{path}/cv1", x, x.channels, 3)
    y = conv_silu(b, f"{path}/cv2", y, x.channels, 3)
    return b.op(f"{path}/Add", "Add", [x, y], x.channels) if shortcut else y


def c2f(b: Builder, path: str, x: Value, channels: int, repeats: int, shortcut: bool) -> Value:
    """Split, a chain of bottlenecks, and the concatenation of all intermediate results."""
    parts = list(split_half(b, path, conv_silu(b, f"{path}/cv1", x, channels)))
    for i in range(repeats):
        parts.append(bottleneck(b, f"{path}/m.{i}", parts[-1], shortcut))
    return conv_silu(b, f"{path}/cv2", concat(b, f"{path}/Concat", parts), channels)


def sppf(b: Builder, path: str, x: Value, channels: int, *, residual: bool = False) -> Value:
    """Three 5x5 max pools in a chain, all stages concatenated; with `residual`, the input is added."""
    hidden = x.channels // 2
    parts = [b.conv(f"{path}/cv1/conv", x, hidden) if residual else conv_silu(b, f"{path}/cv1", x, hidden)]
    for suffix in ("", "_1", "_2"):
        pool = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2] * 4, "ceil_mode": 0}
        parts.append(b.op(f"{path}/m{suffix}/MaxPool", "MaxPool", [parts[-1]], parts[0].channels, **pool))
    y = conv_silu(b, f"{path}/cv2", concat(b, f"{path}/Concat", parts), channels)
    return b.op(f"{path}/Add", "Add", [x, y], channels) if residual else y


def upsample(b: Builder, path: str, x: Value, factor: int = 2) -> Value:
    """Nearest-neighbor upsampling."""
    scales = b.constant(f"{path}/scales", np.array([1, 1, factor, factor], np.float32))
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return b.op(f"{path}/Resize", "Resize", [x, "", scales], x.channels, **modes)


def branch(b: Builder, path: str, x: Value, hidden: int, shape: tuple[int, Target]) -> Value:
    """One branch of a head at one scale: two 3x3 convolutions and a 1x1 convolution without activation.

    `shape` has the channels of its result and their statistics.
    """
    last = path.rsplit("/", 1)[-1]
    y = conv_silu(b, f"{path}/{last}.0", x, hidden, 3)
    y = conv_silu(b, f"{path}/{last}.1", y, hidden, 3)
    return b.conv(f"{path}/{last}.2", y, shape[0], target=shape[1])


def separable_branch(b: Builder, path: str, x: Value, hidden: int, shape: tuple[int, Target]) -> Value:
    """A branch of depthwise 3x3 and 1x1 convolutions, twice, and a 1x1 convolution without activation."""
    last = path.rsplit("/", 1)[-1]
    for i in range(2):
        stem = f"{path}/{last}.{i}/{last}.{i}"
        x = conv_silu(b, f"{stem}.0", x, x.channels, 3, group=x.channels)
        x = conv_silu(b, f"{stem}.1", x, hidden)
    return b.conv(f"{path}/{last}.2", x, shape[0], target=shape[1])
