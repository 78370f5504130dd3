"""Write ports inside the accelerator, found in its Verilog: diagnosis records what passes through them.

Yosys drops ports with constant values and may rename others, so each signal is looked up in the text of its module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hw.spec.errors import FileFormatError

from .ports import TOP
from .writes import Writer

_ALL_BYTES = "32'hFFFFFFFF"


@dataclass(frozen=True)
class Tap:
    """One write port as Verilog expressions, seen from the bench."""

    writer: Writer
    taken: str
    """High in a cycle in which a word is written."""
    address: str
    data: str
    mask: str


_PORTS = (
    (Writer.LOAD_SCRATCH, "engine.scratch", "load"),
    (Writer.LOAD_WEIGHT, "engine.weights", "write"),
    (Writer.MAC, "engine.scratch", "drain"),
    (Writer.VEC, "engine.scratch", "vec"),
)


def find_taps(verilog: str) -> tuple[Tap, ...]:
    """The write ports of both local memories; `FileFormatError` when one is not where it should be."""
    return tuple(_tap(verilog, *port) for port in _PORTS)


def _tap(verilog: str, writer: Writer, module: str, port: str) -> Tap:
    text = _module(verilog, module)

    def signal(*members: str) -> str | None:
        for member in members:
            found = re.search(rf"^\s*wire\s+(?:\[\d+:0\]\s+)?(\\?{port}__{member}(?:\$\d+)?)\s*;", text, re.MULTILINE)
            if found is not None:
                # An escaped name ends with a space.
                return f"dut.{module}.{found.group(1)} "
        return None

    def needed(*members: str) -> str:
        found = signal(*members)
        if found is None:
            raise FileFormatError(f"module {TOP}.{module} must have a signal {port}__{members[0]} to be watched")
        return found

    ready = signal("ready")
    valid = needed("valid", "en")
    return Tap(
        writer=writer,
        taken=f"{valid} & {ready}" if ready else valid,
        address=needed("addr"),
        data=needed("data"),
        mask=f"32'({mask})" if (mask := signal("mask")) else _ALL_BYTES,
    )


def _module(verilog: str, module: str) -> str:
    pattern = rf"^module \\{TOP}\.{re.escape(module)} \(.*?^endmodule"
    found = re.search(pattern, verilog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise FileFormatError(f"the Verilog must hold a module {TOP}.{module} to be watched, but has none")
    return found.group()
