"""The package's Verilog testbench passes under Icarus Verilog and Verilator, and fails for a wrong accelerator."""

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from intloom.flow.testbench import EXPECTED_FILE, TESTBENCH, render_testbench
from intloom.hw.generate import render_waivers, write_package
from intloom.hw.package.active_low_reset import WRAPPER, render_active_low_reset
from intloom.hw.package.modules import readable_modules
from intloom.hw.spec.params import preset
from intloom.sim.rtl.toolchain import toolchain


def with_icarus(folder: Path) -> list[str]:
    subprocess.run(["iverilog", "-g2005", "-o", "bench", f"{TESTBENCH}.v", "npu.v"], cwd=folder, check=True)
    return ["vvp", "-n", "bench"]


def with_verilator(folder: Path) -> list[str]:
    verilator = toolchain().verilator
    variables = shlex.join(f"{name}={value}" for name, value in verilator.make_variables().items())
    # Without optimization and in one file: compiling takes longer than simulating.
    options = ["--binary", "--top-module", TESTBENCH, "-Mdir", "obj", "--output-split", "0", "-CFLAGS", "-O0"]
    options += ["-MAKEFLAGS", variables]
    command = ["perl", str(verilator.script), *options, "npu.vlt", f"{TESTBENCH}.v", "npu.v"]
    done = subprocess.run(command, cwd=folder, env=verilator.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [f"obj/V{TESTBENCH}"]


def simulated(folder: Path, command: list[str]) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def _low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A faulty accelerator runs to the limit."""
    monkeypatch.setattr("intloom.flow.testbench._LIMIT", 3000)


@pytest.fixture(scope="module")
def nano(verilog_from_cache: None) -> str:
    """The package's Verilog, made once."""
    return "\n".join(readable_modules(preset("nano")).values())


SIMULATORS = [pytest.param(with_icarus, marks=pytest.mark.needs("iverilog")), with_verilator]


@pytest.mark.slow
@pytest.mark.parametrize("build", SIMULATORS)
def test_the_testbench_runs_a_program(build: Callable[[Path], list[str]], tmp_path: Path, nano: str) -> None:
    (tmp_path / "npu.v").write_text(nano)
    for name, text in render_testbench(preset("nano")).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "npu.vlt").write_text(render_waivers())
    command = build(tmp_path)
    assert "status 00000002, 0 of 36 words differ\nPASSED\n" in simulated(tmp_path, command)
    lines = (tmp_path / EXPECTED_FILE).read_text().splitlines()
    (tmp_path / EXPECTED_FILE).write_text("\n".join([*lines[:-1], f"{int(lines[-1], 16) ^ 1:08x}"]))
    assert "1 of 36 words differ\nFAILED\n" in simulated(tmp_path, command)


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.usefixtures("verilog_from_cache")
@pytest.mark.parametrize("memory_parity", [False, True])
def test_the_testbench_runs_with_memory_macros(tmp_path: Path, memory_parity: bool) -> None:
    """With parity, the banks have granules of nine bits."""
    params = preset("nano").replace(memory_parity=memory_parity)
    write_package(params, tmp_path, memory_macros=True, testbench=render_testbench(params))
    assert (tmp_path / "npu.v").read_text().count("intloom_ram #(") == 17
    assert "- intloom_ram.v" in (tmp_path / "npu.core").read_text()
    macro = (tmp_path / "intloom_ram.v").read_text()
    command = ["iverilog", "-g2005", "-o", "bench", f"{TESTBENCH}.v", "npu.v", "intloom_ram.v"]
    faulty = [(macro.replace("write_enable[part]", "part == 0"), "FAILED")] if memory_parity else []
    for text, end in [(macro, "PASSED"), *faulty]:
        (tmp_path / "intloom_ram.v").write_text(text)
        subprocess.run(command, cwd=tmp_path, check=True)
        assert end in simulated(tmp_path, ["vvp", "-n", "bench"])


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_the_wrapper_with_an_active_low_reset_runs_it(tmp_path: Path, nano: str) -> None:
    wrapper = render_active_low_reset(preset("nano"))
    files = render_testbench(preset("nano"))
    top = files[f"{TESTBENCH}.v"]
    assert top.count("npu dut (\n    .clk(clk), .rst(rst)") == 1
    # Asserted and released between two edges. The first access comes when the release has passed the two registers.
    top = top.replace("npu dut (\n    .clk(clk), .rst(rst)", f"{WRAPPER} dut (.clk(clk), .aresetn(!rst)")
    assert top.count("#1 rst = 0;") == 1
    files[f"{TESTBENCH}.v"] = top.replace("#1 rst = 0;", "#1 rst = 0; repeat (2) @(posedge clk);")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for text, end in ((wrapper, "PASSED"), (wrapper.replace("(!rel", "(rel"), "FAILED")):
        (tmp_path / "npu.v").write_text(f"{nano}\n{text}")
        assert end in simulated(tmp_path, with_icarus(tmp_path))
