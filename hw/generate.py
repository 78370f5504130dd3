"""The folder that `intloom verilog` writes: the accelerator, and the files that other tools need with it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from intloom.common.atomic_write import write_text
from intloom.hw.memory.macro import RAM_MODULE
from intloom.hw.npu import TOP_NAME
from intloom.hw.package.active_low_reset import WRAPPER, render_active_low_reset
from intloom.hw.package.constraints import render_constraints
from intloom.hw.package.ipxact import render_ipxact
from intloom.hw.package.modules import readable_modules
from intloom.hw.spec.params import HardwareParams, preset_name
from intloom.hw.spec.render_c import c_headers
from intloom.hw.spec.render_manual import render_registers
from intloom.hw.spec.render_rdl import render_rdl
from intloom.hw.verilog import generate_verilog

__all__ = ["WAIVERS", "generate_verilog", "render_core", "render_waivers", "write_package"]

WAIVERS = {
    "BLKSEQ": "The simulated form of the array keeps state that only its own process reads in variables.",
    "CASEOVERLAP": "Yosys writes a one-hot multiplexer as casez with one bit per item; at most one bit is set.",
    "CMPCONST": "A comparison may be constant for some parameters.",
    "DECLFILENAME": "All modules are in one file.",
    "LATCH": "The gate of a clock holds its enable in a latch while the clock is high.",
    "PROCASSINIT": "Registers have an initial value and a reset, so that an FPGA starts in the simulated state.",
    "UNOPTFLAT": "Members of a struct depend on other members of it; Yosys checks that no bit depends on itself.",
    "UNUSEDSIGNAL": "Carries of additions that wrap by design, and configuration bits beyond the address width.",
    "WIDTHEXPAND": "Comparisons and signed sums have operands of different widths; Verilog extends them correctly.",
    "WIDTHTRUNC": "Sums and shifts are computed one or more bits wider than their register.",
}
"""Waived Verilator warnings, each with the reason."""

_LITEX = Path(__file__).with_name("package") / "intloom_litex.py"

_CORE = """CAPI=2:
name: intloom:ip:{top}:{version}
description: Int8 neural network accelerator, {rows} x {cols} multiply-accumulates a cycle

filesets:
  rtl:
    files:
{rtl}
    file_type: verilogSource-2005
{testbench}  waivers:
    files:
      - {top}.vlt
    file_type: vlt
  software:
    files:
{headers}
    file_type: cSource

targets:
  default: &default
    filesets: [rtl]
    toplevel: {top}
  lint:
    <<: *default
    filesets: [waivers, rtl]
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
{simulation}  synth:
    <<: *default
    flow: generic
    flow_options:
      tool: yosys
      arch: ecp5
      output_format: json
"""
_TESTBENCH = """  testbench:
    files:
{files}
    file_type: user
"""
_SIMULATION = """  sim:
    filesets: [rtl, testbench]
    toplevel: {top}_tb
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005]
"""


def render_waivers(sources: Iterable[str] = (f"{TOP_NAME}.v",)) -> str:
    """Render Verilator's configuration file with the waivers for these Verilog files."""
    lines = ["`verilator_config"]
    for rule, reason in WAIVERS.items():
        lines += [f"// {reason}", *(f'lint_off -rule {rule} -file "*{source}"' for source in sources)]
    return "\n".join([*lines, ""])


def render_core(
    params: HardwareParams, sources: Iterable[str] = (f"{TOP_NAME}.v",), testbench: Iterable[str] = ()
) -> str:
    """Render the FuseSoC core description; its version contains the parameter fingerprint.

    With the files of a testbench it has a target `sim`.
    """
    # Simulators run in the folder above the copied sources, where $readmemh looks for its files.
    files = "\n".join(
        f"      - {name}: {{{'file_type: verilogSource-2005' if name.endswith('.v') else f'copyto: {name}'}}}"
        for name in testbench
    )
    parts = {
        "testbench": _TESTBENCH.format(files=files) if files else "",
        "simulation": _SIMULATION.format(top=TOP_NAME) if files else "",
    }
    rtl = "\n".join(f"      - {source}" for source in sources)
    version = f"0-r{params.fingerprint()}"
    headers = "\n".join(f"      - {n}: {{is_include_file: true}}" for n in c_headers(params, "custom"))
    return _CORE.format(
        **parts, top=TOP_NAME, rtl=rtl, version=version, rows=params.rows, cols=params.cols, headers=headers
    )


def write_package(
    params: HardwareParams,
    directory: Path,
    *,
    split: bool = False,
    memory_macros: bool = False,
    testbench: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Write the package into `directory`, which is created if missing; returns the paths of the files.

    Parameters
    ----------
    params
        The hardware.
    directory
        The output folder.
    split
        Write one file per module instead of one file.
    memory_macros
        Make large memories instances of the module `intloom_ram`, in a file of its own.
    testbench
        Name and text of the files of a Verilog testbench.
    """
    name = preset_name(params)
    modules = readable_modules(params, memory_macros=True) if memory_macros else readable_modules(params)
    # A file of its own, because it is the one that users replace.
    alone = [module for module in modules if split or module == RAM_MODULE]
    together = [text for module, text in modules.items() if module not in alone]
    sources = {f"{TOP_NAME}.v": "\n".join(together)} if together else {}
    sources |= {f"{module}.v": modules[module] for module in alone}
    files = {
        **sources,
        f"{TOP_NAME}.vlt": render_waivers(sources),
        f"{TOP_NAME}.core": render_core(params, sources, testbench or ()),
        **(testbench or {}),
        **c_headers(params, name),
        **render_constraints(TOP_NAME),
        f"{WRAPPER}.v": render_active_low_reset(params),
        _LITEX.name: _LITEX.read_text(encoding="utf-8"),
        "component.xml": render_ipxact(params, sources, f"0.{params.fingerprint()}"),
        "registers.rdl": render_rdl(),
        "registers.md": render_registers(),
        "parameters.toml": f"# Hardware '{name}'.\n{params.to_toml()}",
    }
    for file, text in files.items():
        write_text(directory / file, text)
    return tuple(directory / file for file in files)
