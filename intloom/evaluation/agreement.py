"""Labels for pictures without labels: what another model finds in them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from intloom.evaluation.dataset import Dataset, Sample, Task, Truth
from intloom.evaluation.decode import Found

_LEAST_SCORE = 0.25
"""Objects with lower scores are no labels."""
_VISIBLE = 2.0


def labeled_by(data: Dataset, results: Sequence[Any], task: Task) -> Dataset:
    """The data with a model's results as its labels: its best class, or its objects with a score of at least 0.25."""
    samples = []
    for sample, result in zip(data.samples, results, strict=True):
        truths: tuple[Truth, ...]
        if task is Task.CLASSIFY:
            truths = (Truth(int(result.argmax()), (0.0, 0.0, 0.0, 0.0), 0.0),)
        else:
            truths = tuple(_truth(result, int(i), task) for i in np.flatnonzero(result.scores >= _LEAST_SCORE))
        samples.append(Sample(sample.path, truths))
    count = max([len(data.classes), *(truth.label + 1 for sample in samples for truth in sample.truths)])
    return replace(data, classes=tuple(str(i) for i in range(count)), samples=tuple(samples))


def _truth(found: Found, index: int, task: Task) -> Truth:
    x1, y1, x2, y2 = (float(v) for v in found.boxes[index])
    points = found.keypoints[index].copy() if task is Task.POSE else None
    if points is not None:
        points[:, 2] = _VISIBLE
    pixels = found.masks[index] if task is Task.SEGMENT else None
    area = (x2 - x1) * (y2 - y1) if pixels is None else float(pixels.sum())
    return Truth(int(found.labels[index]), (x1, y1, x2, y2), area, keypoints=points, pixels=pixels)
