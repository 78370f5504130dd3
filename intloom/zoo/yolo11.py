"""YOLO11 n and s, and YOLO26 n, as published by Ultralytics: C3k2 blocks, attention, depthwise class branches."""

from dataclasses import dataclass

from intloom.zoo.attention import c2psa, psa_block
from intloom.zoo.builder import Builder, Value
from intloom.zoo.yolo_blocks import concat, conv_silu, sppf, upsample
from intloom.zoo.yolo_end_to_end import detect_end_to_end, pose_end_to_end, segment_end_to_end
from intloom.zoo.yolo_head import Head, detect, pose, segment
from intloom.zoo.yolov8 import CLASSES, Scale

_STRIDES = (8, 16, 32)
SCALES = {"n": Scale(0.5, 0.25, 1024), "s": Scale(0.5, 0.5, 1024)}


@dataclass(frozen=True)
class _Version:
    """What differs between the two: the inner blocks of the neck, the SPPF's residual, attention in the last block."""

    nested_neck: bool
    sppf_residual: bool
    attention_last: bool


_YOLO11 = _Version(nested_neck=False, sppf_residual=False, attention_last=False)
_YOLO26 = _Version(nested_neck=True, sppf_residual=True, attention_last=True)


def yolo11(b: Builder, imgsz: int, size: str, task: str) -> None:
    """YOLO11 for a task (detect, seg, pose): distribution focal loss as in YOLOv8."""
    head = _head(b, imgsz, size, task, _YOLO11)
    if task == "seg":
        segment(b, head, SCALES[size].channels(256))
    elif task == "pose":
        pose(b, head)
    else:
        detect(b, head)


def yolo26(b: Builder, imgsz: int, size: str, task: str) -> None:
    """YOLO26 for a task: four distances per anchor without a distribution, the best boxes without suppression."""
    head = _head(b, imgsz, size, task, _YOLO26)
    if task == "seg":
        segment_end_to_end(b, head, SCALES[size].channels(256))
    elif task == "pose":
        pose_end_to_end(b, head)
    else:
        detect_end_to_end(b, head)


def _head(b: Builder, imgsz: int, size: str, task: str, version: _Version) -> Head:
    maps = _features(b, imgsz, SCALES[size], version)
    return Head("/model.23", maps, _STRIDES, imgsz, 1 if task == "pose" else CLASSES, separable=True)


def _features(b: Builder, imgsz: int, scale: Scale, version: _Version) -> list[Value]:
    """Backbone, attention and path-aggregation neck."""
    c = scale.channels
    x = conv_silu(b, "/model.0", b.input("images", imgsz, imgsz), c(64), 3, 2)
    maps = []
    for i, (width, out, nested) in enumerate(
        ((128, 256, False), (256, 512, False), (512, 512, True), (1024, 1024, True))
    ):
        x = conv_silu(b, f"/model.{2 * i + 1}", x, c(width), 3, 2)
        x = _c3k2(b, f"/model.{2 * i + 2}", x, c(out), nested=nested, ratio=0.5 if nested else 0.25)
        maps.append(x)
    x = sppf(b, "/model.9", maps[-1], c(1024), residual=version.sppf_residual)
    maps[-1] = c2psa(b, "/model.10", x, imgsz // 32, scale.repeats(2))
    return _neck(b, scale, maps[1:], imgsz, version)


def _neck(b: Builder, scale: Scale, maps: list[Value], imgsz: int, version: _Version) -> list[Value]:
    c, nested = scale.channels, version.nested_neck
    p3, p4, p5 = maps
    x = concat(b, "/model.12/Concat", [upsample(b, "/model.11", p5), p4])
    mid = _c3k2(b, "/model.13", x, c(512), nested=nested)
    x = concat(b, "/model.15/Concat", [upsample(b, "/model.14", mid), p3])
    fine = _c3k2(b, "/model.16", x, c(256), nested=nested)
    x = concat(b, "/model.18/Concat", [conv_silu(b, "/model.17", fine, c(256), 3, 2), mid])
    middle = _c3k2(b, "/model.19", x, c(512), nested=nested)
    x = concat(b, "/model.21/Concat", [conv_silu(b, "/model.20", middle, c(512), 3, 2), p5])
    side = imgsz // 32 if version.attention_last else 0
    return [fine, middle, _c3k2(b, "/model.22", x, c(1024), nested=True, attention_side=side)]


def _c3k2(
    b: Builder, path: str, x: Value, channels: int, *, nested: bool, ratio: float = 0.5, attention_side: int = 0
) -> Value:
    """A C2f block whose inner block is a bottleneck, a nested C3 block, or a bottleneck with attention."""
    hidden = int(channels * ratio)
    parts = b.split(f"{path}/Split", conv_silu(b, f"{path}/cv1", x, 2 * hidden), [hidden, hidden])
    inner = f"{path}/m.0"
    if attention_side:
        y = _bottleneck(b, f"{inner}/0", parts[-1], hidden // 2)
        parts.append(psa_block(b, f"{inner}/1", y, attention_side, max(1, hidden // 64)))
    elif nested:
        parts.append(_c3k(b, inner, parts[-1]))
    else:
        parts.append(_bottleneck(b, inner, parts[-1], hidden // 2))
    return conv_silu(b, f"{path}/cv2", concat(b, f"{path}/Concat", parts), channels)


def _c3k(b: Builder, path: str, x: Value) -> Value:
    """Two bottlenecks beside a 1x1 convolution, concatenated."""
    hidden = x.channels // 2
    y = conv_silu(b, f"{path}/cv1", x, hidden)
    for i in range(2):
        y = _bottleneck(b, f"{path}/m/m.{i}", y, hidden)
    parts = [y, conv_silu(b, f"{path}/cv2", x, hidden)]
    return conv_silu(b, f"{path}/cv3", concat(b, f"{path}/Concat", parts), x.channels)


def _bottleneck(b: Builder, path: str, x: Value, hidden: int) -> Value:
    """Two 3x3 convolutions with a residual addition."""
    y = conv_silu(b, f"{path}/cv1", x, hidden, 3)
    y = conv_silu(b, f"{path}/cv2", y, x.channels, 3)
    return b.op(f"{path}/Add", "Add", [x, y], x.channels)
