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

from intloom.api import Program
from intloom.common.errors import UsageError
from intloom.compiler.reference import open_session
from intloom.evaluation.dataset import Dataset, Sample, Task
from intloom.evaluation.decode import Found, decode
from intloom.files import write_bytes
from intloom.pictures import Fit
from intloom.preparation import Preparation
from intloom.session import Session

Outputs = list[NDArray[Any]]


_PICTURES = ("batch", "channels", "height", "width")


class Normalization(StrEnum):
    """Values of the pixels: 0 to 1, or with ImageNet's mean and deviation subtracted and divided."""

    UNIT = "unit"
    IMAGENET = "imagenet"

    def preparation(self, task: Task) -> Preparation:
        """The values of pixels, with pictures cut for a classifier, else letterboxed."""
        fit = Fit.CROP if task is Task.CLASSIFY else Fit.LETTERBOX
        if self is Normalization.UNIT:
            return Preparation(resize=fit)
        return Preparation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), resize=fit)


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
    preparation: Preparation
    count: int


def results(engine: Engine, images: Images, folder: Path) -> Iterator[Found | NDArray[np.float64]]:
    """The result of each image: objects, or scores of the classes.

    Results are stored in `folder`, and read from there by the next call.
    """
    home = folder / f"{engine.name}-{engine.identity[:12]}"
    data, task, preparation = images.data, images.task, images.preparation
    for sample in data.samples[: images.count]:
        digest = hashlib.sha256(f"{sample.path.resolve()} {preparation} {task} {data.classes}".encode())
        path = home / f"{sample.path.stem}-{digest.hexdigest()[:8]}.npz"
        if (stored := _read(path, task)) is not None:
            yield stored
            continue
        made = _run(engine, sample, task, preparation, len(data.classes))
        content = io.BytesIO()
        np.savez_compressed(content, **_arrays(made))
        write_bytes(path, content.getvalue())
        yield made


def _run(
    engine: Engine, sample: Sample, task: Task, preparation: Preparation, classes: int
) -> Found | NDArray[np.float64]:
    picture = preparation.picture(sample.path, engine.shape)
    outputs = engine.run(preparation.tensor(picture, engine.shape, np.dtype(np.float32)).astype(np.float32))
    if task is Task.CLASSIFY:
        return np.asarray(outputs[0], np.float64).ravel()
    return decode(outputs, task, classes, picture)


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
