"""Classifiers for mobile devices, with depthwise convolutions: MobileNet V2 to V4 and EfficientNet-lite0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from intloom.zoo.activations import ABOVE_ZERO, Activation, hard_swish, relu, relu6, squeeze_excitation
from intloom.zoo.builder import Builder, Value
from intloom.zoo.classifiers import CLASSES, pooled

_FEATURES = 1280
"""Channels before the classifier of the networks of inverted residuals."""


class _Stage(NamedTuple):
    """A row of MobileNetV2's table."""

    expand: int
    channels: int
    repeats: int
    stride: int
    """Of the first block."""
    kernel: int = 3


def mobilenet_v2(b: Builder, imgsz: int) -> None:
    """Sandler et al. 2018, width 1.0: inverted residuals with depthwise convolutions."""
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    _inverted_residuals(b, imgsz, [_Stage(*stage) for stage in stages])


def efficientnet_lite0(b: Builder, imgsz: int) -> None:
    """Tan and Liu 2020: EfficientNet-B0 without squeeze-and-excitation, with ReLU6."""
    stages = (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )  # fmt: skip
    _inverted_residuals(b, imgsz, [_Stage(*stage) for stage in stages])


def _inverted_residuals(b: Builder, imgsz: int, stages: Sequence[_Stage]) -> None:
    """Stem, stages of inverted residuals, and a linear classifier."""
    stem = "/features/features.0"
    x = b.conv(f"{stem}/features.0.0", b.input("images", imgsz, imgsz), 32, 3, 2, mean=ABOVE_ZERO)
    x = relu6(b, stem, x)
    number = 1
    for stage in stages:
        for i in range(stage.repeats):
            x = _inverted_residual(b, f"/features/features.{number}", x, stage, stage.stride if i == 0 else 1)
            number += 1
    path = f"/features/features.{number}"
    x = relu6(b, path, b.conv(f"{path}/features.{number}.0", x, _FEATURES, mean=ABOVE_ZERO))
    b.output(b.gemm("/classifier/classifier.1", pooled(b, x), CLASSES), "logits", [1, CLASSES])


def _inverted_residual(b: Builder, path: str, x: Value, block: _Stage, stride: int) -> Value:
    y, stage = x, 0
    if block.expand != 1:
        y = b.conv(f"{path}/conv/conv.0/conv.0.0", x, x.channels * block.expand, mean=ABOVE_ZERO)
        y, stage = relu6(b, f"{path}/conv/conv.0", y), 1
    name = f"{path}/conv/conv.{stage}"
    y = relu6(b, name, b.depthwise(f"{name}/conv.{stage}.0", y, block.kernel, stride, mean=ABOVE_ZERO))
    y = b.conv(f"{path}/conv/conv.{stage + 1}", y, block.channels, mean=0.0)
    return b.op(f"{path}/Add", "Add", [x, y], y.channels) if stride == 1 and x.channels == y.channels else y


@dataclass(frozen=True)
class _V3Block:
    """A row of MobileNetV3's table."""

    kernel: int
    expanded: int
    channels: int
    squeeze: bool
    activation: Activation
    stride: int


_LARGE = (
    _V3Block(3, 16, 16, False, relu, 1),
    _V3Block(3, 64, 24, False, relu, 2),
    _V3Block(3, 72, 24, False, relu, 1),
    _V3Block(5, 72, 40, True, relu, 2),
    _V3Block(5, 120, 40, True, relu, 1),
    _V3Block(5, 120, 40, True, relu, 1),
    _V3Block(3, 240, 80, False, hard_swish, 2),
    _V3Block(3, 200, 80, False, hard_swish, 1),
    _V3Block(3, 184, 80, False, hard_swish, 1),
    _V3Block(3, 184, 80, False, hard_swish, 1),
    _V3Block(3, 480, 112, True, hard_swish, 1),
    _V3Block(3, 672, 112, True, hard_swish, 1),
    _V3Block(5, 672, 160, True, hard_swish, 2),
    _V3Block(5, 960, 160, True, hard_swish, 1),
    _V3Block(5, 960, 160, True, hard_swish, 1),
)


