"""ShuffleNetV2 1.0x as torchvision exports it."""

from intloom.zoo.activations import ABOVE_ZERO, relu
from intloom.zoo.builder import Builder, Value
from intloom.zoo.classifiers import CLASSES, pooled
from intloom.zoo.yolo_blocks import concat

_STAGES = ((4, 116), (8, 232), (4, 464))


def shufflenet_v2(b: Builder, imgsz: int) -> None:
    """Ma et al. 2018: half of the channels pass each block, then channels are shuffled."""
    x = relu(b, "/conv1", b.conv("/conv1/conv1.0", b.input("images", imgsz, imgsz), 24, 3, 2, mean=ABOVE_ZERO))
    x = b.op("/maxpool/MaxPool", "MaxPool", [x], 24, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=0)
    side = imgsz // 4
    for stage, (repeats, channels) in enumerate(_STAGES, 2):
        side //= 2
        x = _shuffled(
            b, f"/stage{stage}/stage{stage}.0", _reduction(b, f"/stage{stage}/stage{stage}.0", x, channels), side
        )
        for i in range(1, repeats):
            path = f"/stage{stage}/stage{stage}.{i}"
            kept, y = b.split(f"{path}/Split", x, [channels // 2] * 2)
            y = _branch(b, f"{path}/branch2", y, channels // 2, 1)
            x = _shuffled(b, path, concat(b, f"{path}/Concat", [kept, y]), side)
    x = relu(b, "/conv5", b.conv("/conv5/conv5.0", x, 1024, mean=ABOVE_ZERO))
    b.output(b.gemm("/fc", pooled(b, x), CLASSES), "logits", [1, CLASSES])


def _reduction(b: Builder, path: str, x: Value, channels: int) -> Value:
    """Both branches have stride 2."""
    left = b.depthwise(f"{path}/branch1/branch1.0", x, stride=2, mean=0.0)
    left = relu(b, f"{path}/branch1", b.conv(f"{path}/branch1/branch1.2", left, channels // 2, mean=ABOVE_ZERO))
    return concat(b, f"{path}/Concat", [left, _branch(b, f"{path}/branch2", x, channels // 2, 2)])


def _branch(b: Builder, path: str, x: Value, channels: int, stride: int) -> Value:
    y = relu(b, f"{path}/relu", b.conv(f"{path}/branch2.0", x, channels, mean=ABOVE_ZERO))
    y = b.depthwise(f"{path}/branch2.3", y, stride=stride, mean=0.0)
    return relu(b, f"{path}/relu_1", b.conv(f"{path}/branch2.5", y, channels, mean=ABOVE_ZERO))


def _shuffled(b: Builder, path: str, x: Value, side: int) -> Value:
    """Interleave the two halves of the channels."""
    half = x.channels // 2
    y = b.reshape(f"{path}/Reshape", x, [2, half, side, side], 2)
    y = b.transpose(f"{path}/Transpose", y, [0, 2, 1, 3, 4], half)
    return b.reshape(f"{path}/Reshape_1", y, [x.channels, side, side], x.channels)
