"""A board's system: its pins, its registers, its firmware, and the command that makes the bitstream."""

import os
import re
import shlex
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from intloom.common.errors import CapacityError, EnvironmentFault, ExitCode
from intloom.hw.fpga.board.bitstream import content
from intloom.hw.fpga.board.boards import ULX3S, Board
from intloom.hw.fpga.report import Bitstream, Clock, Resource, TimingError
from intloom.hw.fpga.table import PAGE
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import ADDRESS_BITS, MAGIC
from intloom.sim.rtl.toolchain import toolchain
from intloom.sim.rtl.verilog import verilog_of
from intloom.soc import board as command
from intloom.soc.board import board_header, main, make_system, self_test

if not os.environ.get("CI"):
    pytest.importorskip("litedram")

BENCH = Path(__file__).with_name("board_bench.v")
REGISTERS_AT = 0x8200_0000
NEEDS = pytest.mark.needs("gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf")


@pytest.fixture(autouse=True)
def from_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accelerator's Verilog without the names that other tests check."""

    def write_package(params: Any, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "npu.v").write_text(verilog_of(params))
        (folder / "parameters.toml").write_text(params.to_toml())

    monkeypatch.setattr("intloom.hw.generate.write_package", write_package)


def system(folder: Path) -> Any:
    from intloom.hw.fpga.board.system import BoardSystem

    return BoardSystem(ULX3S, "85F", "nano", folder / "rtl")


def ports(verilog: str) -> set[str]:
    """Ports of the module `chip`, bit by bit."""
    heading = re.search(r"^module chip \((.*?)\);", verilog, re.DOTALL | re.MULTILINE)[1]
    found = set()
    for width, name in re.findall(r"(?:wire|reg)\s+(?:\[(\d+):0\])?\s*(\w+)", heading):
        found |= {f"{name}[{bit}]" for bit in range(int(width) + 1)} if width else {name}
    return found


@pytest.mark.slow
@NEEDS
def test_every_port_has_a_pin_and_the_rom_has_the_firmware(tmp_path: Path) -> None:
    sources = make_system(ULX3S, "85F", "nano", tmp_path)
    assert [path.name for path in sources] == ["npu.v", "VexRiscv.v", "chip.v"]
    chip, lpf = ((tmp_path / name).read_text() for name in ("chip.v", "chip.lpf"))
    placed = dict(re.findall(r'LOCATE COMP "(.+)" SITE "(\w+)"', lpf))
    assert set(placed) == ports(chip)
    sites = [pin for group in ULX3S.pins.values() for names in group.values() for pin in names.split()]
    assert sorted(placed.values()) == sorted(sites)
    assert set(re.findall(r'IOBUF PORT "(.+)" IO_TYPE=LVCMOS33', lpf)) == set(placed)
    assert 'IOBUF PORT "rst" IO_TYPE=LVCMOS33 PULLMODE=DOWN;' in lpf
    assert 'FREQUENCY PORT "clk" 25.0 MHz;' in lpf
    words = [int(word, 16) for word in (tmp_path / "chip_rom.init").read_text().split()]
    firmware = (tmp_path / "firmware" / "firmware.bin").read_bytes()
    assert struct.pack(f"<{len(words)}I", *words)[: len(firmware)] == firmware


