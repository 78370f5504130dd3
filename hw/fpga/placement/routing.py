"""Netlists for nextpnr's router.

Connections are first routed without regard to delays, then those of the longest paths again. With regard to delays from
the beginning, critical connections take wires from others at a low price, and these have to be routed again and again.
The router takes its settings from a netlist that nextpnr has written, not from the command line.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_text

_ROUTER = "router1"
_BITS = 32


def ignore_delays(placed: Path) -> None:
    """Have nextpnr route a placed netlist without regard to delays."""

    def change(module: dict[str, Any]) -> None:
        module["settings"] |= {"router": _ROUTER, "timing_driven": _flag(False)}

    _change(placed, placed, change)


def reopen(layout: Path, nets: Iterable[str], goal: float, reopened: Path) -> None:
    """Write a routed netlist without the routes of `nets`.

    nextpnr then routes these nets with regard to delays. When that is done, it routes all connections again whose paths
    are too long for `goal`, in MHz, for up to fifty rounds.
    """

    def change(module: dict[str, Any]) -> None:
        for net in nets:
            module["netnames"][net]["attributes"].pop("ROUTING", None)
        # A number has a space after it: without one, nextpnr reads bits.
        timed = {"timing_driven": _flag(True), "router/tmg_ripup": "1 ", "target_freq": f"{goal * 1e6:.6f}"}
        module["settings"] |= timed

    _change(layout, reopened, change)


def _flag(value: bool) -> str:
    return f"{int(value):0{_BITS}b}"


def _change(source: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> None:
    netlist = json.loads(source.read_text(encoding="utf-8"))
    (module,) = netlist["modules"].values()
    change(module)
    write_text(to, json.dumps(netlist))
