"""Heads of YOLOv8 and YOLO11: detection with distribution focal loss, and segmentation and pose built on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intloom.zoo.builder import Builder, Target, Value
from intloom.zoo.yolo_blocks import branch, concat, conv_silu, separable_branch

BINS = 16
"""Bins of the distribution of each side's distance."""
MASKS = 32
KEYPOINTS = 17
_BIN_SLOPE = -0.3
"""Short distances get a higher probability, so that boxes are a few cells wide."""
_LOGITS = Target(-3.0, 1.4)
"""As in trained networks, most scores are near zero and few anchors exceed a threshold."""


@dataclass(frozen=True)
class Head:
    """Inputs of a head: its path, the feature maps of all scales, the strides and the image size."""

    path: str
    maps: Sequence[Value]
    strides: Sequence[int]
    imgsz: int
    classes: int
    separable: bool = False
    """Whether the class branches are depthwise and 1x1 convolutions."""

    @property
    def cells(self) -> list[int]:
        """Anchors of each scale."""
        return [(self.imgsz // s) ** 2 for s in self.strides]


def box_and_score_rows(b: Builder, head: Head, sides: int, target: Target) -> Value:
    """The box and class branches of all scales, [1, sides + classes, anchors]; `target` is that of the boxes."""
    box_hidden = max(16, head.maps[0].channels // 4, sides)
    class_hidden = max(head.maps[0].channels, min(head.classes, 100))
    class_branch = separable_branch if head.separable else branch
    rows: list[Value] = []
    for i, x in enumerate(head.maps):
        box = branch(b, f"{head.path}/cv2.{i}", x, box_hidden, (sides, target))
        score = class_branch(b, f"{head.path}/cv3.{i}", x, class_hidden, (head.classes, _LOGITS))
        joined = concat(b, f"{head.path}/Concat{_suffix(i)}", [box, score])
        rows.append(_flatten(b, f"{head.path}/Reshape{_suffix(i)}", joined))
    return _join_anchors(b, f"{head.path}/Concat{_suffix(len(head.maps))}", rows)


def detect(b: Builder, head: Head, extra: Value | None = None) -> None:
    """The detection head; `extra` holds additional channels per anchor, which are appended to the output."""
    every = box_and_score_rows(b, head, BINS * 4, Target(0.0, slope=_BIN_SLOPE, period=BINS))
    box, score = b.split(f"{head.path}/Split", every, [BINS * 4, head.classes])
    scales = len(head.maps)
    boxes = _decode(b, head, _expectation(b, head, box), scales + 1)
    likely = b.op(f"{head.path}/Sigmoid", "Sigmoid", [score], head.classes)
    parts = [boxes, likely] if extra is None else [boxes, likely, extra]
    result = concat(b, f"{head.path}/Concat{_suffix(scales + 2)}", parts)
    b.output(result, "output0", [1, result.channels, sum(head.cells)])


def segment(b: Builder, head: Head, hidden: int) -> None:
    """Detection with mask coefficients per anchor, and the prototype masks as a second output."""
    masks = prototypes(b, head, head.maps[0], hidden)
    detect(b, head, branches(b, head, mask_width(head), MASKS))
    output_masks(b, head, masks)


def prototypes(b: Builder, head: Head, x: Value, hidden: int) -> Value:
    """The prototype masks, of twice the size of the feature map `x`."""
    x = conv_silu(b, f"{head.path}/proto/cv1", x, hidden, 3)
    x = b.conv_transpose(f"{head.path}/proto/upsample", x, hidden)
    x = conv_silu(b, f"{head.path}/proto/cv2", x, hidden, 3)
    return conv_silu(b, f"{head.path}/proto/cv3", x, MASKS)


def mask_width(head: Head) -> int:
    """Hidden channels of the branches for mask coefficients."""
    return max(head.maps[0].channels // 4, MASKS)


def output_masks(b: Builder, head: Head, masks: Value) -> None:
    """Make the prototype masks the second output."""
    side = 2 * head.imgsz // head.strides[0]
    b.output(masks, "output1", [1, MASKS, side, side])


def pose(b: Builder, head: Head) -> None:
    """Detection with keypoints per anchor, decoded to pixels."""
    width = max(head.maps[0].channels // 4, KEYPOINTS * 3)
    raw = branches(b, head, width, KEYPOINTS * 3)
    detect(b, head, decode_keypoints(b, head, raw, scale=2.0, shift=-0.5))


def _suffix(index: int) -> str:
    return f"_{index}" if index else ""


def _flatten(b: Builder, name: str, x: Value) -> Value:
    shape = b.constant(f"{name}/shape", np.array([1, x.channels, -1], np.int64))
    return b.op(name, "Reshape", [x, shape], x.channels)


def _join_anchors(b: Builder, name: str, rows: Sequence[Value]) -> Value:
    return b.op(name, "Concat", rows, rows[0].channels, axis=2)


def branches(b: Builder, head: Head, hidden: int, channels: int) -> Value:
    """A further branch of all scales, [1, channels, anchors]."""
    path, rows = f"{head.path}/cv4", []
    for i, x in enumerate(head.maps):
        y = branch(b, f"{path}.{i}", x, hidden, (channels, Target(0.0)))
        rows.append(_flatten(b, f"{path}/Reshape{_suffix(i)}", y))
    return _join_anchors(b, f"{path}/Concat", rows)


def _expectation(b: Builder, head: Head, box: Value) -> Value:
    """The mean of each side's distribution over the bins: softmax, then a 1x1 convolution with 0, 1, 2 and so on."""
    path = f"{head.path}/dfl"
    shape = b.constant(f"{path}/shape", np.array([1, 4, BINS, sum(head.cells)], np.int64))
    x = b.op(f"{path}/Reshape", "Reshape", [box, shape], 4)
    x = b.op(f"{path}/Transpose", "Transpose", [x], BINS, perm=[0, 2, 1, 3])
    x = b.op(f"{path}/Softmax", "Softmax", [x], BINS, axis=1)
    bins = b.constant("model.dfl.conv.weight", np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    ones = [1, 1]
    x = b.op(f"{path}/conv/Conv", "Conv", [x, bins], 1, kernel_shape=ones, strides=ones, dilations=ones, group=1)
    flat = b.constant(f"{path}/flat", np.array([1, 4, sum(head.cells)], np.int64))
    return b.op(f"{path}/Reshape_1", "Reshape", [x, flat], 4)


def anchors(head: Head) -> tuple[np.ndarray, np.ndarray]:
    """Centers of all cells in units of their own stride, [1, 2, anchors], and the strides, [1, anchors]."""
    centers, strides = [], []
    for stride in head.strides:
        side = head.imgsz // stride
        y, x = np.mgrid[0:side, 0:side] + 0.5
        centers.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full((1, side * side), stride))
    points = np.concatenate(centers, axis=1)[None].astype(np.float32)
    return points, np.concatenate(strides, axis=1).astype(np.float32)


def _decode(b: Builder, head: Head, sides: Value, concat_number: int) -> Value:
    """Conversion of the distances to the four sides into center, width and height in pixels."""
    points, strides = anchors(head)
    at = b.constant(f"{head.path}/anchors", points)
    step = b.constant(f"{head.path}/strides", strides)
    axis = b.constant(f"{head.path}/axis", np.array([1], np.int64))
    ends = [b.constant(f"{head.path}/bound_{n}", np.array([n], np.int64)) for n in (0, 2, 4)]
    low = b.op(f"{head.path}/Slice", "Slice", [sides, ends[0], ends[1], axis], 2)
    high = b.op(f"{head.path}/Slice_1", "Slice", [sides, ends[1], ends[2], axis], 2)
    first = b.op(f"{head.path}/Sub", "Sub", [at, low], 2)
    last = b.op(f"{head.path}/Add_1", "Add", [at, high], 2)
    total = b.op(f"{head.path}/Add_2", "Add", [first, last], 2)
    size = b.op(f"{head.path}/Sub_1", "Sub", [last, first], 2)
    two = b.constant(f"{head.path}/two", np.array(2.0, np.float32))
    center = b.op(f"{head.path}/Div_1", "Div", [total, two], 2)
    box = concat(b, f"{head.path}/Concat{_suffix(concat_number)}", [center, size])
    return b.op(f"{head.path}/Mul_2", "Mul", [box, step], 4)


def decode_keypoints(b: Builder, head: Head, raw: Value, scale: float, shift: float) -> Value:
    """Offsets to pixels: (scale * xy + anchor + shift) * stride; the third value of each point is a probability."""
    path = f"{head.path}/kpt"
    points, strides = anchors(head)
    count = sum(head.cells)
    shape = b.constant(f"{path}/shape", np.array([1, KEYPOINTS, 3, count], np.int64))
    x = b.op(f"{path}/Reshape", "Reshape", [raw, shape], KEYPOINTS)
    position, seen = b.split(f"{path}/Split", x, [2, 1], axis=2)
    if scale != 1.0:
        factor = b.constant(f"{path}/two", np.array(scale, np.float32))
        position = b.op(f"{path}/Mul", "Mul", [position, factor], KEYPOINTS)
    origin = b.constant(f"{path}/origin", points[:, None] + np.float32(shift))
    moved = b.op(f"{path}/Add", "Add", [position, origin], KEYPOINTS)
    pixels = b.op(f"{path}/Mul_1", "Mul", [moved, b.constant(f"{path}/step", strides)], KEYPOINTS)
    visible = b.op(f"{path}/Sigmoid", "Sigmoid", [seen], KEYPOINTS)
    joined = b.op(f"{path}/Concat", "Concat", [pixels, visible], KEYPOINTS, axis=2)
    flat = b.constant(f"{path}/flat", np.array([1, KEYPOINTS * 3, count], np.int64))
    return b.op(f"{path}/Reshape_1", "Reshape", [joined, flat], KEYPOINTS * 3)