@pytest.mark.evidence
@NEEDS
def test_the_system_passes_its_self_test_in_simulation(tmp_path: Path) -> None:
    """The bitstream's Verilog with models of the SDRAM and of ECP5's cells; the bench is a host at the serial port."""
    for source in make_system(ULX3S, "85F", "nano", tmp_path, test_words=64):
        if source.parent != tmp_path:
            shutil.copy(source, tmp_path)
    chip = (tmp_path / "chip.v").read_text()
    # LiteX declares pins of TRELLIS_IO as inputs.
    (tmp_path / "chip.v").write_text(re.sub(r"\binput(\s+wire\s+\[15:0\] sdram_dq)", r"inout\1", chip))
    verilator = toolchain().verilator
    variables = {**verilator.make_variables(), "OPT_FAST": "-O0", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O0"}
    command = ["perl", str(verilator.script), "--binary", "--timing", "--top-module", "bench", "-Mdir", "obj"]
    command += ["-Wno-lint", "-Wno-style", "-Wno-fatal", "--x-assign", "fast", "--x-initial", "fast"]
    command += [f"-GREGISTER=32'h{REGISTERS_AT:x}", f"-GEXPECTED=32'h{MAGIC:x}", "-GLIMIT_US=20000"]
    command += ["-MAKEFLAGS", shlex.join(f"{name}={value}" for name, value in variables.items())]
    command += [str(BENCH), "chip.v", "npu.v", "VexRiscv.v"]
    done = subprocess.run(
        command, cwd=tmp_path, env=verilator.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = subprocess.run(["obj/Vbench"], cwd=tmp_path, capture_output=True, text=True, check=False)
    steps = re.findall(r"LEDs (\d+)", run.stdout)
    assert steps == ["0" * (8 - count) + "1" * count for count in range(8)]
    assert "\nPASSED\n" in run.stdout, run.stdout


def test_the_firmware_gets_the_registers_of_the_system(tmp_path: Path) -> None:
    from intloom.hw.fpga.board.system import addresses, registers, sdram_start

    made = system(tmp_path)
    found, at = addresses(made), registers(made)
    assert found["ACCELERATOR_AT"] == REGISTERS_AT
    assert made.bus.regions["intloom"].size == 1 << ADDRESS_BITS
    assert (found["MEMORY_AT"], found["MEMORY_BYTES"]) == (0x40000000, 32 << 20)
    writes = sdram_start(made)
    control = [w.value for w in writes if w.address == at["sdram_dfii_control"]]
    assert (control[0] & 1, control[-1]) == (0, 1)  # the firmware's commands first, the controller's at the end
    commands = [w.value for w in writes if w.address == at["sdram_dfii_pi0_command"]]
    precharge, refresh, mode = 0b1011, 0b1101, 0b1111
    assert commands == [precharge, mode, precharge, refresh, refresh, mode]
    header = board_header(made)
    assert f"#define UART_AT 0x{at['uart_rxtx']:08x}u" in header
    assert header.count("u, 20000u}") == 1


def test_a_firmware_that_is_larger_than_the_rom_is_an_error(tmp_path: Path) -> None:
    from intloom.hw.fpga.board.system import ROM_BYTES, write_verilog

    with pytest.raises(CapacityError, match="the ROM 32768"):
        write_verilog(system(tmp_path), bytes(ROM_BYTES + 1), tmp_path)


@pytest.mark.parametrize("name", ["nano", "small"])
def test_the_self_test_has_several_blocks(name: str) -> None:
    program, check = self_test(preset(name))
    assert len(check.outputs) == 1
    assert next(iter(check.outputs.values())).shape[1] > program.params.cols


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "litedram", None)
    with pytest.raises(EnvironmentFault, match=r"litedram.*intloom\[board\]"):
        make_system(ULX3S, "85F", "nano", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["icestick"], "there is no board 'icestick'"), (["ulx3s", "--device", "12F"], "it has 85F, 45F")],
)
def test_a_wrong_board_or_device_is_an_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def empty_system(_board: Board, _device: str, _preset: str, folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    return []


def test_the_command_records_the_bitstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    docs = Path(__file__).parents[3] / "docs"
    (tmp_path / "docs" / "data").mkdir(parents=True)
    (tmp_path / "docs" / PAGE).write_text((docs / PAGE).read_text())
    used = {kind: Resource(1, 2) for kind in ("LUT", "FF", "DSP", "RAM")}
    file = tmp_path / "ulx3s.bit"
    file.write_bytes(b"1234")
    made = Bitstream(file, "LFE5U-45F", used, (Clock("sys", 61.25, 50.0),), 90.0)
    monkeypatch.setattr(command, "make_system", empty_system)
    monkeypatch.setattr(command, "make_bitstream", lambda *_: made)
    lines: list[str] = []
    assert main(["ulx3s", "--device", "45F"], say=lines.append) == 0
    row = "| ulx3s | nano | LFE5U-45F | 1 of 2 | 1 of 2 | 1 of 2 | 1 of 2 | 61.2 of 50.0 | 2 |"
    assert lines[-2:] == [row, f"bitstream: {file}, 4 bytes"]
    assert row in (tmp_path / "docs" / PAGE).read_text().splitlines()


def test_a_bitstream_follows_from_the_system_without_its_comments(tmp_path: Path) -> None:
    def content_with(comment: str, pin: str = "A1", wire: str = "a") -> str:
        (tmp_path / "chip.v").write_text(f"// {comment}\n/* {comment}\n {comment} */ wire {wire};\n")
        (tmp_path / "chip.lpf").write_text(pin)
        return content(tmp_path, [tmp_path / "chip.v"], tmp_path)

    assert content_with("Monday") == content_with("Tuesday")
    assert content_with("Monday") != content_with("Monday", pin="B1")
    assert content_with("Monday") != content_with("Monday", wire="b")


def test_a_timing_error_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def late(*_: Any) -> None:
        raise TimingError("timing is not met", ())

    monkeypatch.setattr(command, "make_system", empty_system)
    monkeypatch.setattr(command, "make_bitstream", late)
    assert main(["-o", str(tmp_path)]) == ExitCode.BAD_PARAMETERS
    assert "timing is not met" in capsys.readouterr().err
