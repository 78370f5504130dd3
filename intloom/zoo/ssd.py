"""SSD with MobileNetV1 for 300 pixels and 90 classes, as published with the TensorFlow detection models."""

from intloom.zoo.activations import ABOVE_ZERO, relu6
from intloom.zoo.builder import Builder, Target, Value

CLASSES = 91
"""With one for the background."""
_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Channels and stride of each depthwise separable convolution."""
_FIRST_MAP = 10
"""The block whose result is the first feature map; the last block's is the second one."""
_EXTRA = ((256, 512), (128, 256), (128, 256), (64, 128))
"""Channels of the 1x1 and of the 3x3 convolution before each further feature map."""
_SMALL = Target(ABOVE_ZERO, per_channel=False)
_LOGIT_MEAN = -3.0
"""As in trained networks, most scores are near zero."""


def ssd_mobilenet_v1(b: Builder, imgsz: int) -> None:
    """Liu et al. 2016 on Howard et al. 2017; box encodings and class scores of all anchors."""
    maps = _maps(b, imgsz)
    boxes, scores = [], []
    for k, x in enumerate(maps):
        anchors = 3 if k == 0 else 6
        # The last maps have few pixels: statistics are taken over all channels.
        box = b.conv(f"/box_predictor.{k}/box", x, anchors * 4, target=Target(0.0, per_channel=k < 2))
        logits = Target(_LOGIT_MEAN, 1.4, per_channel=k < 2)
        score = b.conv(f"/box_predictor.{k}/class", x, anchors * CLASSES, target=logits)
        boxes.append(_rows(b, f"/box_predictor.{k}/boxes", box, 4))
        scores.append(_rows(b, f"/box_predictor.{k}/scores", score, CLASSES))
    every = b.op("/boxes", "Concat", boxes, 4, axis=1)
    likely = b.op("/Sigmoid", "Sigmoid", [b.op("/scores", "Concat", scores, CLASSES, axis=1)], CLASSES)
    cells = sum((3 if k == 0 else 6) * side * side for k, side in enumerate(_sides(imgsz)))
    b.output(every, "boxes", [1, cells, 4])
    b.output(likely, "scores", [1, cells, CLASSES])


def _sides(imgsz: int) -> list[int]:
    """Height and width of the feature maps."""
    sides = [-(-imgsz // 16)]
    while len(sides) < 2 + len(_EXTRA):
        sides.append(-(-sides[-1] // 2))
    return sides


def _maps(b: Builder, imgsz: int) -> list[Value]:
    x = b.conv("/Conv2d_0", b.input("images", imgsz, imgsz), 32, 3, 2, mean=ABOVE_ZERO)
    x = relu6(b, "/Conv2d_0", x)
    maps = []
    for k, (channels, stride) in enumerate(_BLOCKS):
        path = f"/Conv2d_{k + 1}_depthwise"
        x = relu6(b, path, b.depthwise(path, x, stride=stride, mean=ABOVE_ZERO))
        path = f"/Conv2d_{k + 1}_pointwise"
        x = relu6(b, path, b.conv(path, x, channels, mean=ABOVE_ZERO))
        if k in (_FIRST_MAP, len(_BLOCKS) - 1):
            maps.append(x)
    for k, (hidden, channels) in enumerate(_EXTRA):
        path = f"/Conv2d_13_1_{k + 2}_1x1"
        x = relu6(b, path, b.conv(path, x, hidden, target=_SMALL))
        path = f"/Conv2d_13_2_{k + 2}_3x3_s2"
        x = relu6(b, path, b.conv(path, x, channels, 3, 2, target=_SMALL))
        maps.append(x)
    return maps


def _rows(b: Builder, path: str, x: Value, each: int) -> Value:
    """Channels of all anchors and pixels as rows of `each` values."""
    x = b.op(f"{path}/Transpose", "Transpose", [x], x.channels, perm=[0, 2, 3, 1])
    return b.reshape(f"{path}/Reshape", x, [-1, each], each)
