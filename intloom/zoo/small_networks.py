"""Small networks for tutorials and tests, each with one building block or feature."""

from intloom.zoo import attention
from intloom.zoo.activations import ABOVE_ZERO
from intloom.zoo.builder import Builder
from intloom.zoo.classifiers import basic_block
from intloom.zoo.yolo_blocks import c2f as c2f_block
from intloom.zoo.yolo_blocks import concat, conv_silu, upsample
from intloom.zoo.yolo_blocks import sppf as sppf_block
from intloom.zoo.yolo_head import Head, detect


def tiny(b: Builder, imgsz: int) -> None:
    """One 3x3 convolution with SiLU."""
    x = conv_silu(b, "/model.0", b.input("images", imgsz, imgsz), 16, 3)
    b.output(x, "output0", [1, 16, imgsz, imgsz])


def c2f(b: Builder, imgsz: int) -> None:
    """A stem and one C2f block: Split, bottleneck with shortcut, Concat."""
    x = conv_silu(b, "/model.0", b.input("images", imgsz, imgsz), 32, 3, 2)
    x = c2f_block(b, "/model.1", x, 32, 1, shortcut=True)
    b.output(x, "output0", [1, 32, imgsz // 2, imgsz // 2])


def sppf(b: Builder, imgsz: int) -> None:
    """A stem and one SPPF block: a chain of 5x5 max pools."""
    x = conv_silu(b, "/model.0", b.input("images", imgsz, imgsz), 32, 3, 2)
    x = sppf_block(b, "/model.1", x, 32)
    b.output(x, "output0", [1, 32, imgsz // 2, imgsz // 2])


def c2psa(b: Builder, imgsz: int) -> None:
    """The C2PSA block of YOLO11n alone: its input are the features of stride 32 of an image of this size."""
    side = imgsz // 32
    x = attention.c2psa(b, "/model.10", b.input("features", side, side, 256), side, 1)
    b.output(x, "output0", [1, 256, side, side])


def residual(b: Builder, imgsz: int) -> None:
    """A stem and two residual blocks with ReLU, the second one with a stride."""
    stem = b.conv("/conv1", b.input("images", imgsz, imgsz), 16, 3, 2, mean=ABOVE_ZERO)
    x = b.op("/relu/Relu", "Relu", [stem], 16)
    x = basic_block(b, "/layer1/layer1.0", x, 16, 1)
    x = basic_block(b, "/layer2/layer2.0", x, 32, 2)
    b.output(x, "output0", [1, 32, imgsz // 4, imgsz // 4])


def mini_yolo(b: Builder, imgsz: int) -> None:
    """A small detector: two scales, one feature fusion, the whole YOLOv8 head with four classes."""
    x = conv_silu(b, "/model.0", b.input("images", imgsz, imgsz), 16, 3, 2)
    x = conv_silu(b, "/model.1", x, 16, 3, 2)
    fine = c2f_block(b, "/model.2", conv_silu(b, "/model.3", x, 32, 3, 2), 32, 1, shortcut=True)
    coarse = sppf_block(b, "/model.5", conv_silu(b, "/model.4", fine, 48, 3, 2), 48)
    x = concat(b, "/model.7/Concat", [upsample(b, "/model.6", coarse), fine])
    x = c2f_block(b, "/model.8", x, 32, 1, shortcut=False)
    detect(b, Head("/model.22", (x, coarse), (8, 16), imgsz, 4))
