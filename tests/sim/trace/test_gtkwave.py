"""The save file for waves names signals that the Verilog has, and every instruction with its layer."""

import re

import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.verilog import verilog_of
from intloom.sim.trace.gtkwave import write_save_file


@pytest.fixture(scope="module")
def program():
    maker = GraphMaker(3)
    return compile_graph(maker.graph(maker.conv(maker.input(4, 6, 6), 8, 3)), preset("nano"))


def declared(verilog: str, module: str, name: str) -> int | None:
    """The width of a net of a module; None if it has no such net."""
    text = re.search(rf"^module \\?{re.escape(module)} ?\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL).group()
    net = re.search(
        rf"^ +(?:wire|reg|input|output)[a-z ]*(?:\[(\d+):0\] )?\\?{re.escape(name)} ?[ ;]", text, re.MULTILINE
    )
    return None if net is None else int(net.group(1) or 0) + 1


def test_the_signals_exist(program, tmp_path):
    lines = write_save_file(tmp_path / "dump.fst", program, "top").read_text().splitlines()
    verilog = verilog_of(program.params)
    signals = [line.removeprefix("top.") for line in lines if line.startswith("top.")]
    assert len(signals) > 2 * len(QUEUED_UNITS)
    for signal in signals:
        inside, name, high = re.fullmatch(r"(engine\.)?(.*?)(?:\[(\d+):0\])?", signal).groups()
        assert declared(verilog, "npu.engine" if inside else "npu", name) == int(high or 0) + 1, signal


def test_every_instruction_has_a_text(program, tmp_path):
    save = write_save_file(tmp_path / "dump.fst", program, "top").read_text()
    names = tmp_path / "instructions.txt"
    assert save.count(f"^1 {names}") == len(QUEUED_UNITS)
    texts = [line.split(" ", 1) for line in names.read_text().splitlines()]
    assert [int(number, 16) for number, _ in texts] == list(range(len(program.instructions)))
    for (_, text), instruction, source in zip(texts, program.instructions, program.provenance, strict=True):
        assert instruction.kind.name in text
        assert source.layer < 0 or program.layers[source.layer].name in text