def mobilenet_v3_large(b: Builder, imgsz: int) -> None:
    """Howard et al. 2019: inverted residuals with squeeze-and-excitation and h-swish."""
    x = b.conv("/features/features.0/features.0.0", b.input("images", imgsz, imgsz), 16, 3, 2)
    x = hard_swish(b, "/features/features.0/features.0.2", x)
    for number, block in enumerate(_LARGE, 1):
        x = _v3_block(b, f"/features/features.{number}", x, block)
    x = hard_swish(b, "/features/features.16/features.16.2", b.conv("/features/features.16/features.16.0", x, 960))
    x = hard_swish(
        b,
        "/classifier/classifier.1",
        b.gemm("/classifier/classifier.0", pooled(b, x, "/avgpool"), 1280, mean=1.4, spread=1.0),
    )
    b.output(b.gemm("/classifier/classifier.3", x, CLASSES), "logits", [1, CLASSES])


def _v3_block(b: Builder, path: str, x: Value, block: _V3Block) -> Value:
    y, stage = x, 0
    mean = ABOVE_ZERO if block.activation is relu else 1.4
    if block.expanded != x.channels:
        y = b.conv(f"{path}/block/block.0/block.0.0", x, block.expanded, mean=mean)
        y, stage = block.activation(b, f"{path}/block/block.0/block.0.2", y), 1
    name = f"{path}/block/block.{stage}"
    y = b.depthwise(f"{name}/block.{stage}.0", y, block.kernel, block.stride, mean=mean)
    y = block.activation(b, f"{name}/block.{stage}.2", y)
    if block.squeeze:
        stage += 1
        y = squeeze_excitation(b, f"{path}/block/block.{stage}", y, max(8, (block.expanded // 4 + 4) // 8 * 8))
    y = b.conv(f"{path}/block/block.{stage + 1}/block.{stage + 1}.0", y, block.channels, mean=0.0)
    return b.op(f"{path}/Add", "Add", [x, y], y.channels) if block.stride == 1 and x.channels == y.channels else y


@dataclass(frozen=True)
class _Universal:
    """A universal inverted bottleneck; a kernel of 0 leaves the depthwise convolution out."""

    start: int
    middle: int
    channels: int
    expand: float
    stride: int = 1


_SMALL = (
    _Universal(5, 5, 96, 3.0, 2),
    *(_Universal(0, 3, 96, 2.0) for _ in range(4)),
    _Universal(3, 0, 96, 4.0),
    _Universal(3, 3, 128, 6.0, 2),
    _Universal(5, 5, 128, 4.0),
    _Universal(0, 5, 128, 4.0),
    _Universal(0, 5, 128, 3.0),
    _Universal(0, 3, 128, 4.0),
    _Universal(0, 3, 128, 4.0),
)


def mobilenet_v4_conv_small(b: Builder, imgsz: int) -> None:
    """Qin et al. 2024: universal inverted bottlenecks without attention."""
    x = relu(b, "/stem", b.conv("/stem/conv", b.input("images", imgsz, imgsz), 32, 3, 2, mean=ABOVE_ZERO))
    for number, (hidden, channels) in enumerate(((32, 32), (96, 64))):
        path = f"/blocks.0/{number}"
        x = relu(b, f"{path}/act1", b.conv(f"{path}/conv1", x, hidden, 3, 2, mean=ABOVE_ZERO))
        x = relu(b, f"{path}/act2", b.conv(f"{path}/conv2", x, channels, mean=ABOVE_ZERO))
    for number, block in enumerate(_SMALL):
        x = _universal(b, f"/blocks.1/{number}", x, block)
    x = relu(b, "/head/act", b.conv("/head/conv", x, 960, mean=ABOVE_ZERO))
    x = b.gemm("/head/linear", pooled(b, x), 1280, mean=ABOVE_ZERO, spread=1.0)
    b.output(b.gemm("/classifier", relu(b, "/head/act2", x), CLASSES), "logits", [1, CLASSES])


def _universal(b: Builder, path: str, x: Value, block: _Universal) -> Value:
    y = x
    if block.start:
        # The depthwise convolution in the middle has the stride if there is one.
        y = b.depthwise(f"{path}/dw_start", y, block.start, 1 if block.middle else block.stride, mean=0.0)
    expanded = round(x.channels * block.expand / 8) * 8
    y = relu(b, f"{path}/pw_exp/act", b.conv(f"{path}/pw_exp", y, expanded, mean=ABOVE_ZERO))
    if block.middle:
        y = b.depthwise(f"{path}/dw_mid", y, block.middle, block.stride, mean=ABOVE_ZERO)
        y = relu(b, f"{path}/dw_mid/act", y)
    y = b.conv(f"{path}/pw_proj", y, block.channels, mean=0.0)
    return b.op(f"{path}/Add", "Add", [x, y], y.channels) if block.stride == 1 and x.channels == y.channels else y
