"""The end-to-end heads of YOLO26: four distances per anchor, and the best boxes without suppression."""

import numpy as np

from intloom.zoo.builder import Builder, Target, Value
from intloom.zoo.yolo_blocks import concat, conv_silu, upsample
from intloom.zoo.yolo_head import (
    KEYPOINTS,
    MASKS,
    Head,
    anchors,
    box_and_score_rows,
    branches,
    decode_keypoints,
    mask_width,
    output_masks,
    prototypes,
)

_MOST_BOXES = 300
_DISTANCES = Target(2.0, 0.6)
"""As in trained networks: distances to the four sides are a few cells."""


def detect_end_to_end(b: Builder, head: Head, extra: Value | None = None) -> None:
    """Detections [1, boxes, 6]: corners in pixels, score, class; the best scores first.

    `extra` holds additional channels per anchor, which follow the class.
    """
    rows = box_and_score_rows(b, head, 4, _DISTANCES)
    distances, logits = b.split(f"{head.path}/Split", rows, [4, head.classes])
    boxes = _corners(b, head, distances)
    scores = b.op(f"{head.path}/Sigmoid", "Sigmoid", [logits], head.classes)
    boxes = b.transpose(f"{head.path}/Transpose", boxes, [0, 2, 1], 4)
    scores = b.transpose(f"{head.path}/Transpose_1", scores, [0, 2, 1], head.classes)
    if extra is not None:
        extra = b.transpose(f"{head.path}/Transpose_2", extra, [0, 2, 1], extra.channels)
    best = _best(b, head, boxes, scores, extra)
    b.output(best, "output0", [1, _most(head), best.channels])


def segment_end_to_end(b: Builder, head: Head, hidden: int) -> None:
    """Detections with mask coefficients, and the prototype masks as a second output.

    The masks are made of all feature maps, each brought to the size and the channels of the first one.
    """
    first = head.maps[0]
    x = first
    for i, coarse in enumerate(head.maps[1:]):
        y = conv_silu(b, f"{head.path}/proto/feat_refine.{i}", coarse, first.channels)
        y = upsample(b, f"{head.path}/proto/upsample.{i}", y, head.strides[i + 1] // head.strides[0])
        x = b.op(f"{head.path}/proto/Add{'_1' if i else ''}", "Add", [x, y], first.channels)
    masks = prototypes(b, head, conv_silu(b, f"{head.path}/proto/feat_fuse", x, hidden, 3), hidden)
    detect_end_to_end(b, head, branches(b, head, mask_width(head), MASKS))
    output_masks(b, head, masks)


def pose_end_to_end(b: Builder, head: Head) -> None:
    """Detections with keypoints in pixels."""
    # In training, the same hidden channels also give two deviations for each point.
    width = max(head.maps[0].channels // 4, KEYPOINTS * 5)
    raw = branches(b, head, width, KEYPOINTS * 3)
    detect_end_to_end(b, head, decode_keypoints(b, head, raw, scale=1.0, shift=0.0))


def _corners(b: Builder, head: Head, distances: Value) -> Value:
    """Distances to the four sides as two corners in pixels."""
    points, strides = anchors(head)
    at = b.constant(f"{head.path}/anchors", points)
    low, high = b.split(f"{head.path}/Split_1", distances, [2, 2])
    first = b.op(f"{head.path}/Sub", "Sub", [at, low], 2)
    last = b.op(f"{head.path}/Add", "Add", [at, high], 2)
    corners = concat(b, f"{head.path}/Concat_4", [first, last])
    return b.op(f"{head.path}/Mul", "Mul", [corners, b.constant(f"{head.path}/strides", strides)], 4)


def _most(head: Head) -> int:
    """Rows of the output."""
    return min(_MOST_BOXES, sum(head.cells))


def _best(b: Builder, head: Head, boxes: Value, scores: Value, extra: Value | None) -> Value:
    """The anchors with the best classes, then the best pairs of anchor and class among them."""
    path, classes = f"{head.path}/best", head.classes
    k = b.constant(f"{path}/k", np.array([_most(head)], np.int64))
    last = b.constant(f"{path}/last", np.array([-1], np.int64))
    best = b.op(f"{path}/ReduceMax", "ReduceMax", [scores], 1, axes=[-1], keepdims=0)
    anchors_kept = _top(b, f"{path}/TopK", best, k)[1]
    index = b.op(f"{path}/Unsqueeze", "Unsqueeze", [anchors_kept, last], 1)
    kept = _gathered(b, f"{path}/scores", scores, index, classes)
    flat = b.op(f"{path}/Flatten", "Flatten", [kept], 1, axis=1)
    score, pair = _top(b, f"{path}/TopK_1", flat, k)
    count = b.constant(f"{path}/classes", np.array(classes, np.int64))
    label = b.op(f"{path}/Mod", "Mod", [pair, count], 1)
    row = b.op(f"{path}/Div", "Div", [pair, count], 1)
    chosen = b.op(f"{path}/GatherElements", "GatherElements", [anchors_kept, row], 1, axis=1)
    index = b.op(f"{path}/Unsqueeze_1", "Unsqueeze", [chosen, last], 1)
    corners = _gathered(b, f"{path}/boxes", boxes, index, 4)
    real = b.op(f"{path}/Cast", "Cast", [label], 1, to=1)
    columns = [b.op(f"{path}/Unsqueeze_{n}", "Unsqueeze", [v, last], 1) for n, v in ((2, score), (3, real))]
    if extra is not None:
        columns.append(_gathered(b, f"{path}/extra", extra, index, extra.channels))
    return concat(b, f"{path}/Concat", [corners, *columns], axis=-1)


def _top(b: Builder, name: str, x: Value, k: str) -> tuple[Value, Value]:
    """The largest values and their indices."""
    values = b.op(name, "TopK", [x, k], 1, axis=1, largest=1, sorted=1)
    indices = Value(f"{name}_output_1", 1)
    b.nodes[-1].output.append(indices.name)
    return values, indices


def _gathered(b: Builder, path: str, x: Value, index: Value, columns: int) -> Value:
    """The rows of [1, anchors, columns] that `index`, [1, rows, 1], selects."""
    repeats = b.constant(f"{path}/repeats", np.array([1, 1, columns], np.int64))
    every = b.op(f"{path}/Tile", "Tile", [index, repeats], columns)
    return b.op(f"{path}/GatherElements", "GatherElements", [x, every], columns, axis=1)
