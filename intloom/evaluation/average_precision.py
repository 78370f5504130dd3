"""Average precision as COCO defines it, for boxes, masks and key points, and top-k accuracy.

The same rules as in pycocotools: ten thresholds from 0.5 to 0.95, 101 recall levels, greedy assignment by descending
score, and truths that are ignored (crowds, objects without key points).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
_RECALLS: Floats = np.linspace(0.0, 1.0, 101)
_NO_MATCH = -1


@dataclass(frozen=True)
class Matches:
    """Detections of one class in one image in descending order of score, assigned to truths per threshold."""

    scores: Floats
    hit: Bools
    """[thresholds, detections]"""
    ignored: Bools
    """[thresholds, detections]: assigned to a truth that is ignored."""
    truths: int
    """Truths that count."""


def assign(similarity: Floats, scores: Floats, ignore: Bools, crowd: Bools, most: int) -> Matches:
    """Assign detections to truths.

    Parameters
    ----------
    similarity
        [detections, truths], 0 to 1.
    scores
        Score of each detection.
    ignore, crowd
        For each truth: it does not count; it may be assigned several times.
    most
        Detections beyond this number, by score, do not count.
    """
    order = np.argsort(-scores, kind="mergesort")[:most]
    # Truths that count come first, so that an ignored one is taken only without another.
    columns = np.argsort(ignore, kind="mergesort")
    table, ignore, crowd = similarity[order][:, columns], ignore[columns], crowd[columns]
    hit = np.zeros((len(THRESHOLDS), len(order)), bool)
    ignored = np.zeros_like(hit)
    for row, threshold in enumerate(THRESHOLDS):
        taken = np.zeros(len(ignore), bool)
        for d in range(len(order)):
            best = _best(table[d], float(threshold), taken & ~crowd, ignore)
            if best != _NO_MATCH:
                taken[best] = True
                hit[row, d], ignored[row, d] = not ignore[best], ignore[best]
    return Matches(scores[order], hit, ignored, int(np.count_nonzero(~ignore)))


def _best(row: Floats, threshold: float, taken: Bools, ignore: Bools) -> int:
    """The truth with the largest similarity of at least the threshold; one that counts before one that is ignored."""
    usable = (row >= min(threshold, 1 - 1e-10)) & ~taken
    for group in (usable & ~ignore, usable & ignore):
        if group.any():
            values = np.where(group, row, -1.0)
            # Of equal ones the last, as in pycocotools.
            return len(values) - 1 - int(np.argmax(values[::-1]))
    return _NO_MATCH


def average_precisions(images: Sequence[Matches]) -> Floats:
    """Average precision of one class at each threshold; NaN if no truth counts."""
    truths = sum(m.truths for m in images)
    if not truths:
        return np.full(len(THRESHOLDS), np.nan)
    scores = np.concatenate([m.scores for m in images])
    order = np.argsort(-scores, kind="mergesort")
    hit = np.concatenate([m.hit for m in images], axis=1)[:, order]
    ignored = np.concatenate([m.ignored for m in images], axis=1)[:, order]
    return np.array([_one_threshold(h, i, truths) for h, i in zip(hit, ignored, strict=True)])


def _one_threshold(hit: Bools, ignored: Bools, truths: int) -> float:
    good, bad = np.cumsum(hit, dtype=np.float64), np.cumsum(~hit & ~ignored, dtype=np.float64)
    recall = good / truths
    precision = good / (good + bad + np.spacing(1))
    # The precision at a recall level is the best one at that level or any higher one.
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(recall, _RECALLS, side="left")
    # Recall levels that are not reached have precision 0.
    return float(np.append(precision, 0.0)[np.minimum(at, len(precision))].mean())


@dataclass(frozen=True)
class Score:
    """Figures of one engine."""

    figures: Mapping[str, float]
    """By name: mAP50-95 and mAP50, or top-1 and top-5; 0 to 1."""
    classes: Mapping[str, Mapping[str, float]]
    """The same per class, for classes with truths."""


def summarize_precision(classes: Mapping[str, Floats]) -> Score:
    """Means over the classes, which have one average precision per threshold."""
    rows = {
        name: {"mAP50-95": float(values.mean()), "mAP50": float(values[0])}
        for name, values in classes.items()
        if not np.isnan(values).any()
    }
    figures = {key: float(np.mean([r[key] for r in rows.values()])) if rows else 0.0 for key in ("mAP50-95", "mAP50")}
    return Score(figures, rows)


def top_k(scores: Floats, truths: NDArray[np.int64], names: Sequence[str]) -> Score:
    """Share of images, [images, classes] scores, whose class is the first, or among the first five."""
    order = np.argsort(-scores, axis=1, kind="mergesort")
    hits = {f"top-{k}": (order[:, :k] == truths[:, None]).any(axis=1) for k in (1, 5)}
    rows = {
        name: {key: float(h[truths == i].mean()) for key, h in hits.items()}
        for i, name in enumerate(names)
        if (truths == i).any()
    }
    return Score({key: float(h.mean()) if len(h) else 0.0 for key, h in hits.items()}, rows)


def box_similarity(found: Floats, truths: Floats, crowd: Bools) -> Floats:
    """Intersection over union of boxes given as corners; for a crowd, over the area of the detection."""
    low = np.maximum(found[:, None, :2], truths[None, :, :2])
    high = np.minimum(found[:, None, 2:], truths[None, :, 2:])
    shared = (high - low).clip(0).prod(axis=2)
    areas = (found[:, 2:] - found[:, :2]).prod(axis=1)[:, None]
    union = np.where(crowd[None], areas, areas + (truths[:, 2:] - truths[:, :2]).prod(axis=1)[None] - shared)
    result: Floats = shared / np.maximum(union, 1e-12)
    return result


def mask_similarity(found: Bools, truths: Bools, crowd: Bools) -> Floats:
    """Intersection over union of masks, [objects, height, width]; for a crowd, over the area of the detection."""
    a, b = (m.reshape(len(m), -1).astype(np.float64) for m in (found, truths))
    shared = a @ b.T
    areas = a.sum(axis=1)[:, None]
    union = np.where(crowd[None], areas, areas + b.sum(axis=1)[None] - shared)
    result: Floats = shared / np.maximum(union, 1e-12)
    return result


def keypoint_similarity(found: Floats, truths: Floats, boxes: Floats, areas: Floats, sigmas: Floats) -> Floats:
    """Object key point similarity; key points are [objects, points, (x, y, visibility)].

    Boxes are corners. A truth without visible points is compared with its box, enlarged by its size on each side.
    """
    result = np.zeros((len(found), len(truths)))
    variances = (2 * sigmas) ** 2
    for t, (points, box, area) in enumerate(zip(truths, boxes, areas, strict=True)):
        seen = points[:, 2] > 0
        if seen.any():
            gap = found[:, :, :2] - points[None, :, :2]
        else:
            size = box[2:] - box[:2]
            low, high = box[:2] - size, box[:2] + 2 * size
            gap = np.maximum(0, low - found[:, :, :2]) + np.maximum(0, found[:, :, :2] - high)
        error = (gap**2).sum(axis=2) / variances / (area + np.spacing(1)) / 2
        chosen = seen if seen.any() else np.ones_like(seen)
        result[:, t] = np.exp(-error[:, chosen]).mean(axis=1)
    return result
