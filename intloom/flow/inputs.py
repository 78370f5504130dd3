"""Inputs of a run: arrays, images, or seeded synthetic values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from intloom.arrays import Array, check_real, load_arrays
from intloom.common.errors import FileFormatError, UsageError
from intloom.images import seeded_input
from intloom.pictures import PICTURE_SUFFIXES, read_tensor

Shapes = Mapping[str, tuple[int, ...]]


def read_inputs(words: Sequence[str], shapes: Shapes, seed: int) -> dict[str, Array]:
    """Arrays for the inputs named in `shapes`.

    Each word is a file, or `name=file` if the model has several inputs: .npy, .npz (arrays by input name)
    or an image. Without words, every input gets seeded synthetic values.

    Raises
    ------
    UsageError
        A name is unknown or given twice, an input has no value, or a shape is wrong.
    FileFormatError
        A file cannot be read.
    """
    if not words:
        return {name: seeded_input(shape, seed + i) for i, (name, shape) in enumerate(shapes.items())}
    found: dict[str, Array] = {}
    for word in words:
        for name, array in _read_word(word, shapes).items():
            if name in found:
                raise UsageError(f"input {name!r} is given twice; give it once")
            whole = array[None] if array.shape == shapes[name][1:] else array
            found[name] = as_input(name, whole, shapes[name])
    if missing := [name for name in shapes if name not in found]:
        raise UsageError(f"input {missing[0]!r} is missing; give --input {missing[0]}=FILE")
    return found


def as_input(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """The array as a value of the input `name`: floats of any precision are converted to float32.

    Raises
    ------
    UsageError
        The shape is wrong, or values are not real numbers.
    """
    if array.shape != shape:
        raise UsageError(f"input {name!r} must have shape {list(shape)}, not {list(array.shape)}")
    check_real(array, f"input {name!r}")
    if lost := int(np.isnan(array).sum()):
        # NaN has no int8 code, and processors convert it differently.
        raise UsageError(f"input {name!r} must hold numbers, but {lost} of its {array.size} values are NaN")
    with np.errstate(over="ignore"):
        # A value above the float32 range becomes infinite, which has the same int8 code: the largest.
        return array.astype(np.float32) if np.issubdtype(array.dtype, np.floating) else array


def _read_word(word: str, shapes: Shapes) -> dict[str, Array]:
    name, equals, file = word.rpartition("=")
    path = Path(file)
    if equals and name not in shapes:
        raise UsageError(f"input must be one of {', '.join(shapes)}, not {name!r}")
    if path.suffix == ".npz" and not equals:
        return _read_archive(path, shapes)
    if not equals:
        if len(shapes) != 1:
            raise UsageError(
                f"the model has {len(shapes)} inputs; give --input NAME=FILE for each of {', '.join(shapes)}"
            )
        (name,) = shapes
    return {name: _read_file(path, shapes[name])}


def _read_file(path: Path, shape: tuple[int, ...]) -> Array:
    if path.suffix.lower() in PICTURE_SUFFIXES:
        return read_tensor(path, shape)
    if path.suffix not in (".npy", ".npz"):
        raise UsageError(f"input {path} must be a .npy, .npz or image file ({', '.join(sorted(PICTURE_SUFFIXES))})")
    loaded = load_arrays(path, "input")
    if isinstance(loaded, dict):
        if len(loaded) != 1:
            raise UsageError(f"{path} must hold one array, not {len(loaded)}; give .npz archives without a name")
        return next(iter(loaded.values()))
    return loaded


def _read_archive(path: Path, shapes: Shapes) -> dict[str, Array]:
    arrays = load_arrays(path, "input")
    if not isinstance(arrays, dict):
        raise FileFormatError(f"input {path} must be a .npz archive")
    if len(arrays) == 1 and len(shapes) == 1:
        return dict(zip(shapes, arrays.values(), strict=True))
    if unknown := sorted(set(arrays) - set(shapes)):
        raise UsageError(f"{path} holds {unknown[0]!r}, but the inputs are {', '.join(shapes)}; rename or remove it")
    return arrays
