"""Bugs injected in the generated Verilog: edits of its text, switched on by +injected=N; one build holds them all."""

import re
from dataclasses import dataclass

from intloom.hw.spec.isa import Unit


@dataclass(frozen=True)
class Bug:
    """In every assignment of `module` that matches, `pattern` becomes `wrong`."""

    name: str
    module: str
    pattern: str
    wrong: str
    unit: Unit


BUGS = (
    Bug(
        "an adder of the array subtracts",
        "intloom_mac_array",
        r"\$signed\(product1_2\) \+ \$signed\(product1_3\)",
        "$signed(product1_2) - $signed(product1_3)",
        Unit.MAC,
    ),
    Bug(
        "a requantizer subtracts the bias",
        "engine.mac.epilogue.requantizer0",
        r"\$signed\(acc\) \+ \$signed\(bias\)",
        "$signed(acc) - $signed(bias)",
        Unit.MAC,
    ),
    Bug(
        "a lane of the residual adder drops a product",
        "engine.mac.epilogue.residual_adder.lane0",
        r"\$signed\(multiplied2\) \* [^;]*",
        "$signed(2'h0)",
        Unit.MAC,
    ),
    Bug("the pool keeps the smaller value", "engine.vec.pool", r"(\$signed\(part\)) >", r"\1 <", Unit.VEC),
    Bug(
        "the store drops the lowest bit of a beat",
        "engine.store",
        r"(w__payload\[31:0\] \} = [^;]*)\[31:0\]",
        r"\g<1>[31:1], 1'h0",
        Unit.STORE,
    ),
    Bug("weights are not written", "engine.load", r"(assign weights__valid = )([^;]*)", r"\g<1>1'h0", Unit.LOAD),
    Bug(
        "the vector unit never asks to write",
        "engine.vec.writer",
        r"(assign port__valid = )([^;]*)",
        r"\g<1>1'h0",
        Unit.VEC,
    ),
)


def inject(verilog: str) -> str:
    """The Verilog with all bugs, asleep; the simulator takes the array's pipelined form, which has the bug."""
    for number, bug in enumerate(BUGS, start=1):
        name = re.escape(bug.module)
        pattern = rf"^module (?:\\npu\.{name} |{name})\(.*?^endmodule"
        module = re.search(pattern, verilog, re.MULTILINE | re.DOTALL)
        assert module is not None, bug
        verilog = verilog.replace(module.group(), _edit(module.group(), bug, number), 1)
    return f"`define INTLOOM_PIPELINED_ARRAY\n{verilog}"


def _edit(module: str, bug: Bug, number: int) -> str:
    lines = module.splitlines()
    edited = 0
    for row, line in enumerate(lines):
        if line.lstrip().startswith("assign") and (wrong := re.sub(bug.pattern, bug.wrong, line)) != line:
            left, right = (part.rstrip("; ") for part in line.split("=", 1))
            lines[row] = f"{left} = injected == {number} ? {wrong.split('=', 1)[1].rstrip('; ')} : {right} ;"
            edited += 1
    assert edited, bug
    first = next(n for n, line in enumerate(lines) if line.lstrip().startswith("assign"))
    lines.insert(first, '  integer injected;\n  initial if (!$value$plusargs("injected=%d", injected)) injected = 0;')
    return "\n".join(lines)
