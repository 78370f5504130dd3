"""Reading of .npy and .npz files, and writing of .npy files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import FileFormatError, UsageError
from intloom.files import atomic_path

Array = NDArray[np.generic]


def load_arrays(path: Path, what: str) -> Array | dict[str, Array]:
    """The array of a .npy file, or the arrays of a .npz archive by name; `what` names the purpose in messages.

    Raises
    ------
    FileFormatError
        The file cannot be read, or contains objects.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return dict(loaded)
    except Exception as error:  # noqa: BLE001  # zipfile, zlib, tokenize and numpy raise many classes
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if "pickle" in reason:
            # numpy takes any file without its magic number for objects, and advises to load them.
            reason = "it holds no .npy array of numbers"
        raise FileFormatError(f"{what} {path} cannot be read: {reason}") from None


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy file, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def check_real(array: Array, what: str) -> None:
    """Raise an error unless an array holds real numbers; `what` names the array in the message.

    Raises
    ------
    UsageError
        The array holds text, complex numbers or booleans.
    """
    if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise UsageError(f"{what} must hold real numbers, not {array.dtype}")
