"""Builds the accelerator with cocotb's Verilator main program, and runs a cocotb test module on it."""

import json
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import cocotb_tools.config
import pytest

from intloom.common.errors import SimulationError
from intloom.hw.spec.params import HardwareParams
from intloom.sim.rtl.build import Build, BuildPlan, build
from intloom.sim.rtl.ports import parse_ports
from intloom.sim.rtl.process import cocotb_environment, run_simulator
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.host import PARAMS_VARIABLE, SEED_VARIABLE

TOP = "npu"


def _plan(verilog: str) -> BuildPlan:
    libs = cocotb_tools.config.libs_dir
    visible = [f'public_flat_rw -module "{TOP}" -var "{name}"' for name in dict(parse_ports(verilog))]
    return BuildPlan(
        name="detailed",
        top=TOP,
        generated={"npu.v": verilog, "visible.vlt": "\n".join(["`verilator_config", *visible, ""])},
        cpp=(str(cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"),),
        verilator_flags=("--vpi", "--no-timing"),
        link_flags=(f"-Wl,-rpath,{libs}", f"-L{libs}", "-lcocotbvpi_verilator"),
        optimize="-O0",
    )


@cache
def simulator(params: HardwareParams) -> Build:
    """The simulator of `params`, from the cache or built now."""
    return build(_plan(verilog_of(params)))


def run_cocotb(params: HardwareParams, module: str, folder: Path, seed: int) -> None:
    """Run every cocotb test of `module`; a failure fails the calling test with the name and the end of the log."""
    env = cocotb_environment(TOP, module, folder)
    env |= {PARAMS_VARIABLE: json.dumps(params.to_dict()), SEED_VARIABLE: str(seed)}
    log = folder / "simulator.log"
    try:
        run_simulator([str(simulator(params).binary)], folder, log, env)
    except SimulationError as error:
        pytest.fail(str(error))
    results = ET.parse(folder / "results.xml").getroot()
    cases = results.findall(".//testcase")
    assert cases, f"{module} holds no cocotb test"
    failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    assert not failed, f"{', '.join(map(str, failed))} failed in {folder}:\n{log.read_text()[-6000:]}"
