"""The package's Verilog testbench passes under Icarus Verilog, and fails for a wrong accelerator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from intloom.flow.testbench import EXPECTED_FILE, TESTBENCH, render_testbench
from intloom.hw.package.modules import readable_modules
from intloom.hw.spec.params import preset
from intloom.sim.rtl.verilog import verilog_of


def simulated(folder: Path) -> str:
    command = ["iverilog", "-g2005", "-o", "bench", f"{TESTBENCH}.v", "npu.v"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_the_testbench_runs_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intloom.hw.package.modules.generate_verilog", verilog_of)
    (tmp_path / "npu.v").write_text("\n".join(readable_modules(preset("nano")).values()))
    for name, text in render_testbench(preset("nano")).items():
        (tmp_path / name).write_text(text)
    assert simulated(tmp_path).endswith("status 00000002, 0 of 36 words differ\nPASSED\n")
    lines = (tmp_path / EXPECTED_FILE).read_text().splitlines()
    (tmp_path / EXPECTED_FILE).write_text("\n".join([*lines[:-1], f"{int(lines[-1], 16) ^ 1:08x}"]))
    assert simulated(tmp_path).endswith("1 of 36 words differ\nFAILED\n")
