"""YOLOX-nano as published by Megvii: depthwise separable convolutions, CSP blocks and a decoupled head."""

import numpy as np

from intloom.zoo.builder import Builder, Target, Value
from intloom.zoo.yolo_blocks import concat, conv_silu, upsample

CLASSES = 80
_STRIDES = (8, 16, 32)
_HIDDEN = 64
"""Channels of the head."""
_LOGITS = Target(-3.0, 1.4)
"""As in trained networks, most scores are near zero."""
_POOLS = (5, 9, 13)


def yolox_nano(b: Builder, imgsz: int) -> None:
    """Ge et al. 2021: width 0.25, depth 0.33, 416 pixels."""
    maps = _neck(b, _backbone(b, imgsz))
    rows = [_head(b, k, x, imgsz // stride) for k, (x, stride) in enumerate(zip(maps, _STRIDES, strict=True))]
    joined = b.op("/head/Concat_3", "Concat", rows, rows[0].channels, axis=2)
    joined = b.transpose("/head/Transpose", joined, [0, 2, 1], joined.channels)
    b.output(joined, "output", [1, sum((imgsz // s) ** 2 for s in _STRIDES), 5 + CLASSES])


def _focus(b: Builder, x: Value, imgsz: int) -> Value:
    """Four images of every second row and column, as channels."""
    axes = b.constant("/focus/axes", np.array([2, 3], np.int64))
    steps = b.constant("/focus/steps", np.array([2, 2], np.int64))
    ends = b.constant("/focus/ends", np.array([imgsz, imgsz], np.int64))
    parts = []
    for number, (row, column) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
        starts = b.constant(f"/focus/starts.{number}", np.array([row, column], np.int64))
        parts.append(b.op(f"/focus/Slice_{number}", "Slice", [x, starts, ends, axes, steps], x.channels))
    return concat(b, "/focus/Concat", parts)


def _separable(b: Builder, path: str, x: Value, channels: int, stride: int = 1) -> Value:
    """A depthwise 3x3 and a 1x1 convolution, each with SiLU."""
    x = conv_silu(b, f"{path}/dconv", x, x.channels, 3, stride, group=x.channels)
    return conv_silu(b, f"{path}/pconv", x, channels)


def _csp(b: Builder, path: str, x: Value, channels: int, repeats: int, *, shortcut: bool = True) -> Value:
    """Two halves, one through bottlenecks, joined by a 1x1 convolution."""
    hidden = channels // 2
    first, second = conv_silu(b, f"{path}/conv1", x, hidden), conv_silu(b, f"{path}/conv2", x, hidden)
    for i in range(repeats):
        inner = f"{path}/m.{i}"
        y = _separable(b, f"{inner}/conv2", conv_silu(b, f"{inner}/conv1", first, hidden), hidden)
        first = b.op(f"{inner}/Add", "Add", [y, first], hidden) if shortcut else y
    return conv_silu(b, f"{path}/conv3", concat(b, f"{path}/Concat", [first, second]), channels)


def _backbone(b: Builder, imgsz: int) -> list[Value]:
    """Feature maps of stride 8, 16 and 32."""
    x = conv_silu(b, "/stem", _focus(b, b.input("images", imgsz, imgsz), imgsz), 16, 3)
    maps = []
    for number, (channels, repeats) in enumerate(((32, 1), (64, 3), (128, 3), (256, 1)), 2):
        x = _separable(b, f"/dark{number}.0", x, channels, 2)
        if number == 5:
            x = _pyramid_pooling(b, f"/dark{number}.1", x)
        x = _csp(b, f"/dark{number}", x, channels, repeats, shortcut=number < 5)
        maps.append(x)
    return maps[1:]


def _pyramid_pooling(b: Builder, path: str, x: Value) -> Value:
    y = conv_silu(b, f"{path}/conv1", x, x.channels // 2)
    parts = [y]
    for size in _POOLS:
        pool = {"kernel_shape": [size] * 2, "strides": [1, 1], "pads": [size // 2] * 4, "ceil_mode": 0}
        parts.append(b.op(f"{path}/m.{size}/MaxPool", "MaxPool", [y], y.channels, **pool))
    return conv_silu(b, f"{path}/conv2", concat(b, f"{path}/Concat", parts), x.channels)


def _neck(b: Builder, maps: list[Value]) -> list[Value]:
    """Top-down and bottom-up path."""
    fine, middle, coarse = maps
    lateral = conv_silu(b, "/lateral_conv0", coarse, 128)
    x = concat(b, "/Concat", [upsample(b, "/upsample0", lateral), middle])
    reduced = conv_silu(b, "/reduce_conv1", _csp(b, "/C3_p4", x, 128, 1, shortcut=False), 64)
    x = concat(b, "/Concat_1", [upsample(b, "/upsample1", reduced), fine])
    p3 = _csp(b, "/C3_p3", x, 64, 1, shortcut=False)
    x = concat(b, "/Concat_2", [_separable(b, "/bu_conv2", p3, 64, 2), reduced])
    n3 = _csp(b, "/C3_n3", x, 128, 1, shortcut=False)
    x = concat(b, "/Concat_3", [_separable(b, "/bu_conv1", n3, 128, 2), lateral])
    return [p3, n3, _csp(b, "/C3_n4", x, 256, 1, shortcut=False)]


def _head(b: Builder, level: int, x: Value, side: int) -> Value:
    """Box, objectness and class scores of one scale, [1, 85, cells]."""
    x = conv_silu(b, f"/head/stems.{level}", x, _HIDDEN)
    scores, boxes = x, x
    for i in range(2):
        scores = _separable(b, f"/head/cls_convs.{level}.{i}", scores, _HIDDEN)
        boxes = _separable(b, f"/head/reg_convs.{level}.{i}", boxes, _HIDDEN)
    classes = b.conv(f"/head/cls_preds.{level}", scores, CLASSES, target=_LOGITS)
    box = b.conv(f"/head/reg_preds.{level}", boxes, 4, mean=0.0)
    found = b.conv(f"/head/obj_preds.{level}", boxes, 1, target=_LOGITS)
    likely = b.op(f"/head/Sigmoid_{level}", "Sigmoid", [found], 1)
    scored = b.op(f"/head/Sigmoid_{level}_1", "Sigmoid", [classes], CLASSES)
    every = concat(b, f"/head/Concat_{level}", [box, likely, scored])
    shape = b.constant(f"/head/Reshape_{level}/shape", np.array([1, every.channels, side * side], np.int64))
    return b.op(f"/head/Reshape_{level}", "Reshape", [every, shape], every.channels)
