"""Images for calibration: from a folder, from arrays, or synthetic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, overload

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.arrays import Array, check_real, load_arrays
from intloom.common.errors import FileFormatError, UsageError
from intloom.images import seeded_input
from intloom.pictures import ARRAY_SUFFIXES, PICTURE_SUFFIXES, sample_files
from intloom.preparation import PLAIN, Preparation

Sample = Mapping[str, NDArray[Any]]
"""A value of every input of the model."""
_log = logging.getLogger(__name__)
_FLOAT = np.dtype(np.float32)
_LEAST_BYTE = 32
"""Normalized pixels are below: with ImageNet's mean and deviation they are at most 2.7."""
_SYNTHETIC = 8
"""Synthetic samples, unless the user gives a number."""
_KINDS = "fiub"
"""Kinds of element types that samples can have: numbers and booleans."""


@dataclass(frozen=True)
class InputSpec:
    """An input of the model."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any] = _FLOAT


class Samples(Sequence[Sample]):
    """Samples that are read from their files each time they are used: a folder may hold more than the memory does."""

    def __init__(self, readers: Sequence[Callable[[], Sample]]) -> None:
        self._readers = readers

    def __len__(self) -> int:
        return len(self._readers)

    def split(self, positions: Collection[int]) -> tuple[Samples, Samples]:
        """The samples at other positions, and those at these."""
        others = [r for i, r in enumerate(self._readers) if i not in positions]
        return Samples(others), Samples([self._readers[i] for i in positions])

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Samples: ...
    def __getitem__(self, index: int | slice) -> Sample | Samples:
        """A sample, read now, or some of them."""
        return Samples(self._readers[index]) if isinstance(index, slice) else self._readers[index]()


def input_specs(model: onnx.ModelProto) -> tuple[InputSpec, ...]:
    """The inputs of a model; their shapes must be fixed.

    Raises
    ------
    UsageError
        The model has no input, one without numbers, or a dimension without a size.
    """
    constants = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    if not inputs:
        raise UsageError("the model must have an input, but it has none: quantize a model with an input")
    return tuple(_spec(i) for i in inputs)


def _spec(value: onnx.ValueInfoProto) -> InputSpec:
    tensor = value.type.tensor_type
    dims = [d.dim_value for d in tensor.shape.dim]
    if not tensor.HasField("shape") or min(dims, default=1) < 1:
        shown = [d.dim_param or d.dim_value for d in tensor.shape.dim]
        raise UsageError(
            f"input {value.name!r} must have a fixed shape, not {shown}; export the model with fixed sizes"
        )
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if dtype.kind not in _KINDS:
        raise UsageError(
            f"input {value.name!r} must hold numbers, not {dtype}; quantize the part of the model after it"
        )
    return InputSpec(value.name, tuple(dims), dtype)


def load_samples(
    specs: Sequence[InputSpec], source: Path | None, count: int | None, seed: int, preparation: Preparation = PLAIN
) -> Samples:
    """Samples for all inputs from `source`, at most `count` if it is given; synthetic ones where `source` is None.

    A model with one input takes pictures, which `preparation` converts, .npy and .npz files; one with several takes
    .npz files that hold an array for each input, or a folder of these files for each input, with its name.

    Raises
    ------
    FileFormatError
        `source` is missing, or contains no images or arrays, or an unreadable one.
    UsageError
        An array has the wrong shape, or images are given for an input of another shape.
    """
    if source is None:
        return Samples([partial(_synthetic, specs, seed * 1000 + i, preparation) for i in range(count or _SYNTHETIC)])
    readers: list[Callable[[], Sample]] = []
    for reader in _read(specs, source, preparation):
        readers.append(reader)
        if len(readers) == count:
            break
    if not readers:
        raise FileFormatError(f"calibration {source} must contain images or .npy arrays, but contains none")
    return Samples(readers)


def _synthetic(specs: Sequence[InputSpec], seed: int, preparation: Preparation) -> Sample:
    return {s.name: _synthetic_value(s, seed, preparation) for s in specs}


def _synthetic_value(spec: InputSpec, seed: int, preparation: Preparation) -> NDArray[Any]:
    """An image; bytes of one; or for other integers 0 and 1, which are valid indices and masks."""
    if spec.dtype.kind in "iub" and (spec.dtype != np.uint8 or len(spec.shape) != 4):
        return np.random.default_rng(seed).integers(0, 2, spec.shape).astype(spec.dtype)
    return preparation.values(seeded_input(spec.shape, seed), spec.dtype)


def warn_of_bytes(model: onnx.ModelProto, samples: Samples) -> None:
    """Log a warning if the first samples have values up to 255 and the model does not divide its input itself."""
    for spec in input_specs(model):
        values = [s[spec.name] for s in samples[:_SYNTHETIC]]
        least, most = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
        readers = {n.op_type for n in model.graph.node if spec.name in n.input}
        divided = readers & {"Div", "Mul", "Sub", "Cast", "BatchNormalization"}
        if spec.dtype.kind == "f" and _LEAST_BYTE <= most <= 255 and least >= 0 and not divided:
            _log.warning(
                "calibration values are from %g to %g, but most float models expect pixels from 0 to 1: divide them by "
                "255",
                least,
                most,
            )


def _read(specs: Sequence[InputSpec], source: Path, preparation: Preparation) -> Iterator[Callable[[], Sample]]:
    if len(specs) > 1 and all((source / spec.name).is_dir() for spec in specs):
        yield from _read_folders(specs, source, preparation)
    elif source.is_dir():
        for path in sample_files(source):
            yield from _read_file(specs, path, preparation)
    elif source.exists():
        yield from _read_file(specs, source, preparation)
    else:
        raise FileFormatError(f"calibration {source} must be a folder or file, but does not exist")


def _read_folders(specs: Sequence[InputSpec], source: Path, preparation: Preparation) -> Iterator[Callable[[], Sample]]:
    """Samples whose inputs are in folders of their own, in the order of the names of the files."""
    readers = [list(_read([spec], source / spec.name, preparation)) for spec in specs]
    if len({len(r) for r in readers}) > 1:
        raise UsageError(f"the folders of {source} must hold as many samples, not {[len(r) for r in readers]}")
    for parts in zip(*readers, strict=True):
        yield partial(_joined, parts)


def _joined(parts: Sequence[Callable[[], Sample]]) -> Sample:
    return {name: value for part in parts for name, value in part().items()}


def _read_file(specs: Sequence[InputSpec], path: Path, preparation: Preparation) -> Iterator[Callable[[], Sample]]:
    picture = path.suffix.lower() in PICTURE_SUFFIXES
    if not picture and path.suffix not in ARRAY_SUFFIXES:
        raise FileFormatError(f"calibration {path} must be a folder, an image, .npy or .npz")
    if len(specs) > 1 and path.suffix != ".npz":
        names = ", ".join(s.name for s in specs)
        raise UsageError(
            f"{path} holds one input, but the model has {names}: give .npz files with an array for each, or a "
            "folder for each"
        )
    if picture:
        yield partial(_picture, specs[0], path, preparation)
        return
    loaded = load_arrays(path, "calibration")
    arrays = [_choose(loaded, s, path, alone=len(specs) == 1) if isinstance(loaded, dict) else loaded for s in specs]
    batches = [list(_split_batch(array, spec, path)) for array, spec in zip(arrays, specs, strict=True)]
    if len({len(b) for b in batches}) > 1:
        raise UsageError(f"{path} must hold as many samples of each input, not {[len(b) for b in batches]}")
    for values in zip(*batches, strict=True):
        yield partial(dict, dict(zip([s.name for s in specs], values, strict=True)))


def _picture(spec: InputSpec, path: Path, preparation: Preparation) -> Sample:
    return {spec.name: preparation.read(path, spec.shape, spec.dtype)}


def _choose(arrays: dict[str, Array], spec: InputSpec, path: Path, *, alone: bool) -> Array:
    if spec.name in arrays:
        return arrays[spec.name]
    if len(arrays) != 1 or not alone:
        raise UsageError(f"{path} must hold an array {spec.name!r}, but holds {', '.join(arrays) or 'none'}")
    return next(iter(arrays.values()))


def _split_batch(array: Array, spec: InputSpec, path: Path) -> Iterator[NDArray[Any]]:
    if array.shape == spec.shape[1:]:
        array = array[None]
    if array.shape[1:] != spec.shape[1:]:
        raise UsageError(f"{path} must hold arrays of shape {list(spec.shape)}, not {list(array.shape)}")
    if spec.dtype != bool or array.dtype != bool:
        check_real(array, str(path))
    values = _converted(array, spec, path)
    # The input's batch size is fixed, so samples that do not fill a batch at the end are not used.
    step = spec.shape[0] if spec.shape else 1
    for start in range(0, values.shape[0] - step + 1, step):
        yield np.ascontiguousarray(values[start : start + step])


def _converted(array: Array, spec: InputSpec, path: Path) -> NDArray[Any]:
    """The values in the input's element type, which must represent them."""
    with np.errstate(over="ignore", invalid="ignore"):
        # A value above the float32 range becomes infinite, which the next line detects.
        values = array.astype(spec.dtype)
    bad = ~np.isfinite(values) if spec.dtype.kind == "f" else values != array
    if wrong := int(np.count_nonzero(bad)):
        kind = f"finite {spec.dtype} numbers" if spec.dtype.kind == "f" else f"{spec.dtype} numbers"
        raise UsageError(f"{path} must hold {kind}, but {wrong} of {values.size} are not; remove it")
    return values
