"""ResNet-18 and MobileNetV2 as torchvision exports them."""

from __future__ import annotations

import numpy as np

from intloom.zoo.builder import Builder, Value

CLASSES = 1000
ABOVE_ZERO = 2.2
"""Mean before a ReLU, in standard deviations: few values are negative, so few results are zero."""
_HALF_MEAN, _HALF_SPREAD = 1.3, 0.7
"""The same for each of the two summands before a ReLU."""


def resnet18(b: Builder, imgsz: int) -> None:
    """He et al. 2015, eighteen layers, basic blocks."""
    x = _relu(b, "/relu", b.conv("/conv1", b.input("images", imgsz, imgsz), 64, 7, 2, mean=ABOVE_ZERO))
    x = b.op("/maxpool/MaxPool", "MaxPool", [x], 64, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=0)
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for i in range(2):
            x = basic_block(b, f"/layer{stage}/layer{stage}.{i}", x, channels, 2 if stage > 1 and i == 0 else 1)
    x = b.op("/avgpool/GlobalAveragePool", "GlobalAveragePool", [x], x.channels)
    x = b.op("/Flatten", "Flatten", [x], x.channels, axis=1)
    b.output(b.gemm("/fc", x, CLASSES), "logits", [1, CLASSES])


def basic_block(b: Builder, path: str, x: Value, channels: int, stride: int) -> Value:
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution if the shape changes."""
    y = _relu(b, f"{path}/relu", b.conv(f"{path}/conv1", x, channels, 3, stride, mean=ABOVE_ZERO))
    y = b.conv(f"{path}/conv2", y, channels, 3, mean=_HALF_MEAN, spread=_HALF_SPREAD)
    if stride > 1 or x.channels != channels:
        name = f"{path}/downsample/downsample.0"
        x = b.conv(name, x, channels, 1, stride, mean=_HALF_MEAN, spread=_HALF_SPREAD)
    return _relu(b, f"{path}/relu_1", b.op(f"{path}/Add", "Add", [y, x], channels))


def mobilenet_v2(b: Builder, imgsz: int) -> None:
    """Sandler et al. 2018, width 1.0: inverted residuals with depthwise convolutions."""
    x = _relu6(
        b,
        "/features/features.0",
        b.conv("/features/features.0/features.0.0", b.input("images", imgsz, imgsz), 32, 3, 2, mean=ABOVE_ZERO),
    )
    number = 1
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, channels, repeats, stride in table:
        for i in range(repeats):
            x = _inverted_residual(b, f"/features/features.{number}", x, channels, expand, stride if i == 0 else 1)
            number += 1
    x = _relu6(b, "/features/features.18", b.conv("/features/features.18/features.18.0", x, 1280, mean=ABOVE_ZERO))
    x = b.op("/GlobalAveragePool", "GlobalAveragePool", [x], x.channels)
    x = b.op("/Flatten", "Flatten", [x], x.channels, axis=1)
    b.output(b.gemm("/classifier/classifier.1", x, CLASSES), "logits", [1, CLASSES])


def _inverted_residual(b: Builder, path: str, x: Value, channels: int, expand: int, stride: int) -> Value:
    y, stage = x, 0
    if expand != 1:
        y = b.conv(f"{path}/conv/conv.0/conv.0.0", x, x.channels * expand, mean=ABOVE_ZERO)
        y, stage = _relu6(b, f"{path}/conv/conv.0", y), 1
    y = b.conv(f"{path}/conv/conv.{stage}/conv.{stage}.0", y, y.channels, 3, stride, group=y.channels, mean=ABOVE_ZERO)
    y = _relu6(b, f"{path}/conv/conv.{stage}", y)
    y = b.conv(f"{path}/conv/conv.{stage + 1}", y, channels, mean=0.0)
    if stride == 1 and x.channels == channels:
        y = b.op(f"{path}/Add", "Add", [x, y], channels)
    return y


def _relu(b: Builder, path: str, x: Value) -> Value:
    return b.op(f"{path}/Relu", "Relu", [x], x.channels)


def _relu6(b: Builder, path: str, x: Value) -> Value:
    low = b.constant("relu6.low", np.array(0.0, np.float32))
    high = b.constant("relu6.high", np.array(6.0, np.float32))
    return b.op(f"{path}/Clip", "Clip", [x, low, high], x.channels)
