"""The generated package: deterministic, free of paths, clean in Verilator, Icarus and Yosys."""

import re
import subprocess
from pathlib import Path

import pytest

from intloom.common.errors import DiskError, EnvironmentFault
from intloom.hw.generate import WAIVERS, generate_verilog, render_core, write_package
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import CHECKS, run_yosys
from intloom.hw.spec.params import PRESETS, HardwareParams, from_toml, preset
from intloom.sim.rtl.toolchain import toolchain
from intloom.sim.rtl.verilog import verilog_of
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES as SMALL_SHAPES

BYTES = SMALL_SHAPES["bytes"]
SHAPES = {**PRESETS, "bytes": BYTES}


def _lint(folder: Path, *flags: str) -> str:
    verilator = toolchain().verilator
    command = ["perl", str(verilator.script), "--lint-only", "-Wall", *flags, "--top-module", TOP_NAME]
    done = subprocess.run(
        [*command, f"{TOP_NAME}.vlt", f"{TOP_NAME}.v"],
        cwd=folder, env=verilator.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=with_nightly(SHAPES, ("large", "base", "small")))
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, verilog_from_cache: None) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "made" / "here"
    write_package(SHAPES[request.param], folder)
    (folder / "name").write_text(request.param)
    return folder


def _shape(package: Path) -> HardwareParams:
    return SHAPES[(package / "name").read_text()]


@pytest.mark.slow
def test_same_parameters_same_bytes() -> None:
    assert generate_verilog(BYTES) == verilog_of(BYTES)


@pytest.mark.slow
def test_the_text_tells_nothing_of_where_it_was_made(package: Path) -> None:
    text = (package / "npu.v").read_text()
    assert "src" not in re.findall(r"\(\* (\w+)", text)
    assert ".py" not in text
    assert "always @*" not in text, "a process that reads nothing never runs"
    assert "'hx" not in text


@pytest.mark.slow
def test_verilator_finds_nothing_but_what_is_waived(package: Path) -> None:
    said = _lint(package)
    assert "%Warning" not in said and "%Error" not in said, said


@pytest.mark.slow
def test_no_waiver_is_idle(tmp_path: Path, verilog_from_cache: None) -> None:
    write_package(SMALL_SHAPES["halves"], tmp_path)
    (tmp_path / "npu.vlt").write_text("`verilator_config\n")
    assert set(re.findall(r"%Warning-(\w+)", _lint(tmp_path))) == set(WAIVERS)


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_icarus_reads_it(package: Path) -> None:
    command = ["iverilog", "-g2005", "-Wall", "-t", "null", "-s", TOP_NAME, "npu.v"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "error" not in done.stderr


@pytest.mark.slow
def test_yosys_finds_no_latch_no_loop_and_one_driver_each(package: Path) -> None:
    run_yosys(f"read_verilog npu.v; hierarchy -top {TOP_NAME} -check; proc; flatten; opt_clean; {CHECKS}", package)


@pytest.mark.slow
def test_yosys_check_bites(tmp_path: Path) -> None:
    twice = "module npu(input a, input b, output y); assign y = a; assign y = b; endmodule"
    latch = "module npu(input a, input b, output reg y); always @* if (a) y = b; endmodule"
    loop = "module npu(input a, output y); assign y = a ^ ~y; endmodule"
    for bad in (twice, latch, loop):
        (tmp_path / "npu.v").write_text(bad)
        with pytest.raises(EnvironmentFault, match="Yosys failed"):
            run_yosys(f"read_verilog npu.v; proc; {CHECKS}", tmp_path)


@pytest.mark.slow
def test_the_top_has_the_documented_ports(package: Path) -> None:
    text = (package / "npu.v").read_text()
    header = re.search(r"^module npu \((.*?)\);", text, re.DOTALL | re.MULTILINE)[1]
    ports = set(re.findall(r"^  (?:in|out)put .*?(\w+)(?: = .*?)?,?$", header, re.MULTILINE))
    assert {"clk", "rst", "irq", "m_axi_awaddr", "m_axi_rdata", "s_axi_awaddr", "s_axi_wstrb"} <= ports
    trace = {"trace_started", "trace_done"}
    assert ports & trace == (trace if _shape(package).trace else set())


@pytest.mark.slow
def test_the_parameter_decides_whether_clocks_are_gated(package: Path) -> None:
    assert ("intloom_clock_gate" in (package / "npu.v").read_text()) == _shape(package).clock_gating


def test_core_file_names_what_is_written() -> None:
    core = render_core(preset("nano"))
    for name in ("npu.v", "npu.vlt", "intloom.h"):
        assert f"- {name}" in core
    assert "testbench" not in core
    with_bench = render_core(preset("nano"), testbench=["npu_tb.v", "npu_tb_memory.hex"])
    assert (
        "- npu_tb.v: {file_type: verilogSource-2005}\n      - npu_tb_memory.hex: {copyto: npu_tb_memory.hex}\n"
        in with_bench
    )
    assert "filesets: [rtl, testbench]" in with_bench


def test_files_of_parameters_name_the_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intloom.hw.generate.readable_modules", lambda _: {"npu": ""})
    for params, name in ((preset("nano"), "nano"), (preset("nano").replace(weight_kib=32), "custom")):
        write_package(params, tmp_path)
        assert (tmp_path / "parameters.toml").read_text().startswith(f"# Hardware '{name}'.\n")
        assert f"hardware '{name}'" in (tmp_path / "intloom_parameters.h").read_text()
        assert from_toml(tmp_path / "parameters.toml") == params


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("intloom.hw.generate.readable_modules", lambda *a, **k: {"npu": ""})
    with pytest.raises(DiskError, match=str(blocked)):
        write_package(preset("nano"), blocked / "below")
