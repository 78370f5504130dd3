"""Labeled images: COCO JSON, YOLO text files, or one folder per class."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from intloom.common.errors import FileFormatError
from intloom.files import read_bytes
from intloom.pictures import PICTURE_SUFFIXES

Floats = NDArray[np.float64]


class Task(StrEnum):
    """What a network computes."""

    DETECT = "detect"
    CLASSIFY = "classify"
    SEGMENT = "segment"
    POSE = "pose"


@dataclass(frozen=True)
class Truth:
    """A labeled object, in pixels of the image."""

    label: int
    box: tuple[float, float, float, float]
    """Corners x1, y1, x2, y2."""
    area: float
    crowd: bool = False
    polygons: tuple[tuple[float, ...], ...] = ()
    keypoints: Floats | None = None
    """[points, (x, y, visibility)]"""
    pixels: NDArray[np.bool_] | None = None
    """[height, width]; None where polygons describe the object."""

    def mask(self, width: int, height: int) -> NDArray[np.bool_]:
        """The object's pixels."""
        if self.pixels is not None:
            return self.pixels
        canvas = Image.new("1", (width, height))
        for polygon in self.polygons:
            ImageDraw.Draw(canvas).polygon(list(polygon), fill=1)
        return np.asarray(canvas, bool)


@dataclass(frozen=True)
class Sample:
    """One image with its objects; for classification, one object with the class."""

    path: Path
    truths: tuple[Truth, ...]


@dataclass(frozen=True)
class Dataset:
    """Labeled images and the names of the classes."""

    classes: tuple[str, ...]
    samples: tuple[Sample, ...]
    labeled: bool = True
    """Without labels, results can only be compared with those of another model."""

    def first(self, count: int | None) -> Dataset:
        """The first images, whose files are checked.

        Raises
        ------
        FileFormatError
            A picture is missing or cannot be read.
        """
        samples = self.samples[:count]
        for sample in samples:
            _picture_size(sample.path)
        return replace(self, samples=samples)


def load_dataset(folder: Path, task: Task) -> Dataset:
    """The labeled images in a folder.

    Pictures alone, in the folder or in its folder `images`, are data without labels.

    Classification: one folder per class. Other tasks: COCO JSON (`annotations.json`, or the only JSON file in
    `annotations`), or YOLO text files (`labels/NAME.txt` for `images/NAME.jpg`, names of classes in `classes.txt`).

    Raises
    ------
    FileFormatError
        The folder has none of these, or a file has other content, or masks that are run-length encoded.
    """
    if not folder.is_dir():
        raise FileFormatError(f"--data must be a folder of labeled images, but {folder} is none; give another path")
    home = folder / "images" if (folder / "images").is_dir() else folder
    if task is Task.CLASSIFY and any(p.is_dir() and any(_pictures(p)) for p in folder.iterdir() if p != home):
        folders = _class_folders(folder)
    elif task is not Task.CLASSIFY and (coco := _coco_file(folder)) is not None:
        folders = _read_coco(coco, folder, task)
    elif task is not Task.CLASSIFY and (folder / "labels").is_dir():
        folders = _read_yolo(folder, task)
    elif any(_pictures(home)):
        return Dataset((), tuple(Sample(path, ()) for path in _pictures(home)), labeled=False)
    else:
        raise FileFormatError(
            f"{folder} must hold annotations.json (COCO), folders images and labels (YOLO), for classification one "
            "folder per class, or pictures without labels; found none of them"
        )
    if not folders.samples:
        raise FileFormatError(f"{folder} must hold labeled images, but holds none")
    return folders


def _picture_size(path: Path) -> tuple[int, int]:
    try:
        with Image.open(path) as picture:
            return picture.size
    except Exception as error:  # noqa: BLE001  # Pillow's decoders raise many classes
        raise FileFormatError(f"cannot read picture {path} of the data: {error}; remove or repair it") from None


def _pictures(folder: Path) -> Iterator[Path]:
    yield from (p for p in sorted(folder.iterdir()) if p.suffix.lower() in PICTURE_SUFFIXES)


def _class_folders(folder: Path) -> Dataset:
    names = [p.name for p in sorted(folder.iterdir()) if p.is_dir()]
    samples = [
        Sample(path, (Truth(label, (0.0, 0.0, 0.0, 0.0), 0.0),))
        for label, name in enumerate(names)
        for path in _pictures(folder / name)
    ]
    return Dataset(tuple(names), tuple(samples))


