"""`add_intloom`: LiteX systems with the accelerator run a program, and their own interconnect carries every access."""

import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from intloom.compiler.program.memory import initial_memory, pack_tensor
from intloom.compiler.program.program import Program, Role
from intloom.compiler.schedule import compile_graph
from intloom.hw.generate import write_package
from intloom.hw.package.intloom_litex import REGISTER_ADDRESS_BITS, add_intloom
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import ADDRESS_BITS, register
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import make_graph
from intloom.sim.rtl.verilog import verilog_of

CHIP = "chip"
REGISTERS_AT = 0x8200_0000
MEMORY_AT = 0x4000_0000
MEMORY_BYTES = 0x4000
_PENDING = 4
"""Offset of the event manager's register `pending`, after `status`."""
_WRITE, _WAIT, _COMPARE, _END = range(4)


def write_package_from_cache(folder: Path, name: str) -> None:
    """What `intloom verilog` writes, as far as LiteX reads it."""
    folder.mkdir()
    params = preset(name)
    (folder / "npu.v").write_text(verilog_of(params))
    (folder / "parameters.toml").write_text(params.to_toml())


def system(standard: str, folder: Path) -> Any:
    """A LiteX system without a CPU: memory, accelerator, and a bus master whose signals are pins."""
    from litex.build.generic_platform import Pins
    from litex.build.sim import SimPlatform
    from litex.soc.integration.soc_core import SoCCore
    from litex.soc.interconnect import wishbone
    from migen import ClockDomain, Module

    host = wishbone.Interface(data_width=32, address_width=32, addressing="word")
    pins = [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)), *host.get_ios("host")]
    platform = SimPlatform("SIM", pins, name=CHIP)
    soc = SoCCore(
        platform, 1_000_000, bus_standard=standard, cpu_type=None, ident="", with_uart=False, with_timer=False,
        integrated_sram_size=0, integrated_main_ram_size=MEMORY_BYTES,
    )  # fmt: skip
    clocks = Module()
    clocks.clock_domains.cd_sys = domain = ClockDomain("sys")
    clocks.comb += [domain.clk.eq(platform.request("sys_clk")), domain.rst.eq(platform.request("sys_rst"))]
    soc.submodules.crg = clocks
    soc.comb += host.connect_to_pads(platform.request("host"), mode="slave")
    soc.bus.add_master("host", host)
    return soc


def operation(kind: int, address: int = 0, word: int = 0) -> str:
    return f"{kind:02x}{address:08x}{word:08x}\n"


def words(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data)


def host_script(program: Program, memory: bytes, expected: bytes, output_at: int, pending_at: int) -> str:
    """Load memory and start; wait for the interrupt; compare status and output."""
    settings = {
        "PROGRAM": program.instructions_at, "LENGTH": len(program.instructions), "BASE_LOW": MEMORY_AT,
        "BASE_HIGH": 0, "LIMIT": program.memory_words, "IRQ_ENABLE": 3, "CONTROL": 1,
    }  # fmt: skip
    lines = [operation(_WRITE, MEMORY_AT + 4 * i, word) for i, word in enumerate(words(memory))]
    lines += [operation(_WRITE, REGISTERS_AT + register(name).offset, value) for name, value in settings.items()]
    lines.append(operation(_WAIT, pending_at, 1))
    lines.append(operation(_COMPARE, REGISTERS_AT + register("STATUS").offset, 2))
    lines += [operation(_COMPARE, MEMORY_AT + output_at + 4 * i, word) for i, word in enumerate(words(expected))]
    return "".join([*lines, operation(_END)])


def small_convolution(name: str) -> tuple[Program, bytes, bytes, int]:
    """A program, memory before it, output words after it, and their byte address."""
    params = preset(name)
    sizes = {"inputs": 3, "outputs": params.word_bytes, "height": 6, "width": 6, "kernel": 3, "stride": 1, "pad": 1}
    graph, inputs = make_graph("conv", 1, sizes)
    program = compile_graph(graph, params)
    (output,) = (t for t in program.tensors if t.role is Role.OUTPUT)
    expected = pack_tensor(output, params, run_graph(graph, inputs, match=params.match)[output.name])
    return program, initial_memory(program, inputs).tobytes(), expected, output.address * params.word_bytes


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize(
    ("standard", "name"), [("wishbone", "nano"), ("axi-lite", "nano"), ("axi", "nano"), ("wishbone", "small")]
)
def test_a_litex_system_runs_a_program(
    standard: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # LiteX writes the memory's contents there
    write_package_from_cache(tmp_path / "rtl", name)
    soc = system(standard, tmp_path)
    add_intloom(soc, origin=REGISTERS_AT, folder=tmp_path / "rtl")
    soc.platform.get_verilog(soc, regular_comb=False).write(f"{CHIP}.v")
    text = (tmp_path / f"{CHIP}.v").read_text()
    top = re.search(r"^module (\w+)", text, re.MULTILINE)[1]
    pending_at = soc.csr.regions["intloom"].origin + _PENDING
    program, memory, expected, output_at = small_convolution(name)
    assert len(memory) <= MEMORY_BYTES
    (tmp_path / "host.hex").write_text(host_script(program, memory, expected, output_at, pending_at))
    sources = [str(Path(__file__).with_name("litex_bench.v")), f"{CHIP}.v", "rtl/npu.v"]
    subprocess.run(["iverilog", "-g2005", f"-DCHIP={top}", "-s", "bench", "-o", "bench", *sources], check=True)
    done = subprocess.run(["vvp", "-n", "bench"], capture_output=True, text=True, check=True)
    assert "PASSED" in done.stdout, done.stdout


def test_the_package_has_the_module_as_it_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr("intloom.hw.generate.readable_modules", lambda _: {"npu": ""})
    write_package(preset("nano"), tmp_path)
    assert "def add_intloom" in (tmp_path / "intloom_litex.py").read_text()
    assert REGISTER_ADDRESS_BITS == ADDRESS_BITS


def test_without_verilog_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="name a preset"):
        add_intloom(None, folder=tmp_path)


def test_a_preset_is_written_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("intloom.hw.generate.readable_modules", lambda _: {"npu": ""})
    soc = system("wishbone", tmp_path)
    add_intloom(soc, "nano")
    assert [Path(path) for path, *_ in soc.platform.sources] == [tmp_path / "build/intloom-nano/npu.v"]
    assert "intloom" in soc.bus.regions
