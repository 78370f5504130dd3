"""Verilog of two accelerators side by side, one with gated clocks, one with clocks that always run.

The module has the accelerator's name and ports, so every bench runs it. It stops the simulation in the first cycle
without a reset in which an output of the two differs. The data of a channel counts in cycles in which its `valid` is
high.
"""

import re

from intloom.hw.clock_gate import GATE_MODULE
from intloom.hw.npu import TOP_NAME
from intloom.sim.rtl.ports import Port, parse_ports

DIFFERENCE = "outputs with gated clocks differ"
_GATE = re.compile(rf"^module {GATE_MODULE}\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_SHARED = re.compile(r"^// intloom_\w+: .*", re.MULTILINE | re.DOTALL)
"""The modules with several forms, which follow the design."""
_CHANNEL = re.compile(r"([ms]_axi_(?:aw|ar|w|b|r))\w+")


def _renamed(design: str, name: str) -> str:
    return design.replace(f"\\{TOP_NAME}.", f"\\{name}.").replace(f"module {TOP_NAME}(", f"module {name}(")


def _compared(port: Port) -> str:
    """Whether the port's values differ, in Verilog; probes of handshakes need not hold while their unit rests."""
    if port.name.startswith("probe_handshake"):
        return "1'b0"
    differs = f"gated_{port.name} !== free_{port.name}"
    channel = _CHANNEL.fullmatch(port.name)
    if channel and not port.name.endswith(("valid", "ready")):
        return f"(free_{channel[1]}valid && {differs})"
    return f"({differs})"


def _instance(name: str, ports: list[Port]) -> str:
    wires = ", ".join(f".{p.name}({p.name if p.is_input else f'{name}_{p.name}'})" for p in ports)
    return f"  {name} {name}_npu({wires});"


def lockstep(verilog: str) -> str:
    """Two accelerators from the Verilog of one: the second one's gates pass every edge."""
    shared = _SHARED.search(verilog)
    assert shared is not None and _GATE.search(shared[0]), "the Verilog has no clock gate"
    design = verilog[: shared.start()]
    ports = list(parse_ports(verilog).values())
    outputs = [p for p in ports if not p.is_input]
    width = {p.name: f"[{p.width - 1}:0] " if p.width > 1 else "" for p in ports}
    top = [f"module {TOP_NAME}({', '.join(p.name for p in ports)});"]
    top += [f"  {'input' if p.is_input else 'output'} {width[p.name]}{p.name};" for p in ports]
    top += [f"  wire {width[p.name]}{copy}_{p.name};" for copy in ("gated", "free") for p in outputs]
    top += [f"  assign {p.name} = gated_{p.name};" for p in outputs]
    top += [_instance("gated", ports), _instance("free", ports)]
    top += [f'  always @(posedge clk) if (!rst && ({" || ".join(map(_compared, outputs))})) $fatal(1, "{DIFFERENCE}");']
    free = _renamed(design, "free")
    free = re.sub(r"^  \w+ (?:#\(.*\) )?(\w+_gate) \(", r"  free_clock \1 (", free, flags=re.MULTILINE)
    always = "module free_clock(input clk, input enable, output gated_clk); assign gated_clk = clk; endmodule"
    return "\n".join([_renamed(design, "gated"), free, shared[0], always, *top, "endmodule", ""])
