"""Translation to Verilog: what Yosys gets, and how it ends."""

import re
import sys
import time
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.common.errors import EnvironmentFault
from intloom.hw import verilog
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.verilog import translated


class Lookup(wiring.Component):
    """A memory with initial words and one port for each direction."""

    address: In(6)
    data: Out(32)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=32, depth=64, init=[0x1234_5678] * 64)
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [read.en.eq(1), read.addr.eq(self.address), self.data.eq(read.data)]
        m.d.comb += [write.en.eq(1), write.addr.eq(self.address), write.data.eq(~read.data)]
        return m


def test_initial_words_of_memories_are_not_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = []
    run = verilog._yosys
    monkeypatch.setattr(verilog, "_yosys", lambda script: scripts.append(script) or run(script))
    text = translated(Lookup(), "lookup")
    assert "reg [31:0] memory [63:0];" in text
    assert "initial" not in text
    assert "$memrd_v2" in scripts[0] and "$memwr_v2" in scripts[0]
    assert "$meminit" not in scripts[0]


def test_lines_of_the_source_are_those_of_the_hardware() -> None:
    """No line of Amaranth: its folder is another one on each machine, and the text may come from a cache."""
    named = re.findall(r'src = "([^"]*)"', translated(CreditFifo(8, 4), "queue", source_lines=True))
    lines = {line for of_item in named for line in of_item.split("|")}
    assert any(line.startswith("credit_fifo.py:") for line in lines)
    assert all((Path(verilog.__file__).parent / line.partition(":")[0]).is_file() for line in lines)
    assert not any(line.startswith("/") for line in lines)
    assert "src" not in translated(Lookup(), "lookup", source_lines=True)


def test_a_refused_design_ends_in_an_error() -> None:
    with verilog._yosys("no_such_pass\n") as output, pytest.raises(EnvironmentFault, match="No such command"):
        output()


def test_an_interrupt_ends_yosys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))

    def interrupted() -> None:
        with verilog._yosys(""):
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - started < 5
