"""What nextpnr reports: how much of the device is used, the clock, and the path that limits it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intloom.common.errors import CapacityError

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


def read_utilization(log: Path) -> dict[str, Resource]:
    """Used and available cells of each kind, from nextpnr's log."""
    found = {name: Resource(int(used), int(there)) for name, used, there in _USED.findall(log.read_text("utf-8"))}
    return {kind: found[cell] for kind, cell in KINDS.items()}


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


def read_reports(paths: dict[int, Path], device: str, seconds: float) -> Result:
    """The figures of nextpnr's reports on one layout by speed grade; size and path are of the slowest grade."""
    reports = {grade: json.loads(path.read_text(encoding="utf-8")) for grade, path in paths.items()}
    slowest = reports[min(reports)]
    utilization = slowest["utilization"]
    cells = {kind: utilization[cell] for kind, cell in KINDS.items()}
    return Result(
        device=device,
        used={kind: Resource(c["used"], c["available"]) for kind, c in cells.items()},
        mhz={grade: _clock(report) for grade, report in reports.items()},
        path=_critical(slowest["critical_paths"]),
        seconds=seconds,
    )


def _clock(report: dict[str, Any]) -> float:
    """The slowest of the clocks that nextpnr found, in MHz."""
    return min(clock["achieved"] for clock in report["fmax"].values())


def _critical(paths: list[dict[str, Any]]) -> CriticalPath:
    """The path inside the clock domain, its ends by the signals' names."""
    # Paths from or to a pin belong to the harness.
    inside = [p for p in paths if p["from"].startswith("posedge") and p["to"].startswith("posedge")]
    steps = max((p["path"] for p in inside), key=lambda steps: sum(step["delay"] for step in steps))
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
