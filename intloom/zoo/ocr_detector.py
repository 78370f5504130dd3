"""A text detector like PP-OCRv3: MobileNetV3 of half width, a pyramid with squeeze-and-excitation, a DB head."""

from typing import NamedTuple

from intloom.zoo.activations import ABOVE_ZERO, hard_swish, relu, squeeze_excitation
from intloom.zoo.builder import Builder, Value
from intloom.zoo.yolo_blocks import concat, upsample

_WIDTH, _HIDDEN = 96, 24
"""Channels of the pyramid, and of each of its results."""


class _Block(NamedTuple):
    kernel: int
    expanded: int
    channels: int
    swish: bool
    stride: int


_BLOCKS = (
    _Block(3, 8, 8, False, 1),
    _Block(3, 32, 16, False, 2),
    _Block(3, 40, 16, False, 1),
    _Block(5, 40, 24, False, 2),
    _Block(5, 64, 24, False, 1),
    _Block(5, 64, 24, False, 1),
    _Block(3, 120, 40, True, 2),
    _Block(3, 104, 40, True, 1),
    _Block(3, 96, 40, True, 1),
    _Block(3, 96, 40, True, 1),
    _Block(3, 240, 56, True, 1),
    _Block(3, 336, 56, True, 1),
    _Block(5, 336, 80, True, 2),
    _Block(5, 480, 80, True, 1),
    _Block(5, 480, 80, True, 1),
)
"""Howard et al. 2019, width 0.5 with channels rounded to multiples of 8, without squeeze-and-excitation."""
_LEVELS = (3, 6, 12)
"""Blocks whose input is a level of the pyramid."""


def ocr_detector(b: Builder, imgsz: int) -> None:
    """Probability of text for each pixel."""
    levels = [_residual(b, f"/neck/ins{k}", x, _WIDTH, 1) for k, x in enumerate(_backbone(b, imgsz))]
    for k in (2, 1, 0):
        above = upsample(b, f"/neck/up{k}", levels[k + 1])
        levels[k] = b.op(f"/neck/Add{k}", "Add", [levels[k], above], _WIDTH)
    parts = []
    for k, level in enumerate(levels):
        part = _residual(b, f"/neck/inp{k}", level, _HIDDEN, 3)
        for step in range(k):
            part = upsample(b, f"/neck/inp{k}/up{step}", part)
        parts.append(part)
    x = concat(b, "/neck/Concat", parts[::-1])
    x = relu(b, "/head/act1", b.conv("/head/conv1", x, _HIDDEN, 3, mean=ABOVE_ZERO))
    x = relu(b, "/head/act2", b.conv_transpose("/head/conv2", x, _HIDDEN, mean=ABOVE_ZERO))
    x = b.op("/head/Sigmoid", "Sigmoid", [b.conv_transpose("/head/conv3", x, 1)], 1)
    b.output(x, "map", [1, 1, imgsz, imgsz])


def _backbone(b: Builder, imgsz: int) -> list[Value]:
    """Four levels, of a quarter of the image's size to one 32nd."""
    x = hard_swish(b, "/stem/act", b.conv("/stem", b.input("image", imgsz, imgsz), 8, 3, 2))
    levels = []
    for number, block in enumerate(_BLOCKS):
        if number in _LEVELS:
            levels.append(x)
        x = _inverted(b, f"/block{number}", x, block)
    return [*levels, hard_swish(b, "/last/act", b.conv("/last", x, 480))]


def _inverted(b: Builder, path: str, x: Value, block: _Block) -> Value:
    act, mean = (hard_swish, 1.4) if block.swish else (relu, ABOVE_ZERO)
    y = act(b, f"{path}/act0", b.conv(f"{path}/expand", x, block.expanded, mean=mean))
    y = b.depthwise(f"{path}/depthwise", y, block.kernel, block.stride, mean=mean)
    y = b.conv(f"{path}/project", act(b, f"{path}/act1", y), block.channels, mean=0.0)
    if block.stride == 1 and x.channels == y.channels:
        y = b.op(f"{path}/Add", "Add", [x, y], y.channels)
    return y


def _residual(b: Builder, path: str, x: Value, channels: int, kernel: int) -> Value:
    """A convolution, plus its result scaled by squeeze-and-excitation."""
    y = b.conv(f"{path}/conv", x, channels, kernel, mean=0.0)
    # The few channels of an image move together: with a spread of 1, several gates would be fully open.
    gated = squeeze_excitation(b, f"{path}/se", y, channels // 4, spread=0.7)
    return b.op(f"{path}/Add", "Add", [y, gated], channels)
