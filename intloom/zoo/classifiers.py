"""ResNet-18 as torchvision exports it."""

from intloom.zoo.activations import ABOVE_ZERO, relu
from intloom.zoo.builder import Builder, Target, Value

CLASSES = 1000
_HALF = Target(1.3, 0.7)
"""The same for each of the two summands before a ReLU."""


def resnet18(b: Builder, imgsz: int) -> None:
    """He et al. 2015, eighteen layers, basic blocks."""
    x = relu(b, "/relu", b.conv("/conv1", b.input("images", imgsz, imgsz), 64, 7, 2, mean=ABOVE_ZERO))
    x = b.op("/maxpool/MaxPool", "MaxPool", [x], 64, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=0)
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for i in range(2):
            x = basic_block(b, f"/layer{stage}/layer{stage}.{i}", x, channels, 2 if stage > 1 and i == 0 else 1)
    b.output(b.gemm("/fc", pooled(b, x, "/avgpool"), CLASSES), "logits", [1, CLASSES])


def basic_block(b: Builder, path: str, x: Value, channels: int, stride: int) -> Value:
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution if the shape changes."""
    y = relu(b, f"{path}/relu", b.conv(f"{path}/conv1", x, channels, 3, stride, mean=ABOVE_ZERO))
    y = b.conv(f"{path}/conv2", y, channels, 3, target=_HALF)
    if stride > 1 or x.channels != channels:
        name = f"{path}/downsample/downsample.0"
        x = b.conv(name, x, channels, 1, stride, target=_HALF)
    return relu(b, f"{path}/relu_1", b.op(f"{path}/Add", "Add", [y, x], channels))


def pooled(b: Builder, x: Value, path: str = "") -> Value:
    """Mean of each channel, flat: [batch, channels]."""
    x = b.op(f"{path}/GlobalAveragePool", "GlobalAveragePool", [x], x.channels)
    return b.op("/Flatten", "Flatten", [x], x.channels, axis=1)
