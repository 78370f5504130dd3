"""Faults planted in the generated Verilog: edits of its text, switched on by +planted=N; one build holds them all."""

import re
from dataclasses import dataclass

from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import preset

PARAMS = preset("nano").replace(scratch_kib=8, weight_kib=2, strip=16)
"""The hardware with the faults: small memories build quickly."""
_LOW = r"\g<1>1'h0"


@dataclass(frozen=True)
class Fault:
    """In every statement of `module` that matches, `pattern` becomes `wrong`; by default the assigned value is low."""

    name: str
    module: str
    pattern: str
    unit: Unit
    wrong: str = ""


BUGS = (
    Fault(
        "an adder of the array subtracts",
        "intloom_mac_array",
        r"\$signed\(product1_2\) \+ \$signed\(product1_3\)",
        Unit.MAC,
        "$signed(product1_2) - $signed(product1_3)",
    ),
    Fault(
        "a requantizer subtracts the bias",
        "engine.mac.epilogue.requantizer0",
        r"\$signed\(acc\) \+ \$signed\(bias\)",
        Unit.MAC,
        "$signed(acc) - $signed(bias)",
    ),
    Fault(
        "a lane of the residual adder drops a product",
        "engine.mac.epilogue.residual_adder.lane0",
        r"\$signed\(multiplied2\) \* [^;]*",
        Unit.MAC,
        "$signed(2'h0)",
    ),
    Fault("the pool keeps the smaller value", "engine.vec.pool", r"(\$signed\(part\)) >", Unit.VEC, r"\1 <"),
    Fault(
        "the store drops the lowest bit of a beat",
        "engine.store",
        r"(w__payload\[31:0\] \} = [^;]*)\[31:0\]",
        Unit.STORE,
        r"\g<1>[31:1], 1'h0",
    ),
    Fault("weights are not written", "engine.load", r"assign weights__valid = ", Unit.LOAD),
    Fault("the vector unit never asks to write", "engine.vec.writer", r"assign port__valid = ", Unit.VEC),
)
"""Results are wrong, or never come."""
HANGS = (
    Fault("the MAC unit's results never ask for their write", "engine.mac.writer", r"port__valid <= ", Unit.MAC),
    Fault("the last write of a CONV is not reported", "engine.mac.writer", r"else done <= ", Unit.MAC),
    Fault("weights never become ready", "engine.mac.fetcher", r" ready <= (?!1'h0)", Unit.MAC),
    Fault("results of the vector unit never ask for their write", "engine.vec.writer", r"port__valid = ", Unit.VEC),
    Fault("the end of a vector instruction is not reported", "engine.vec.sequencer", r"unit__done = ", Unit.VEC),
    Fault("a LOAD offers no burst", "engine.load.front.splitter", r"assign issued = ", Unit.LOAD),
    Fault("the last word of a LOAD is not reported", "engine.load", r"else unit__done <= ", Unit.LOAD),
)
"""A unit never finishes."""
FAULTS = (*BUGS, *HANGS)


def plusarg(fault: Fault | None) -> str:
    """The simulator's argument that switches a fault on, or none."""
    return f"+planted={FAULTS.index(fault) + 1 if fault else 0}"


def plant(verilog: str) -> str:
    """The Verilog with all faults, asleep; the simulator takes the array's pipelined form, in which one of them is."""
    for number, fault in enumerate(FAULTS, start=1):
        name = re.escape(fault.module)
        pattern = rf"^module (?:\\npu\.{name} |{name})\(.*?^endmodule"
        module = re.search(pattern, verilog, re.MULTILINE | re.DOTALL)
        assert module is not None, fault
        verilog = verilog.replace(module.group(), _edit(module.group(), fault, number), 1)
    return f"`define INTLOOM_PIPELINED_ARRAY\n{verilog}"


def _edit(module: str, fault: Fault, number: int) -> str:
    pattern, wrong = (fault.pattern, fault.wrong) if fault.wrong else (rf"({fault.pattern})[^;]*", _LOW)
    lines, edited = module.splitlines(), 0
    for row, line in enumerate(lines):
        if (changed := re.sub(pattern, wrong, line)) != line:
            good, bad = (re.fullmatch(r"(.*? <?= )(.*);", text) for text in (line, changed))
            assert good and bad and good[1] == bad[1], line
            lines[row] = f"{good[1]}planted == {number} ? {bad[2]} : {good[2]};"
            edited += 1
    assert edited, fault
    flag = "  integer planted;"
    if flag not in lines:
        first = next(n for n, line in enumerate(lines) if line.lstrip().startswith("assign"))
        lines.insert(first, f'{flag}\n  initial if (!$value$plusargs("planted=%d", planted)) planted = 0;')
    return "\n".join(lines)
