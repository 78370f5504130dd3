"""Faults that keep a unit from ever finishing: edits of the Verilog, switched on by +hang=N; one build has them all."""

import re
from dataclasses import dataclass

from intloom.hw.spec.isa import Unit


@dataclass(frozen=True)
class Hang:
    """In `module` the expression that `pattern` finds is low."""

    name: str
    module: str
    pattern: str
    unit: Unit


HANGS = (
    Hang("the MAC unit's results never ask for their write", "engine.mac.writer", r"port__valid <= ", Unit.MAC),
    Hang("the last write of a CONV is not reported", "engine.mac.writer", r"else done <= ", Unit.MAC),
    Hang("weights never become ready", "engine.mac.fetcher", r" ready <= (?!1'h0)", Unit.MAC),
    Hang("results of the vector unit never ask for their write", "engine.vec.writer", r"port__valid = ", Unit.VEC),
    Hang("the end of a vector instruction is not reported", "engine.vec.sequencer", r"unit__done = ", Unit.VEC),
    Hang("a LOAD offers no burst", "engine.load.front.splitter", r"assign issued = ", Unit.LOAD),
    Hang("the last word of a LOAD is not reported", "engine.load", r"else unit__done <= ", Unit.LOAD),
)


def plant(verilog: str) -> str:
    """The Verilog with all faults, none of them on."""
    for number, hang in enumerate(HANGS, start=1):
        name = re.escape(hang.module)
        module = re.search(rf"^module \\npu\.{name} \(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
        assert module is not None, hang
        verilog = verilog.replace(module.group(), _edit(module.group(), hang, number), 1)
    return verilog


def _edit(module: str, hang: Hang, number: int) -> str:
    edited, count = re.subn(rf"({hang.pattern})([^;]*);", rf"\1hang != {number} && (\2);", module)
    assert count, hang
    if "integer hang;" in edited:
        return edited
    first = re.search(r"^  assign", edited, re.MULTILINE)
    assert first is not None
    flag = '  integer hang;\n  initial if (!$value$plusargs("hang=%d", hang)) hang = 0;\n'
    return edited[: first.start()] + flag + edited[first.start() :]
