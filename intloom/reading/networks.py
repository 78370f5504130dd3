"""What PP-OCRv4's networks take and give: pictures as tensors, boxes from a map of text, letters from scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from PIL import Image

from intloom.common.errors import ModelError

Floats = NDArray[np.float32]
Points = NDArray[np.float64]
DETECTOR_SHAPE = (1, 3, 480, 640)
RECOGNIZER_SHAPE = (1, 3, 48, 320)
_TEXT, _BOX = 0.3, 0.5
"""Smallest score of a pixel of text, and smallest mean score of a box, as in PP-OCR."""
_GROWTH = 1.9
"""The map shows the middle of lines: boxes grow by this factor times their area over their perimeter."""
_THINNEST = 3.0
_ANGLES = np.deg2rad(np.arange(-45.0, 45.0, 0.5))


@dataclass(frozen=True)
class Box:
    """A rectangle at any angle around a line of text."""

    corners: tuple[tuple[float, float], ...]
    """Upper left, upper right, lower right and lower left, in pixels of the picture."""
    score: float

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        a, b, _, d = (np.array(c) for c in self.corners)
        return float(np.hypot(*(b - a))), float(np.hypot(*(d - a)))


@dataclass(frozen=True)
class Line:
    """A line as the float model and as the accelerator read it."""

    box: Box
    float_text: str
    text: str
    record: Mapping[str, Any]

    @property
    def marked(self) -> list[tuple[str, str, bool]]:
        """The float model's letters and the accelerator's in parts, and whether they differ."""
        codes = SequenceMatcher(None, self.float_text, self.text, autojunk=False).get_opcodes()
        return [(self.float_text[a1:a2], self.text[b1:b2], kind != "equal") for kind, a1, a2, b1, b2 in codes]


def detector_input(picture: Image.Image, shape: tuple[int, ...] = DETECTOR_SHAPE) -> Floats:
    """The picture in the detector's size."""
    return _normalized(picture.resize((shape[3], shape[2]), Image.Resampling.BILINEAR))


def recognizer_input(line: Image.Image) -> Floats:
    """A line in the recognizer's height, filled with gray on the right."""
    scaled, tensor = scaled_line(line), np.zeros(RECOGNIZER_SHAPE, np.float32)
    tensor[..., : scaled.width] = _normalized(scaled)
    return tensor


def scaled_line(line: Image.Image) -> Image.Image:
    """A line in the recognizer's height, at most as wide as its input."""
    height, width = RECOGNIZER_SHAPE[2:]
    return line.resize((min(width, max(1, -(-height * line.width // line.height))), height), Image.Resampling.BILINEAR)


def _normalized(picture: Image.Image) -> Floats:
    """Blue, green and red from -1 to 1."""
    pixels = np.asarray(picture.convert("RGB"), np.float32)[..., ::-1].transpose(2, 0, 1)[None]
    return np.ascontiguousarray(pixels / np.float32(127.5) - np.float32(1.0))


def text_boxes(scores: NDArray[np.float32], size: tuple[int, int], most: int) -> list[Box]:
    """Boxes of the lines with the best scores, from the top; `scores` is the detector's map, `size` the picture's."""
    height, width = scores.shape
    scale = np.array([size[0] / width, size[1] / height])
    boxes = []
    for part in _components(scores > _TEXT):
        corners = _grown(_rectangle(part.astype(np.float64)))
        score = float(scores[part[:, 1], part[:, 0]].mean())
        box = Box(tuple((float(x), float(y)) for x, y in corners * scale), score)
        if score >= _BOX and min(box.size) >= _THINNEST * max(scale):
            boxes.append(box)
    best = sorted(boxes, key=lambda b: -b.score * b.size[0])[:most]
    return sorted(best, key=lambda b: (b.corners[0][1] + b.corners[3][1], b.corners[0][0]))


def mask_overlap(one: Floats, other: Floats) -> float:
    """Intersection over union of two detectors' masks of text; 1 where neither finds any."""
    both, any_of_them = (one > _TEXT) & (other > _TEXT), (one > _TEXT) | (other > _TEXT)
    return float(both.sum() / any_of_them.sum()) if any_of_them.any() else 1.0


def _components(mask: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The pixels (x, y) of each connected component: runs of a row join those that they touch in the row above."""
    runs: list[tuple[int, int, int]] = []
    parents: list[int] = []
    above: list[int] = []
    for y, row in enumerate(mask):
        ends = np.flatnonzero(np.diff(np.pad(row.astype(np.int8), 1))).reshape(-1, 2)
        current = range(len(runs), len(runs) + len(ends))
        runs += [(y, int(start), int(stop)) for start, stop in ends]
        parents += current
        for i in current:
            for j in above:
                if runs[j][1] <= runs[i][2] and runs[i][1] <= runs[j][2]:
                    parents[_root(parents, j)] = _root(parents, i)
        above = list(current)
    parts: dict[int, list[tuple[int, int]]] = {}
    for i, (y, start, stop) in enumerate(runs):
        parts.setdefault(_root(parents, i), []).extend((x, y) for x in range(start, stop))
    return [np.array(part) for part in parts.values()]


def _root(parents: list[int], run: int) -> int:
    while parents[run] != run:
        run = parents[run]
    return run


def _rectangle(points: Points) -> Points:
    """The corners of the smallest rectangle around points, the upper left one first."""
    axes = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), -np.sin(_ANGLES), np.cos(_ANGLES)], axis=1).reshape(-1, 2, 2)
    turned = axes @ points.T
    low, high = turned.min(axis=2), turned.max(axis=2)
    best = int((high - low).prod(axis=1).argmin())
    (left, top), (right, bottom) = low[best], high[best]
    return np.asarray(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]) @ axes[best])


def _grown(corners: Points) -> Points:
    along, down = corners[1] - corners[0], corners[3] - corners[0]
    width, height = max(np.hypot(*along), 1e-6), max(np.hypot(*down), 1e-6)
    step = _GROWTH * width * height / (2 * (width + height))
    along, down = along / width * step, down / height * step
    return np.asarray(corners + np.array([-along - down, along - down, along + down, down - along]))


def crop(picture: Image.Image, box: Box) -> Image.Image:
    """The box as an upright picture."""
    a, b, c, d = box.corners
    size = max(1, round(box.size[0])), max(1, round(box.size[1]))
    return picture.transform(size, Image.Transform.QUAD, (*a, *d, *c, *b), Image.Resampling.BICUBIC)


def characters(model: onnx.ModelProto) -> tuple[str, ...]:
    """The character of each class of a recognizer, from its metadata; class 0 stands between letters.

    Raises
    ------
    ModelError
        The model names no characters.
    """
    known = {p.key: p.value for p in model.metadata_props}
    if "character" not in known:
        raise ModelError("the recognizer must list its characters as `character` in its metadata, but does not")
    return ("", *known["character"].splitlines(), " ")


def decoded(scores: NDArray[np.float32], letters: Sequence[str]) -> str:
    """The text of a recognizer's scores `[positions, classes]`: the best class of each position, repeated ones once."""
    best = scores.argmax(axis=1)
    return "".join(letters[i] for i in best[np.append(True, best[1:] != best[:-1])])
