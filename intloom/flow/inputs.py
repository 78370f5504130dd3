"""Inputs of a run: arrays, images, or seeded synthetic values."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from intloom.arrays import Array, check_real, load_arrays
from intloom.common.errors import FileFormatError, UsageError
from intloom.flow.model_interface import NodeArg
from intloom.images import seeded_input
from intloom.pictures import ARRAY_SUFFIXES, PICTURE_SUFFIXES

Inputs = Mapping[str, NodeArg]


def read_inputs(words: Sequence[str], inputs: Sequence[NodeArg], seed: int) -> dict[str, Array]:
    """Arrays for the inputs of a model.

    Each word is a file, or `name=file` if the model has several inputs: .npy, .npz (arrays by input name)
    or an image. Without words, every input gets seeded synthetic values. The pixels of an image are from 0 to 1, unless
    the model says otherwise (see `Preparation`), or bytes where the input is uint8 or int8.

    Raises
    ------
    UsageError
        A name is unknown or given twice, an input has no value, or a shape or type is wrong.
    FileFormatError
        A file cannot be read.
    """
    known = {i.name: i for i in inputs}
    if not words:
        return {i.name: _seeded(i, seed + k) for k, i in enumerate(inputs)}
    arrays: dict[str, Array] = {}
    for word in words:
        for name, array in _read_word(word, known).items():
            if name in arrays:
                raise UsageError(f"input {name!r} is given twice; give it once")
            arrays[name] = array
    return _complete(arrays, known)


def _seeded(wanted: NodeArg, seed: int) -> Array:
    """An image, noise, or for integers that are no bytes and no image 0 and 1, which are valid indices and masks."""
    shape = tuple(wanted.shape)
    if wanted.dtype.kind in "iu" and wanted.dtype.itemsize > 1 and len(shape) != 4:
        return np.random.default_rng(seed).integers(0, 2, shape).astype(wanted.dtype)
    return wanted.preparation.values(seeded_input(shape, seed), wanted.dtype)


def read_batch(file: Path, inputs: Sequence[NodeArg]) -> list[dict[str, Array]]:
    """The inputs of each image of a file whose arrays have a first dimension of N images, else of the one in it.

    Raises
    ------
    UsageError
        The inputs have different numbers of images; and what `read_inputs` raises.
    FileFormatError
        The file cannot be read.
    """
    known = {i.name: i for i in inputs}
    arrays = _read_word(str(file), known)
    counts = {len(array) if array.ndim == len(known[name].shape) else 1 for name, array in arrays.items()}
    count = max(counts, default=0)
    if counts != {count} or not count:
        raise UsageError(
            f"{file} must hold images, as many for each input, not {' and '.join(map(str, sorted(counts)))}"
        )
    if count == 1:
        return [_complete(arrays, known)]
    return [_complete({name: a[n : n + 1] for name, a in arrays.items()}, known) for n in range(count)]


def _complete(arrays: Mapping[str, Array], known: Inputs) -> dict[str, Array]:
    """Values of all inputs, checked."""
    if missing := [name for name in known if name not in arrays]:
        raise UsageError(f"input {missing[0]!r} is missing; give --input {missing[0]}=FILE")
    checked = {}
    for name, array in arrays.items():
        shape = tuple(known[name].shape)
        whole = array[None] if array.shape == shape[1:] else array
        checked[name] = _of_type(as_input(name, whole, shape, boolean=known[name].dtype == bool), known[name])
    return checked


def _of_type(array: Array, wanted: NodeArg) -> Array:
    """The array, if an integer or boolean input has its type."""
    if wanted.dtype.kind in "iub" and array.dtype != wanted.dtype:
        raise UsageError(
            f"input {wanted.name!r} must be {wanted.type}, not {array.dtype}; convert it with "
            f".astype(numpy.{wanted.dtype})"
        )
    return array


def as_input(name: str, array: Array, shape: tuple[int, ...], *, boolean: bool = False) -> Array:
    """The array as a value of the input `name`: floats of any precision are converted to float32.

    `boolean` inputs, such as masks, take booleans.

    Raises
    ------
    UsageError
        The shape is wrong, or values are not real numbers.
    """
    if array.shape != shape:
        several = array.size and array.ndim == len(shape) and (1, *array.shape[1:]) == shape
        frames = f"; run each of its {len(array)} images with --frames" if several else ""
        raise UsageError(f"input {name!r} must have shape {list(shape)}, not {list(array.shape)}{frames}")
    if boolean and array.dtype == bool:
        return array
    check_real(array, f"input {name!r}")
    if lost := int(np.isnan(array).sum()):
        # NaN has no int8 code, and processors convert it differently.
        raise UsageError(f"input {name!r} must hold numbers, but {lost} of its {array.size} values are NaN")
    with np.errstate(over="ignore"):
        # A value above the float32 range becomes infinite, which has the same int8 code: the largest.
        return array.astype(np.float32) if np.issubdtype(array.dtype, np.floating) else array


def _read_word(word: str, inputs: Inputs) -> dict[str, Array]:
    name, equals, file = word.rpartition("=")
    path = Path(file)
    if equals and name not in inputs:
        raise UsageError(f"input must be one of {', '.join(inputs)}, not {name!r}")
    if path.suffix == ".npz" and not equals:
        return _read_archive(path, inputs)
    if not equals:
        if len(inputs) != 1:
            raise UsageError(
                f"the model has {len(inputs)} inputs; give --input NAME=FILE for each of {', '.join(inputs)}"
            )
        (name,) = inputs
    return {name: _read_file(path, inputs[name])}


def _read_file(path: Path, wanted: NodeArg) -> Array:
    if path.suffix.lower() in PICTURE_SUFFIXES:
        return wanted.preparation.read(path, tuple(wanted.shape), wanted.dtype)
    if path.suffix not in ARRAY_SUFFIXES:
        raise UsageError(f"input {path} must be a .npy, .npz or image file ({', '.join(sorted(PICTURE_SUFFIXES))})")
    loaded = load_arrays(path, "input")
    if isinstance(loaded, dict):
        if len(loaded) != 1:
            raise UsageError(f"{path} must hold one array, not {len(loaded)}; give .npz archives without a name")
        return next(iter(loaded.values()))
    return loaded


def _read_archive(path: Path, inputs: Inputs) -> dict[str, Array]:
    arrays = load_arrays(path, "input")
    if not isinstance(arrays, dict):
        raise FileFormatError(f"input {path} must be a .npz archive")
    if len(arrays) == 1 and len(inputs) == 1:
        return dict(zip(inputs, arrays.values(), strict=True))
    if unknown := sorted(set(arrays) - set(inputs)):
        raise UsageError(f"{path} holds {unknown[0]!r}, but the inputs are {', '.join(inputs)}; rename or remove it")
    return arrays
