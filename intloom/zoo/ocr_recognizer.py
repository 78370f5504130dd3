"""A text recognizer like PP-OCRv3's: MobileNetV1 with narrow rows, attention over columns, a CTC head.

Linear layers are 1x1 convolutions. The published network has layer normalization, which has no integer kernel. Here it
is batch normalization, folded into the convolutions.
"""

from typing import NamedTuple

from intloom.zoo.activations import hard_swish, squeeze_excitation
from intloom.zoo.attention import column_block
from intloom.zoo.builder import Builder, Target, Value
from intloom.zoo.yolo_blocks import concat, conv_silu

HEIGHT = 48
"""Of a line of text."""
CLASSES = 97
"""95 printable characters, space, and the blank of CTC."""
_DEPTH, _HEADS, _HIDDEN, _FEATURES = 2, 8, 120, 64
"""Attention blocks, their heads and channels; channels before the classifier."""


class _Block(NamedTuple):
    channels: int
    kernel: int = 3
    stride: int | tuple[int, int] = 1
    squeeze: bool = False


_BLOCKS = (
    _Block(32),
    _Block(64),
    _Block(64),
    _Block(128, stride=(2, 1)),
    _Block(128),
    _Block(256, stride=(2, 1)),
    *(_Block(256, 5) for _ in range(5)),
    _Block(512, 5, (2, 1), squeeze=True),
    _Block(512, 5, (1, 2), squeeze=True),
)
"""Li et al. 2022, width 0.5: a column of the result is 8 pixels of the line."""


def ocr_recognizer(b: Builder, width: int) -> None:
    """Probabilities of characters per column, [1, columns, classes]."""
    x = _backbone(b, width)
    columns = width // 8
    y = conv_silu(b, "/encoder/conv1", x, x.channels // 8, 3)
    y = conv_silu(b, "/encoder/conv2", y, _HIDDEN)
    for i in range(_DEPTH):
        y = column_block(b, f"/encoder/svtr_block.{i}", y, columns, _HEADS)
    y = concat(b, "/encoder/Concat", [x, conv_silu(b, "/encoder/conv3", y, x.channels)])
    y = conv_silu(b, "/encoder/conv4", y, x.channels // 8, 3)
    y = conv_silu(b, "/encoder/conv1x1", y, _FEATURES)
    y = b.conv("/head/fc", y, CLASSES, target=Target(0.0, 2.0))
    y = b.reshape("/head/Reshape", y, [CLASSES, columns], CLASSES)
    y = b.transpose("/head/Transpose", y, [0, 2, 1], CLASSES)
    y = b.op("/head/Softmax", "Softmax", [y], CLASSES, axis=2)
    b.output(y, "characters", [1, columns, CLASSES])


def _backbone(b: Builder, width: int) -> Value:
    """Features of one row."""
    x = hard_swish(b, "/stem/act", b.conv("/stem", b.input("image", HEIGHT, width), 16, 3, 2))
    for i, block in enumerate(_BLOCKS):
        path = f"/block{i}"
        x = b.depthwise(f"{path}/depthwise", x, block.kernel, block.stride)
        x = hard_swish(b, f"{path}/act0", x)
        if block.squeeze:
            x = squeeze_excitation(b, f"{path}/se", x, x.channels // 4)
        x = hard_swish(b, f"{path}/act1", b.conv(f"{path}/pointwise", x, block.channels))
    window = {"kernel_shape": [3, 2], "strides": [3, 2]}
    return b.op("/pool/AveragePool", "AveragePool", [x], x.channels, **window)
