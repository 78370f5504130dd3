"""Scores of stored results against the labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.evaluation.average_precision import (
    Matches,
    Score,
    assign,
    average_precisions,
    box_similarity,
    keypoint_similarity,
    mask_similarity,
    summarize_precision,
    top_k,
)
from intloom.evaluation.dataset import Dataset, Sample, Task, Truth
from intloom.evaluation.decode import Found

_PERSON = np.array([26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89]) / 1000.0
"""COCO's standard deviations of the 17 key points of a person."""
_MOST = {Task.DETECT: 100, Task.SEGMENT: 100, Task.POSE: 20}
"""Detections of a class that count in one image, as in COCO."""


@dataclass(frozen=True)
class Scored:
    """Score over all images, and the figure of each image alone."""

    score: Score
    images: tuple[float, ...]


def score_objects(found: Sequence[Found], data: Dataset, task: Task) -> Scored:
    """Average precision of the objects found in the first images of the data."""
    samples = data.samples[: len(found)]
    table = [[_matches(f, s, task, label) for f, s in zip(found, samples, strict=True)] for label in _labels(data)]
    score = summarize_precision({name: average_precisions(row) for name, row in zip(data.classes, table, strict=True)})
    images = tuple(_alone([row[i] for row in table]) for i in range(len(samples)))
    return Scored(score, images)


def score_classes(scores: Sequence[NDArray[np.float64]], data: Dataset) -> Scored:
    """Top-1 and top-5 accuracy of the first images; an image alone has the score of its class."""
    truths = np.array([s.truths[0].label for s in data.samples[: len(scores)]], np.int64)
    table = np.array(scores).reshape(len(scores), -1)
    return Scored(top_k(table, truths, data.classes), tuple(table[np.arange(len(truths)), truths]))


def _labels(data: Dataset) -> range:
    return range(len(data.classes))


def _alone(matches: Sequence[Matches]) -> float:
    """Mean precision over the classes of one image; 1 for an image without objects."""
    values = [float(average_precisions([m]).mean()) for m in matches if m.truths]
    return float(np.mean(values)) if values else 1.0


def _matches(found: Found, sample: Sample, task: Task, label: int) -> Matches:
    chosen = np.flatnonzero(found.labels == label)
    truths = [t for t in sample.truths if t.label == label]
    crowd = np.array([t.crowd for t in truths], bool)
    ignore = crowd | (np.array([_has_no_points(t) for t in truths], bool) if task is Task.POSE else False)
    return assign(_similarity(found, chosen, truths, task, crowd), found.scores[chosen], ignore, crowd, _MOST[task])


def _has_no_points(truth: Truth) -> bool:
    return truth.keypoints is None or not (truth.keypoints[:, 2] > 0).any()


def _similarity(
    found: Found, chosen: NDArray[np.int64], truths: Sequence[Truth], task: Task, crowd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    if not truths or not len(chosen):
        return np.zeros((len(chosen), len(truths)))
    boxes = np.array([t.box for t in truths], np.float64)
    if task is Task.SEGMENT:
        height, width = found.masks.shape[1:]
        return mask_similarity(found.masks[chosen], np.array([t.mask(width, height) for t in truths]), crowd)
    if task is Task.POSE:
        points = np.array([t.keypoints for t in truths], np.float64)
        count = points.shape[1]
        sigmas = _PERSON if count == len(_PERSON) else np.full(count, 1.0 / count)
        areas = np.array([t.area for t in truths])
        return keypoint_similarity(found.keypoints[chosen], points, boxes, areas, sigmas)
    return box_similarity(found.boxes[chosen], boxes, crowd)
