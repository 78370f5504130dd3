"""The record of every word that a unit wrote; see csrc/write_log.h."""

from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.isa import Unit


class Writer(IntEnum):
    """The write port."""

    LOAD_SCRATCH = 0
    LOAD_WEIGHT = 1
    MAC = 2
    VEC = 3
    STORE = 4

    @property
    def unit(self) -> Unit:
        """The unit of the write port."""
        return _UNITS[self]


class Stored(IntEnum):
    """A memory whose content is recorded at the end of a run, word by word; numbered apart from the writers."""

    WEIGHTS = 16
    MAC_TABLE = 17
    VECTOR_TABLE = 18
    EXPONENTIALS = 19


_UNITS = {
    Writer.LOAD_SCRATCH: Unit.LOAD,
    Writer.LOAD_WEIGHT: Unit.LOAD,
    Writer.MAC: Unit.MAC,
    Writer.VEC: Unit.VEC,
    Writer.STORE: Unit.STORE,
}


def byte_masks(records: NDArray[np.void], width: int) -> NDArray[np.bool_]:
    """Which of the `width` bytes of its word each record wrote."""
    return (records["mask"][:, None] >> np.arange(width, dtype=np.uint32) & 1).astype(bool)


def read_writes(path: Path, word_bytes: int) -> NDArray[np.void]:
    """The file as a structured array with the fields of `layout`; a truncated record is dropped."""
    layout = np.dtype(
        [
            ("cycle", "<u8"),
            ("writer", "<u4"),
            ("word", "<u4"),
            ("mask", "<u4"),
            ("word_high", "<u4"),
            ("data", "u1", word_bytes),
        ]
    )
    return np.fromfile(path, layout)
