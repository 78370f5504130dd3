"""Generated sources around the accelerator: HDL shells of the benches, visibility file, ports of the bare loop."""

import re
from functools import lru_cache
from pathlib import Path

import jinja2

from intloom.common.errors import FileFormatError
from intloom.sim.rtl.ports import TOP, Port, parse_ports
from intloom.sim.rtl.write_taps import Tap, find_contents, find_taps, result_taps

SHELL_TOP = "bench"
ACCELERATOR = f"{SHELL_TOP}.dut"
"""The accelerator in the shell of the fast bench, as waves name it."""
LOG_TOP = "logged"
_TEMPLATES = Path(__file__).parent / "templates"
_RESETS = {
    "m_axi_arready": 1,
    "m_axi_awready": 1,
    "s_axi_bready": 1,
    "s_axi_rready": 1,
    "s_axi_wstrb": "4'b1111",
}
"""Values of the accelerator's inputs before the first access; the rest start at 0."""
_SHELL_PORT = re.compile(r"^    (?:input wire|output reg) (?:\[\d+:0\] )?(\w+)", re.MULTILINE)
_NEEDED = (
    *("clk", "rst", "irq"),
    *(f"m_axi_{c}{s}" for c in ("aw", "ar") for s in ("id", "addr", "len", "size", "burst", "valid", "ready")),
    *(f"m_axi_w{s}" for s in ("data", "strb", "last", "valid", "ready")),
    *(f"m_axi_b{s}" for s in ("id", "resp", "valid", "ready")),
    *(f"m_axi_r{s}" for s in ("id", "data", "resp", "last", "valid", "ready")),
    *(f"s_axi_{c}{s}" for c in ("aw", "ar") for s in ("addr", "valid", "ready")),
    *(f"s_axi_w{s}" for s in ("data", "strb", "valid", "ready")),
    *(f"s_axi_b{s}" for s in ("resp", "valid", "ready")),
    *(f"s_axi_r{s}" for s in ("data", "resp", "valid", "ready")),
)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        # A misspelled name in a template must fail, not leave a hole in the Verilog.
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _ports(verilog: str) -> dict[str, Port]:
    ports = dict(parse_ports(verilog))
    if missing := [name for name in _NEEDED if name not in ports]:
        raise FileFormatError(f"module {TOP!r} must have a port {missing[0]!r}: generate the Verilog again")
    return ports


def _render(template: str, verilog: str, taps: tuple[Tap, ...] = ()) -> str:
    ports = _ports(verilog)
    return (
        _environment()
        .get_template(template)
        .render(
            top=TOP,
            ports=[p for p in ports.values() if p.name not in ("clk", "rst")],
            widths={p.name: p.width for p in ports.values()},
            resets=_RESETS,
            taps=taps,
            word_bits=_word_bits(taps),
            data_bits=ports["m_axi_wdata"].width,
            registers=True,
        )
    )


def _word_bits(taps: tuple[Tap, ...]) -> int:
    """Width of a word in the local memories."""
    return max((tap.bits for tap in taps), default=0)


def bench_shell(verilog: str, taps: bool = False) -> str:
    """SystemVerilog of the fast bench's top module around the accelerator in `verilog`.

    It reports results that are written into the scratchpad; with `taps` also loads into the local memories.
    """
    return _render("bench.sv.j2", verilog, find_taps(verilog) if taps else result_taps(verilog))


def log_shell(verilog: str) -> str:
    """SystemVerilog of a module with the accelerator's ports, which logs writes, and contents at the end."""
    ports, taps = _ports(verilog), find_taps(verilog)
    template = _environment().get_template("logged.sv.j2")
    return template.render(
        top=TOP,
        name=LOG_TOP,
        ports=[*ports.values()],
        taps=taps,
        contents=find_contents(verilog),
        word_bits=_word_bits(taps),
    )


def bare_ports(verilog: str) -> str:
    """C++ header by which the bare loop reads and drives the accelerator's ports."""
    return _render("ports.h.j2", verilog)


def memory_ports(top: str, data_bits: int) -> str:
    """C++ header by which a loop reads and drives the memory port of module `top`."""
    return _environment().get_template("ports.h.j2").render(top=top, data_bits=data_bits, registers=False)


def visibility(shell: str) -> str:
    """Verilator configuration that shows Python the ports of the fast bench's top module and nothing else."""
    names = _SHELL_PORT.findall(shell)
    lines = [f'public_flat_rw -module "{SHELL_TOP}" -var "{name}"' for name in names]
    return "\n".join(["`verilator_config", *lines, ""])
