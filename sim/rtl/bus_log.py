"""The record of every burst on the bus; see csrc/bus_log.h."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BUS_LAYOUT = np.dtype(
    [("cycle", "<u8"), ("address", "<u8"), ("write", "<u4"), ("beats", "<u4"), ("credit", "<i8")],
)


def read_bursts(path: Path) -> NDArray[np.void]:
    """The file as a structured array; a truncated record is dropped."""
    content = path.read_bytes()
    return np.frombuffer(content[: len(content) // BUS_LAYOUT.itemsize * BUS_LAYOUT.itemsize], dtype=BUS_LAYOUT)
