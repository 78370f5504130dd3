"""YOLOv8 n, s and m as published by Ultralytics: backbone, path-aggregation neck and the four heads."""

from dataclasses import dataclass
from math import ceil

from intloom.zoo.builder import Builder, Value
from intloom.zoo.yolo_blocks import c2f, concat, conv_silu, sppf, upsample
from intloom.zoo.yolo_head import Head, detect, pose, segment

CLASSES = 80
_STRIDES = (8, 16, 32)


@dataclass(frozen=True)
class Scale:
    """A model size: factors of depth and width, and the maximum of channels before the width factor."""

    depth: float
    width: float
    most: int

    def channels(self, published: int) -> int:
        """Channels of a layer, a multiple of eight."""
        return ceil(min(published, self.most) * self.width / 8) * 8

    def repeats(self, published: int) -> int:
        """Bottlenecks of a C2f block."""
        return max(1, round(published * self.depth))


SCALES = {"n": Scale(0.33, 0.25, 1024), "s": Scale(0.33, 0.5, 1024), "m": Scale(0.67, 0.75, 768)}


def backbone(b: Builder, scale: Scale, imgsz: int) -> list[Value]:
    """Layers 0 to 8; returns the feature maps of stride 8, 16 and 32."""
    c, n = scale.channels, scale.repeats
    x = conv_silu(b, "/model.0", b.input("images", imgsz, imgsz), c(64), 3, 2)
    maps = []
    for i, (width, repeats) in enumerate([(128, 3), (256, 6), (512, 6), (1024, 3)]):
        x = conv_silu(b, f"/model.{2 * i + 1}", x, c(width), 3, 2)
        x = c2f(b, f"/model.{2 * i + 2}", x, c(width), n(repeats), shortcut=True)
        maps.append(x)
    return maps[1:]


def neck(b: Builder, scale: Scale, maps: list[Value]) -> list[Value]:
    """Layers 10 to 21: top-down and bottom-up path of the feature pyramid."""
    c, n = scale.channels, scale.repeats(3)
    p3, p4, p5 = maps
    x = concat(b, "/model.11/Concat", [upsample(b, "/model.10", p5), p4])
    mid = c2f(b, "/model.12", x, c(512), n, shortcut=False)
    x = concat(b, "/model.14/Concat", [upsample(b, "/model.13", mid), p3])
    fine = c2f(b, "/model.15", x, c(256), n, shortcut=False)
    x = concat(b, "/model.17/Concat", [conv_silu(b, "/model.16", fine, c(256), 3, 2), mid])
    middle = c2f(b, "/model.18", x, c(512), n, shortcut=False)
    x = concat(b, "/model.20/Concat", [conv_silu(b, "/model.19", middle, c(512), 3, 2), p5])
    return [fine, middle, c2f(b, "/model.21", x, c(1024), n, shortcut=False)]


def build(b: Builder, imgsz: int, size: str, task: str) -> None:
    """YOLOv8 of a size (n, s, m) for a task (detect, seg, pose, cls)."""
    scale = SCALES[size]
    maps = backbone(b, scale, imgsz)
    if task == "cls":
        _classify(b, maps[-1])
        return
    maps[-1] = sppf(b, "/model.9", maps[-1], scale.channels(1024))
    head = Head("/model.22", neck(b, scale, maps), _STRIDES, imgsz, 1 if task == "pose" else CLASSES)
    if task == "seg":
        segment(b, head, scale.channels(256))
    elif task == "pose":
        pose(b, head)
    else:
        detect(b, head)


def _classify(b: Builder, x: Value) -> None:
    x = conv_silu(b, "/model.9/conv", x, 1280)
    x = b.op("/model.9/pool/GlobalAveragePool", "GlobalAveragePool", [x], x.channels)
    x = b.op("/model.9/Flatten", "Flatten", [x], x.channels, axis=1)
    x = b.gemm("/model.9/linear", x, 1000)
    x = b.op("/model.9/Softmax", "Softmax", [x], 1000, axis=1)
    b.output(x, "output0", [1, 1000])
