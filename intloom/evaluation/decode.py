"""Objects in the outputs of YOLO networks, in pixels of the image."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from intloom.common.errors import UsageError
from intloom.evaluation.dataset import Task
from intloom.pictures import Picture

Floats = NDArray[np.float64]
_LEAST_SCORE, _OVERLAP, _MOST, _CANDIDATES = 0.001, 0.7, 300, 2000
"""As in Ultralytics' validation: a low threshold, because average precision needs the whole curve."""
_MASKS = 32
_FINAL_COLUMNS = 6
_DIMENSIONS = 3


@dataclass(frozen=True)
class Found:
    """Detected objects of one image, in descending order of score."""

    boxes: Floats
    """[objects, corners x1, y1, x2, y2]"""
    scores: Floats
    labels: NDArray[np.int64]
    keypoints: Floats
    """[objects, points, (x, y, visibility)]; no points for other tasks."""
    masks: NDArray[np.bool_]
    """[objects, height, width]; size 0 for other tasks."""


def decode(outputs: Sequence[NDArray[np.float32]], task: Task, classes: int, picture: Picture) -> Found:
    """The objects in a network's outputs.

    Accepts [1, 4 + classes + extra, anchors] (boxes as center and size, in pixels of the input), where extra are 32
    mask coefficients or 3 values per key point, and [1, objects, 6] (corners, score, class) of networks that need no
    suppression.

    Raises
    ------
    UsageError
        The outputs have other shapes.
    """
    first = outputs[0].astype(np.float64)
    if first.ndim == 3 and first.shape[2] == _FINAL_COLUMNS and task is Task.DETECT:
        rows = first[0][first[0, :, 4] >= _LEAST_SCORE]
        return _found(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64), rows[:, :0], picture)
    extra = first.shape[1] - 4 - classes if first.ndim == 3 else -1
    fits = {Task.DETECT: extra == 0, Task.SEGMENT: extra == _MASKS, Task.POSE: extra > 0 and extra % 3 == 0}
    if not fits[task]:
        of_data = f" with the data's {classes} classes" if classes else ""
        raise UsageError(
            f"output of shape {list(first.shape)} is not that of a YOLO network for {task}{of_data}; check --task"
        )
    rows = first[0].T
    scores = rows[:, 4 : 4 + classes]
    labels = scores.argmax(axis=1)
    best = scores[np.arange(len(rows)), labels]
    likely = np.flatnonzero(best >= _LEAST_SCORE)
    likely = likely[np.argsort(-best[likely], kind="stable")][:_CANDIDATES]
    center, size = rows[likely, :2], rows[likely, 2:4]
    boxes = np.concatenate([center - size / 2, center + size / 2], axis=1)
    kept = likely[chosen := suppress(boxes, labels[likely], _OVERLAP)[:_MOST]]
    objects = _found(boxes[chosen], best[kept], labels[kept], rows[kept, 4 + classes :], picture)
    return _with_masks(objects, boxes[chosen], rows[kept], outputs, picture) if task is Task.SEGMENT else objects


def class_count(shape: Sequence[int], task: Task) -> int | None:
    """Classes of a network with a first output of this shape; None where the shape does not tell."""
    if task is Task.CLASSIFY:
        return math.prod(shape[1:])
    if len(shape) != _DIMENSIONS or (shape[2] == _FINAL_COLUMNS and task is Task.DETECT):
        return None
    return {Task.DETECT: shape[1] - 4, Task.SEGMENT: shape[1] - 4 - _MASKS}.get(task)


def suppress(boxes: Floats, labels: NDArray[np.int64], overlap: float) -> NDArray[np.int64]:
    """Non-maximum suppression: indices of boxes whose intersection over union with better ones is at most `overlap`."""
    # Boxes of different classes never overlap with this offset.
    moved = boxes + labels[:, None] * (2 * np.abs(boxes).max(initial=0.0) + 1)
    areas = (moved[:, 2:] - moved[:, :2]).clip(0).prod(axis=1)
    alive = np.ones(len(boxes), bool)
    kept = []
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        kept.append(i)
        low, high = np.maximum(moved[:, :2], moved[i, :2]), np.minimum(moved[:, 2:], moved[i, 2:])
        shared = (high - low).clip(0).prod(axis=1)
        alive &= shared <= overlap * (areas + areas[i] - shared)
    return np.array(kept, np.int64)


def _found(boxes: Floats, scores: Floats, labels: NDArray[np.int64], extra: Floats, picture: Picture) -> Found:
    # The count is given, because it cannot be derived from a picture without objects.
    count = extra.shape[1] // 3 if extra.shape[1] % 3 == 0 else 0
    points = extra[:, : 3 * count].reshape(len(boxes), count, 3).copy()
    points[..., :2] = (points[..., :2] - [picture.left, picture.top]) / picture.scales
    original = (boxes - [picture.left, picture.top] * 2) / (picture.scales * 2)
    width, height = picture.original.size
    original = np.clip(original, 0, [width, height] * 2)
    return Found(original, scores, labels, points, np.zeros((len(boxes), 0, 0), bool))


def _with_masks(
    found: Found, boxes: Floats, rows: Floats, outputs: Sequence[NDArray[np.float32]], picture: Picture
) -> Found:
    """The objects with masks: a weighted sum of the network's prototypes, cut at the box, in the image's size."""
    prototypes = outputs[1][0].astype(np.float64)
    sums = np.tensordot(rows[:, -_MASKS:], prototypes, axes=1)
    height, width = picture.tensor.shape[2:]
    size = (picture.original.size[1], picture.original.size[0])
    masks = []
    for values, box in zip(sums, boxes, strict=True):
        whole = Image.fromarray(values.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR)
        inside = np.zeros((height, width), bool)
        x1, y1, x2, y2 = (max(0, round(v)) for v in box)
        inside[y1:y2, x1:x2] = True
        masks.append(_to_original((np.asarray(whole) > 0) & inside, picture))
    return Found(
        found.boxes, found.scores, found.labels, found.keypoints[:, :0], np.array(masks, bool).reshape(-1, *size)
    )


def _to_original(mask: NDArray[np.bool_], picture: Picture) -> NDArray[np.bool_]:
    width, height = picture.original.size
    right, bottom = picture.left + round(width * picture.scales[0]), picture.top + round(height * picture.scales[1])
    part = Image.fromarray(mask[picture.top : bottom, picture.left : right])
    return np.asarray(part.resize((width, height), Image.Resampling.NEAREST), bool)
