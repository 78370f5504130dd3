"""What nextpnr reports: how much of the device is used, the clock, and the path that limits it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intloom.common.errors import CapacityError, ParameterError

KINDS = {"LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "DSP": "MULT18X18D", "RAM": "DP16KD"}
"""Kinds of cells, by what the page calls them. A LUT site also holds one carry chain bit or four RAM bits."""

_USED = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%$", re.MULTILINE)
_BIT = re.compile(r"(_TRELLIS_FF_\w+|_LUT4_\w+|_CCU2C_\w+|_MULT18X18D_\w+|_DP16KD_\w+|\[\d+\])+$")


@dataclass(frozen=True)
class Resource:
    """How much of one kind of cell is used."""

    used: int
    available: int

    def __str__(self) -> str:
        return f"{self.used} of {self.available}"


class TooLargeError(CapacityError):
    """A design that does not fit `device`; `used` says what it takes."""

    def __init__(self, message: str, device: str, used: dict[str, Resource]) -> None:
        super().__init__(message)
        self.device = device
        self.used = used


@dataclass(frozen=True)
class CriticalPath:
    """The path that limits the clock: its ends, its delay in ns, how much of that is wires, and cells on the way."""

    start: str
    end: str
    delay: float
    routing: float
    cells: int


@dataclass(frozen=True)
class Result:
    """A routed design."""

    device: str
    used: dict[str, Resource]
    mhz: dict[int, float]
    """The clock by speed grade: one layout, timed by each grade's delays."""
    path: CriticalPath
    """What limits it at the slowest grade."""
    seconds: float


@dataclass(frozen=True)
class Clock:
    """A clock of the routed design."""

    name: str
    mhz: float
    """The highest frequency."""
    required: float
    """The board's frequency, MHz."""


@dataclass(frozen=True)
class Bitstream:
    """A packed bitstream."""

    file: Path
    device: str
    used: dict[str, Resource]
    clocks: tuple[Clock, ...]
    seconds: float


class TimingError(ParameterError):
    """A routed design that is slower than the board's clocks; `clocks` has the frequencies reached."""

    def __init__(self, message: str, clocks: Sequence[Clock]) -> None:
        super().__init__(message)
        self.clocks = tuple(clocks)


def read_utilization(log: Path) -> dict[str, Resource]:
    """Used and available cells of each kind, from nextpnr's log."""
    cells = {name: Resource(int(used), int(there)) for name, used, there in _USED.findall(log.read_text("utf-8"))}
    return {kind: cells[cell] for kind, cell in KINDS.items()}


def check_fit(used: dict[str, Resource], device: str) -> None:
    """Refuse a design of which some kind of cell does not fit.

    Raises
    ------
    TooLargeError
        There are fewer cells of some kind than it takes.
    """
    over = [f"{kind} {r.used}, but {r.available} are there" for kind, r in used.items() if r.used > r.available]
    if over:
        rest = ", ".join(f"{kind} {r}" for kind, r in used.items() if r.used <= r.available)
        raise TooLargeError(
            f"the design does not fit {device}: it takes {' and '.join(over)} (other cells: {rest or 'none fit'}); "
            "choose smaller parameters or a larger device",
            device,
            used,
        )


def check_timing(clocks: Sequence[Clock]) -> None:
    """Refuse a design with a clock that is slower than the board's.

    Raises
    ------
    TimingError
        A clock is too slow, or the report names none.
    """
    late = [c for c in clocks if c.mhz < c.required]
    if late or not clocks:
        reached = ", ".join(f"{c.name} reaches {c.mhz:.1f} MHz of {c.required:.1f} MHz" for c in late) or "no clock"
        raise TimingError(f"timing is not met: {reached}; choose another --seed or smaller parameters", clocks)


def read_reports(paths: dict[int, Path], device: str, seconds: float) -> Result:
    """The figures of nextpnr's reports on one layout by speed grade; size and path are of the slowest grade."""
    reports = {grade: json.loads(path.read_text(encoding="utf-8")) for grade, path in paths.items()}
    slowest = reports[min(reports)]
    return Result(
        device=device,
        used=resources_of(slowest),
        mhz={grade: _clock(report) for grade, report in reports.items()},
        path=_critical(_longest(slowest)),
        seconds=seconds,
    )


def resources_of(report: dict[str, Any]) -> dict[str, Resource]:
    """Used and available cells of each kind, from nextpnr's report."""
    cells = {kind: report["utilization"][cell] for kind, cell in KINDS.items()}
    return {kind: Resource(c["used"], c["available"]) for kind, c in cells.items()}


def _clock(report: dict[str, Any]) -> float:
    """The slowest of the clocks that nextpnr found, in MHz."""
    return min(clock["achieved"] for clock in report["fmax"].values())


def _longest(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of the longest path inside the clock domain; paths from or to a pin belong to the harness."""
    inside = [p for p in report["critical_paths"] if p["from"].startswith("posedge") and p["to"].startswith("posedge")]
    steps: list[dict[str, Any]] = max((p["path"] for p in inside), key=lambda path: sum(step["delay"] for step in path))
    return steps


def _critical(steps: list[dict[str, Any]]) -> CriticalPath:
    """The path, its ends by the signals' names."""
    wires = [step for step in steps if step["type"] == "routing"]
    return CriticalPath(
        start=_signal(wires[0]["net"]),
        end=_signal(steps[-1]["to"]["cell"]),
        delay=sum(step["delay"] for step in steps),
        routing=sum(step["delay"] for step in wires),
        cells=sum(step["type"] == "logic" for step in steps),
    )


def _signal(name: str) -> str:
    """A signal's name without what synthesis appended to it."""
    return _BIT.sub("", name)
