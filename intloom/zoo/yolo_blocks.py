"""The building blocks of YOLOv8: Conv, Bottleneck, C2f, SPPF and the detection branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.zoo.builder import Builder, Value


def conv_silu(b: Builder, path: str, x: Value, channels: int, kernel: int = 1, stride: int = 1) -> Value:
    """Convolution (batch norm folded) and SiLU, which is x * sigmoid(x)."""
    y = b.conv(f"{path}/conv", x, channels, kernel, stride)
    gate = b.op(f"{path}/act/Sigmoid", "Sigmoid", [y], channels)
    return b.op(f"{path}/act/Mul", "Mul", [y, gate], channels)


def split_half(b: Builder, path: str, x: Value) -> tuple[Value, Value]:
    """The two halves of x's channels."""
    half = x.channels // 2
    sizes = b.constant(f"{path}/sizes", np.array([half, half], np.int64))
    first = b.op(f"{path}/Split", "Split", [x, sizes], half, axis=1)
    second = f"{path}/Split_output_1"
    b.nodes[-1].output.append(second)
    return first, Value(second, half)


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


def sppf(b: Builder, path: str, x: Value, channels: int) -> Value:
    """Three 5x5 max pools in a chain, all stages concatenated."""
    parts = [conv_silu(b, f"{path}/cv1", x, x.channels // 2)]
    for suffix in ("", "_1", "_2"):
        pool = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2] * 4, "ceil_mode": 0}
        parts.append(b.op(f"{path}/m{suffix}/MaxPool", "MaxPool", [parts[-1]], parts[0].channels, **pool))
    return conv_silu(b, f"{path}/cv2", concat(b, f"{path}/Concat", parts), channels)


def upsample(b: Builder, path: str, x: Value) -> Value:
    """Nearest-neighbor upsampling by two."""
    scales = b.constant(f"{path}/scales", np.array([1, 1, 2, 2], np.float32))
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return b.op(f"{path}/Resize", "Resize", [x, "", scales], x.channels, **modes)


def branch(
    b: Builder,
    path: str,
    x: Value,
    hidden: int,
    channels: int,
    mean: float,
    spread: float,
    slope: float = 0.0,
    period: int = 1,
) -> Value:
    """One branch of a head at one scale: two 3x3 convolutions and a 1x1 convolution without activation."""
    last = path.rsplit("/", 1)[-1]
    y = conv_silu(b, f"{path}/{last}.0", x, hidden, 3)
    y = conv_silu(b, f"{path}/{last}.1", y, hidden, 3)
    return b.conv(f"{path}/{last}.2", y, channels, mean=mean, spread=spread, slope=slope, period=period)
