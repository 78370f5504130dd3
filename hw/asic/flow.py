"""From parameters to standard cells: lint, synthesis with Yosys, longest path with OpenSTA."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from intloom.common.errors import CapacityError, EnvironmentFault
from intloom.hw.asic.netlist import FAN_OUT, add_buffers, read_module, structural_verilog
from intloom.hw.asic.report import Estimate, read_areas, read_lint, read_path, register_file_bits
from intloom.hw.memory.macro import RAM_MODULE
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import run_yosys

LIBRARY = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
"""Oklahoma State University's cells for 180 nm, typical corner, 1.8 V, 25 degrees."""
PERIOD_NS = 20
"""The clock of synthesis and timing: 50 MHz, as in the constraint templates."""
_PACKAGES = "qflow-tech-osu018 opensta"
_DESIGN, _WORDS, _AREAS, _STA = "design.v", "words.json", "areas.json", "paths.tcl"
_LIBRARY, _CELLS_FILE, _NETLIST = "cells.lib", "cells.json", "netlist.v"
_READ = f"read_verilog {_DESIGN}; blackbox {RAM_MODULE}; hierarchy -top {{top}} -check"
_LINT = f"{_READ}; proc; flatten; opt_clean; check -assert; write_json {_WORDS}"
# Without a constraint file, Yosys's default script neither buffers nets of high fan-out nor sizes gates. Modules are
# mapped one by one, so that each has an area. ABC buffers no inputs of a module and no registers: `add_buffers` does.
_ABC = (
    "+strash;ifraig;scorr;dc2;dch,-f;map,-B,0.9,-D,{delay};topo;buffer,-c,-N,{fan_out};topo;upsize,-D,{delay};"
    "dnsize,-D,{delay}"
)
_CELLS = f"""{_READ}; synth -top {{top}}; dfflibmap -liberty {{library}};
abc -liberty {{library}} -script {_ABC}; opt_clean -purge; tee -q -o {_AREAS} stat -json -liberty {{library}};
read_liberty -lib {{library}}; flatten; opt_clean -purge; setundef -zero; rename -wire; write_json {_CELLS_FILE}"""
# Memory macros have no timing model: paths end at their inputs and begin after them.
_PATHS = f"""read_liberty {{library}}
read_verilog {_NETLIST}
link_design {{top}}
create_clock -name clk -period {{period}} [get_ports clk]
report_checks -path_delay max -from [all_registers -clock_pins] -to [all_registers -data_pins] -digits 3
"""


def estimate(verilog: str, folder: Path, tell: Callable[[str], None], top: str = TOP_NAME) -> Estimate:
    """Synthesize a design whose large memories are instances of `RAM_MODULE`; all files stay in the folder.

    Raises
    ------
    EnvironmentFault
        A tool or the library is missing.
    CapacityError
        OpenSTA finds no path.
    """
    if not LIBRARY.exists() or shutil.which("sta") is None:
        raise EnvironmentFault(
            f"the cell library or OpenSTA is missing; install them with: apt-get install {_PACKAGES}"
        )
    write_design(verilog, folder)
    tell("lint")
    run_yosys(_LINT.format(top=top), folder)
    lint = read_lint(folder / _WORDS, top)
    tell("synthesizing")
    areas = synthesize(folder, top)
    tell("timing")
    (folder / _STA).write_text(_PATHS.format(top=top, library=_LIBRARY, period=PERIOD_NS), encoding="utf-8")
    done = subprocess.run(["sta", "-exit", _STA], cwd=folder, capture_output=True, text=True, check=False)
    (folder / "sta.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if "data arrival time" not in done.stdout:
        raise CapacityError(f"OpenSTA reports no path; {folder / 'sta.log'} has its messages")
    cells, flip_flops, area, gates, components = areas
    bits = register_file_bits(lint)
    path = read_path(done.stdout)
    return Estimate(lint, cells, flip_flops, area, bits, gates + bits, components, path)


def write_design(verilog: str, folder: Path) -> None:
    """Write what Yosys reads: the design and the cell library."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DESIGN).write_text(verilog, encoding="utf-8")
    shutil.copy(LIBRARY, folder / _LIBRARY)


def synthesize(folder: Path, top: str = TOP_NAME) -> tuple[int, int, float, int, dict[str, float]]:
    """Map the folder's design to cells, with buffers; returns what `read_areas` does."""
    abc = {"delay": 1000 * PERIOD_NS, "fan_out": FAN_OUT}
    run_yosys(_CELLS.format(top=top, library=_LIBRARY, **abc), folder)
    module = read_module(folder / _CELLS_FILE, top)
    buffers = add_buffers(module)
    (folder / _NETLIST).write_text(structural_verilog(module, top), encoding="utf-8")
    return read_areas(folder / _AREAS, LIBRARY, top, buffers)
