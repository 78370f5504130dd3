"""The status block of a running simulator, and its output files: trace records and counter snapshots."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec import regs
from intloom.hw.spec.isa import QUEUED_UNITS

_UNITS = len(QUEUED_UNITS)
_TEXT_BYTES = 160
_LAYOUT = struct.Struct(f"<Q{_UNITS}Q{_UNITS}QQQQ{_TEXT_BYTES}s")
STATUS_BYTES = _LAYOUT.size


@dataclass(frozen=True)
class Status:
    """Progress of a run; see Status in csrc/recorder.h."""

    cycle: int
    started: tuple[int, ...]
    done: tuple[int, ...]
    layers: int
    read_beats: int
    write_beats: int
    violation: str


def read_status(path: Path) -> Status:
    """The present status block."""
    cycle, *rest, layers, reads, writes, text = _LAYOUT.unpack(path.read_bytes()[:STATUS_BYTES])
    violation = text.split(b"\0", 1)[0].decode(errors="replace")
    return Status(cycle, tuple(rest[:_UNITS]), tuple(rest[_UNITS:]), layers, reads, writes, violation)


@dataclass(frozen=True)
class Pulses:
    """Cycles at which instructions started and were done: one array a unit, in the order of the unit's instructions."""

    started: tuple[NDArray[np.uint64], ...]
    done: tuple[NDArray[np.uint64], ...]


def read_pulses(path: Path) -> Pulses:
    """The trace file; a record that was cut off by a crash is left out."""
    records = np.fromfile(path, "<u8")
    cycles = records >> np.uint64(8)

    def of(bit: int) -> NDArray[np.uint64]:
        return cycles[(records >> np.uint64(bit)) & np.uint64(1) == 1]

    return Pulses(tuple(of(u) for u in range(_UNITS)), tuple(of(_UNITS + u) for u in range(_UNITS)))


@dataclass(frozen=True)
class Snapshot:
    """All counters shortly after a layer was done."""

    cycle: int
    counters: dict[str, int]


def read_snapshots(path: Path) -> list[Snapshot]:
    """The snapshot file; an unfinished row is left out."""
    rows = np.fromfile(path, np.dtype(("<u8", 1 + len(regs.COUNTERS))))
    return [Snapshot(int(r[0]), {c.name: int(v) for c, v in zip(regs.COUNTERS, r[1:], strict=True)}) for r in rows]
