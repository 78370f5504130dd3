"""Images for calibration: from a folder, from arrays, or synthetic."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from hw.spec.errors import FileFormatError, UsageError
from intloom.images import synthetic_image
from intloom.pictures import PICTURE_SUFFIXES, read_picture

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class InputSpec:
    """The model's image input."""

    name: str
    shape: tuple[int, ...]


def image_input(model: onnx.ModelProto) -> InputSpec:
    """The one input of a model, whose shape must be fixed.

    Raises
    ------
    UsageError
        It has several inputs, or a dimension without a size.
    """
    constants = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    if len(inputs) != 1:
        raise UsageError(f"the model must have one input, not {len(inputs)}: {', '.join(i.name for i in inputs)}")
    dims = [d.dim_value for d in inputs[0].type.tensor_type.shape.dim]
    if not dims or min(dims) < 1:
        shown = [d.dim_param or d.dim_value for d in inputs[0].type.tensor_type.shape.dim]
        raise UsageError(f"input {inputs[0].name!r} must have a fixed shape, not {shown}: export it with fixed sizes")
    if inputs[0].type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        raise UsageError(f"input {inputs[0].name!r} must be float32: quantise the float model")
    return InputSpec(inputs[0].name, tuple(dims))


def load_samples(spec: InputSpec, source: Path | None, count: int, seed: int) -> list[FloatArray]:
    """At most `count` samples of the input's shape from `source`; synthetic ones where it is None.

    Raises
    ------
    FileFormatError
        `source` is missing, holds no pictures or arrays, or one that cannot be read.
    UsageError
        An array has the wrong shape, or pictures are given to an input that is no image.
    """
    if source is None:
        return [_synthetic(spec, seed * 1000 + i) for i in range(count)]
    samples: list[FloatArray] = []
    for sample in _read(spec, source):
        samples.append(sample)
        if len(samples) == count:
            break
    if not samples:
        raise FileFormatError(f"calibration {source} must hold pictures or .npy arrays, but holds none")
    return samples


def _synthetic(spec: InputSpec, seed: int) -> FloatArray:
    if len(spec.shape) == 4:
        _, channels, height, width = spec.shape
        return synthetic_image(height, width, seed, channels)[None]
    return np.random.default_rng(seed).normal(size=spec.shape).astype(np.float32)


def _read(spec: InputSpec, source: Path) -> Iterator[FloatArray]:
    if source.is_dir():
        for path in sorted(source.iterdir()):
            if path.suffix.lower() in PICTURE_SUFFIXES or path.suffix == ".npy":
                yield from _read_file(spec, path)
    elif source.exists():
        yield from _read_file(spec, source)
    else:
        raise FileFormatError(f"calibration {source} does not exist")


def _read_file(spec: InputSpec, path: Path) -> Iterator[FloatArray]:
    if path.suffix.lower() in PICTURE_SUFFIXES:
        if len(spec.shape) != 4 or spec.shape[1] != 3:
            raise UsageError(f"picture {path} needs an input of shape [1, 3, H, W], not {list(spec.shape)}")
        yield read_picture(path, spec.shape[2], spec.shape[3]).tensor
        return
    if path.suffix not in (".npy", ".npz"):
        raise FileFormatError(f"calibration {path} must be a folder, a picture, .npy or .npz")
    try:
        loaded = np.load(path, allow_pickle=False)
        array = _choose(loaded, spec, path) if path.suffix == ".npz" else loaded
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"calibration {path} cannot be read: {error}") from None
    yield from _split_batch(array, spec, path)


def _choose(archive: np.lib.npyio.NpzFile, spec: InputSpec, path: Path) -> NDArray[np.float32]:
    if spec.name in archive:
        chosen: NDArray[np.float32] = archive[spec.name]
        return chosen
    if len(archive.files) != 1:
        raise UsageError(f"{path} must hold an array {spec.name!r}: it has {', '.join(archive.files) or 'none'}")
    only: NDArray[np.float32] = archive[archive.files[0]]
    return only


def _split_batch(array: NDArray[np.float32], spec: InputSpec, path: Path) -> Iterator[FloatArray]:
    if array.shape == spec.shape[1:]:
        array = array[None]
    if array.shape[1:] != spec.shape[1:]:
        raise UsageError(f"{path} must hold arrays of shape {list(spec.shape)}, not {list(array.shape)}")
    if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise UsageError(f"{path} must hold real numbers, not {array.dtype}")
    with np.errstate(over="ignore"):
        # What is too large for float32 becomes infinite, which the next line finds.
        array = array.astype(np.float32)
    if wild := array.size - int(np.isfinite(array).sum()):
        raise UsageError(f"{path} must hold finite float32 numbers, but {wild} of {array.size} are not: leave it out")
    step = spec.shape[0]
    for start in range(0, array.shape[0] - step + 1, step):
        yield np.ascontiguousarray(array[start : start + step])
