"""Images for calibration: from a folder, from arrays, or synthetic."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.arrays import Array, check_real, load_arrays
from intloom.common.errors import FileFormatError, UsageError
from intloom.images import seeded_input
from intloom.pictures import PICTURE_SUFFIXES, read_tensor

FloatArray = NDArray[np.float32]
_log = logging.getLogger(__name__)
_LEAST_BYTE = 32
"""Normalized pixels are below: with ImageNet's mean and deviation they are at most 2.7."""


@dataclass(frozen=True)
class InputSpec:
    """The model's image input."""

    name: str
    shape: tuple[int, ...]


def image_input(model: onnx.ModelProto) -> InputSpec:
    """The only input of a model; its shape must be fixed.

    Raises
    ------
    UsageError
        The model has several inputs, or a dimension without a size.
    """
    constants = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    if len(inputs) != 1:
        raise UsageError(f"the model must have one input, not {len(inputs)}: {', '.join(i.name for i in inputs)}")
    dims = [d.dim_value for d in inputs[0].type.tensor_type.shape.dim]
    if not dims or min(dims) < 1:
        shown = [d.dim_param or d.dim_value for d in inputs[0].type.tensor_type.shape.dim]
        raise UsageError(
            f"input {inputs[0].name!r} must have a fixed shape, not {shown}; export the model with fixed sizes"
        )
    if inputs[0].type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        raise UsageError(f"input {inputs[0].name!r} must be float32; quantize the float model")
    return InputSpec(inputs[0].name, tuple(dims))


def load_samples(spec: InputSpec, source: Path | None, count: int, seed: int) -> list[FloatArray]:
    """At most `count` samples of the input's shape from `source`; synthetic ones where it is None.

    Raises
    ------
    FileFormatError
        `source` is missing, or contains no images or arrays, or an unreadable one.
    UsageError
        An array has the wrong shape, or images are given for an input of another shape.
    """
    if source is None:
        return [seeded_input(spec.shape, seed * 1000 + i) for i in range(count)]
    samples: list[FloatArray] = []
    for sample in _read(spec, source):
        samples.append(sample)
        if len(samples) == count:
            break
    if not samples:
        raise FileFormatError(f"calibration {source} must contain images or .npy arrays, but contains none")
    return samples


def warn_of_bytes(model: onnx.ModelProto, samples: Sequence[FloatArray]) -> None:
    """Log a warning if the samples have values up to 255 and the model does not divide its input itself."""
    least, most = min(float(s.min()) for s in samples), max(float(s.max()) for s in samples)
    given = image_input(model).name
    readers = {n.op_type for n in model.graph.node if given in n.input}
    if _LEAST_BYTE <= most <= 255 and least >= 0 and not readers & {"Div", "Mul", "Sub", "Cast", "BatchNormalization"}:
        _log.warning(
            "calibration values are from %g to %g, but most float models expect pixels from 0 to 1: divide them by 255",
            least,
            most,
        )


def _read(spec: InputSpec, source: Path) -> Iterator[FloatArray]:
    if source.is_dir():
        for path in sorted(source.iterdir()):
            if path.suffix.lower() in PICTURE_SUFFIXES or path.suffix == ".npy":
                yield from _read_file(spec, path)
    elif source.exists():
        yield from _read_file(spec, source)
    else:
        raise FileFormatError(f"calibration {source} must be a folder or file, but does not exist")


def _read_file(spec: InputSpec, path: Path) -> Iterator[FloatArray]:
    if path.suffix.lower() in PICTURE_SUFFIXES:
        yield read_tensor(path, spec.shape)
        return
    if path.suffix not in (".npy", ".npz"):
        raise FileFormatError(f"calibration {path} must be a folder, an image, .npy or .npz")
    loaded = load_arrays(path, "calibration")
    yield from _split_batch(_choose(loaded, spec, path) if isinstance(loaded, dict) else loaded, spec, path)


def _choose(arrays: dict[str, Array], spec: InputSpec, path: Path) -> Array:
    if spec.name in arrays:
        return arrays[spec.name]
    if len(arrays) != 1:
        raise UsageError(f"{path} must hold an array {spec.name!r}, but holds {', '.join(arrays) or 'none'}")
    return next(iter(arrays.values()))


def _split_batch(array: Array, spec: InputSpec, path: Path) -> Iterator[FloatArray]:
    if array.shape == spec.shape[1:]:
        array = array[None]
    if array.shape[1:] != spec.shape[1:]:
        raise UsageError(f"{path} must hold arrays of shape {list(spec.shape)}, not {list(array.shape)}")
    check_real(array, str(path))
    with np.errstate(over="ignore"):
        # A value above the float32 range becomes infinite, which the next line detects.
        floats = array.astype(np.float32)
    if wild := floats.size - int(np.isfinite(floats).sum()):
        raise UsageError(f"{path} must hold finite float32 numbers, but {wild} of {floats.size} are not; remove it")
    # The input's batch size is fixed, so samples that do not fill a batch at the end are not used.
    step = spec.shape[0]
    for start in range(0, floats.shape[0] - step + 1, step):
        yield np.ascontiguousarray(floats[start : start + step])
