"""FuseSoC runs every target of the package's core description."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from intloom.flow.testbench import render_testbench
from intloom.hw.generate import write_package
from intloom.hw.spec.params import preset
from intloom.sim.rtl.toolchain import toolchain

pytestmark = [pytest.mark.needs("fusesoc"), pytest.mark.slow]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, verilog_from_cache: None) -> Path:
    folder = tmp_path_factory.mktemp("package")
    params = preset("nano")
    write_package(params, folder / "core", testbench=render_testbench(params))
    return folder


def run_target(package: Path, target: str) -> subprocess.CompletedProcess[str]:
    verilator = toolchain().verilator
    environment = verilator.environment()
    environment["PATH"] = os.pathsep.join([str(verilator.script.parent), environment["PATH"]])
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", "core", "run", "--target", target]
    return subprocess.run(
        [*command, "intloom:ip:npu"], cwd=package, env=environment, capture_output=True, text=True, check=False
    )


def test_lint_passes_with_the_waivers(package: Path) -> None:
    """Each of which `test_generate.py` shows to be needed."""
    done = run_target(package, "lint")
    assert done.returncode == 0, done.stderr
    assert "%Warning" not in done.stdout + done.stderr


@pytest.mark.needs("iverilog")
def test_sim_runs_the_testbench(package: Path) -> None:
    done = run_target(package, "sim")
    assert done.returncode == 0, done.stderr
    assert "PASSED" in done.stdout + done.stderr


@pytest.mark.evidence  # takes more than a minute
@pytest.mark.needs("yosys")
def test_synth_writes_a_netlist(package: Path) -> None:
    done = run_target(package, "synth")
    assert done.returncode == 0, done.stderr
    (netlist,) = (package / "build").rglob("synth/*.json")
    cells = json.loads(netlist.read_text())["modules"]["npu"]["cells"].values()
    kinds = {cell["type"] for cell in cells}
    assert {"LUT4", "TRELLIS_FF"} <= kinds