def _coco_file(folder: Path) -> Path | None:
    if (folder / "annotations.json").is_file():
        return folder / "annotations.json"
    files = sorted((folder / "annotations").glob("*.json")) if (folder / "annotations").is_dir() else []
    if len(files) > 1:
        raise FileFormatError(f"{folder / 'annotations'} must hold one JSON file, not {len(files)}; move the others")
    return files[0] if files else None


def _read_coco(file: Path, folder: Path, task: Task) -> Dataset:
    try:
        content = json.loads(read_bytes(file, "annotations"))
        categories = sorted(content["categories"], key=lambda c: c["id"])
        # Networks number their classes without the gaps of COCO's identifiers.
        labels = {c["id"]: i for i, c in enumerate(categories)}
        objects: dict[Any, list[Truth]] = defaultdict(list)
        for a in content["annotations"]:
            objects[a["image_id"]].append(_coco_truth(a, labels[a["category_id"]], task))
        home = folder / "images" if (folder / "images").is_dir() else folder
        samples = [Sample(home / i["file_name"], tuple(objects[i["id"]])) for i in content["images"]]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FileFormatError(f"{file} must be COCO annotations, but is not: {type(error).__name__} {error}") from None
    return Dataset(tuple(str(c["name"]) for c in categories), tuple(samples))


def _coco_truth(entry: dict[str, Any], label: int, task: Task) -> Truth:
    x, y, width, height = (float(v) for v in entry["bbox"])
    polygons: tuple[tuple[float, ...], ...] = ()
    if task is Task.SEGMENT:
        shape = entry.get("segmentation", [])
        if isinstance(shape, dict):
            raise FileFormatError("masks must be polygons, not run-length encoded; convert the annotations")
        polygons = tuple(tuple(float(v) for v in p) for p in shape)
    points = None
    if task is Task.POSE:
        points = np.array(entry["keypoints"], np.float64).reshape(-1, 3)
    area = float(entry.get("area", width * height))
    return Truth(label, (x, y, x + width, y + height), area, bool(entry.get("iscrowd", 0)), polygons, points)


def _read_yolo(folder: Path, task: Task) -> Dataset:
    samples = []
    most = -1
    for path in _pictures(folder / "images"):
        file = folder / "labels" / f"{path.stem}.txt"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        size = _picture_size(path)
        truths = [_yolo_truth(line.split(), size, task, f"{file}:{n}") for n, line in enumerate(lines, 1) if line]
        most = max([most, *(t.label for t in truths)])
        samples.append(Sample(path, tuple(truths)))
    return Dataset(_class_names(folder, most + 1), tuple(samples))


def _class_names(folder: Path, count: int) -> tuple[str, ...]:
    file = folder / "classes.txt"
    names = file.read_text(encoding="utf-8").split("\n") if file.exists() else []
    listed = [n.strip() for n in names if n.strip()]
    return tuple(listed + [str(i) for i in range(len(listed), count)])


def _yolo_truth(words: Sequence[str], size: tuple[int, int], task: Task, where: str) -> Truth:
    width, height = size
    try:
        label, numbers = int(words[0]), np.array([float(w) for w in words[1:]])
        if task is Task.SEGMENT and len(numbers) > 4:
            points = numbers.reshape(-1, 2) * [width, height]
            (x1, y1), (x2, y2) = points.min(axis=0), points.max(axis=0)
            return Truth(label, (x1, y1, x2, y2), (x2 - x1) * (y2 - y1), polygons=(tuple(points.ravel()),))
        center, extent = numbers[:2] * [width, height], numbers[2:4] * [width, height]
        (x1, y1), (x2, y2) = center - extent / 2, center + extent / 2
        keypoints = numbers[4:].reshape(-1, 3) * [width, height, 1] if task is Task.POSE else None
        return Truth(label, (x1, y1, x2, y2), float(extent.prod()), keypoints=keypoints)
    except (ValueError, IndexError):
        raise FileFormatError(
            f"{where} must be a class and numbers as YOLO's {task} labels have them, not {' '.join(words)[:60]!r}"
        ) from None
