"""What runs the images: onnxruntime with the float and the quantized model, golden model, RTL."""

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from PIL import Image, ImageOps

from intloom.api import Program
from intloom.common.errors import UsageError
from intloom.compiler.reference import open_session
from intloom.evaluation.dataset import Dataset, Sample, Task
from intloom.evaluation.decode import Found, decode
from intloom.files import write_bytes
from intloom.pictures import read_picture
from intloom.session import Session

Outputs = list[NDArray[Any]]
_IMAGENET_MEAN, _IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


_PICTURES = ("batch", "channels", "height", "width")


class Normalization(StrEnum):
    """Values of the pixels: 0 to 1, or with ImageNet's mean and deviation subtracted and divided."""

    UNIT = "unit"
    IMAGENET = "imagenet"


@dataclass(frozen=True)
class Engine:
    """Something that runs a network."""

    name: str
    shape: tuple[int, ...]
    """Shape of the input."""
    run: Callable[[NDArray[np.float32]], Outputs]
    identity: str
    """Changes with everything that the outputs depend on."""
    made: tuple[int, ...] = ()
    """Shape of the first output; empty where it is not known."""


def onnx_engine(name: str, model: onnx.ModelProto) -> Engine:
    """An engine of onnxruntime with its default optimizations and exact sums."""
    data = model.SerializeToString()
    session = open_session(data)
    (given,) = session.get_inputs()
    if not all(isinstance(size, int) for size in given.shape):
        raise UsageError(
            f"input {given.name!r} of the {name} model has open dimensions {given.shape}; set them with --dim NAME=N "
            f"or --shape {given.name}=1,3,H,W"
        )

    if len(given.shape) != len(_PICTURES) or given.shape[0] != 1:
        raise UsageError(
            f"input {given.name!r} of the {name} model has shape {list(given.shape)}, but images are passed one by "
            "one as [1, channels, height, width]; export the model with batch size 1"
        )

    def run(tensor: NDArray[np.float32]) -> Outputs:
        return list(session.run(None, {given.name: tensor}))

    made = tuple(session.get_outputs()[0].shape)
    return Engine(name, tuple(given.shape), run, hashlib.sha256(data).hexdigest(), made)


def accelerator_engine(name: str, program: Program, backend: str) -> Engine:
    """A program on a backend."""
    session = Session(program, backend=backend)
    (given,) = session.get_inputs()

    def run(tensor: NDArray[np.float32]) -> Outputs:
        return session.run(None, {given.name: tensor})

    # Every backend gives the same bytes, so the instructions alone identify the results.
    text = f"{backend} {program.program.source} {program.params.fingerprint()}"
    return Engine(name, tuple(given.shape), run, hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True)
class Images:
    """Images of the data, and how they become inputs."""

    data: Dataset
    task: Task
    normalization: Normalization
    count: int


def results(engine: Engine, images: Images, folder: Path) -> Iterator[Found | NDArray[np.float64]]:
    """The result of each image: objects, or scores of the classes.

    Results are stored in `folder`, and read from there by the next call.
    """
    home = folder / f"{engine.name}-{engine.identity[:12]}"
    data, task, normalization = images.data, images.task, images.normalization
    for sample in data.samples[: images.count]:
        digest = hashlib.sha256(f"{sample.path.resolve()} {normalization} {task} {data.classes}".encode())
        path = home / f"{sample.path.stem}-{digest.hexdigest()[:8]}.npz"
        if (stored := _read(path, task)) is not None:
            yield stored
            continue
        made = _run(engine, sample, task, normalization, len(data.classes))
        content = io.BytesIO()
        np.savez_compressed(content, **_arrays(made))
        write_bytes(path, content.getvalue())
        yield made


def _run(
    engine: Engine, sample: Sample, task: Task, normalization: Normalization, classes: int
) -> Found | NDArray[np.float64]:
    height, width = engine.shape[2:]
    if task is Task.CLASSIFY:
        tensor = class_tensor(sample.path, height, width, normalization)
        return np.asarray(engine.run(tensor)[0], np.float64).ravel()
    picture = read_picture(sample.path, height, width)
    return decode(engine.run(_normalized(picture.tensor, normalization)), task, classes, picture)


def class_tensor(path: Path, height: int, width: int, normalization: Normalization) -> NDArray[np.float32]:
    """An image as a classifier's input: the shorter side resized, the center cut out."""
    with Image.open(path) as opened:
        cut = ImageOps.fit(ImageOps.exif_transpose(opened).convert("RGB"), (width, height), Image.Resampling.BILINEAR)
    tensor = (np.asarray(cut, np.float32) / np.float32(255)).transpose(2, 0, 1)[None]
    return _normalized(np.ascontiguousarray(tensor), normalization)


def _normalized(tensor: NDArray[np.float32], normalization: Normalization) -> NDArray[np.float32]:
    if normalization is Normalization.UNIT:
        return tensor
    mean, deviation = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in (_IMAGENET_MEAN, _IMAGENET_DEVIATION))
    return ((tensor - mean) / deviation).astype(np.float32)


_FIELDS = ("boxes", "scores", "labels", "keypoints")


def _arrays(made: Found | NDArray[np.float64]) -> dict[str, Any]:
    if not isinstance(made, Found):
        return {"classes": made}
    shape = np.array(made.masks.shape)
    return {n: getattr(made, n) for n in _FIELDS} | {"masks": np.packbits(made.masks), "mask_shape": shape}


def _read(path: Path, task: Task) -> Found | NDArray[np.float64] | None:
    """A stored result; None if there is none, or one that was altered."""
    try:
        with np.load(path) as stored:
            if task is Task.CLASSIFY:
                classes: NDArray[np.float64] = stored["classes"]
                return classes
            shape = tuple(stored["mask_shape"])
            masks = np.unpackbits(stored["masks"], count=int(np.prod(shape))).astype(bool).reshape(shape)
            return Found(**{n: stored[n] for n in _FIELDS}, masks=masks)
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two engines gave the same results."""
    return all(
        np.array_equal(_arrays(x)[key], _arrays(y)[key]) for x, y in zip(a, b, strict=True) for key in _arrays(x)
    )
