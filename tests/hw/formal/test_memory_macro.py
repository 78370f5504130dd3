"""The module that memory macros replace equals the inferred memory, for all sequences of reads and writes in 8 cycles.

A word is read after it has been written; where READ_OLD is 0, no edge reads and writes the same word.
"""

from pathlib import Path

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Elaboratable, Module, ResetSignal, Signal
from amaranth.lib.memory import Memory

from intloom.hw.memory.macro import RAM_VERILOG, MemoryMacros
from intloom.hw.yosys_attributes import NO_COLLISIONS
from tests.hw.formal.prover import prove
from tests.support.nightly import with_nightly

pytestmark = pytest.mark.slow
DEPTH, WIDTH = 4, 128
_CYCLES = 8


class Bench(Elaboratable):
    """Both forms with any inputs; without `read_old` the design promises that no read meets a write."""

    def __init__(self, granule: int, read_old: bool) -> None:
        self.granule, self.read_old = granule, read_old

    def elaborate(self, platform: object) -> Module:
        m = Module()
        attributes = {} if self.read_old else NO_COLLISIONS
        outputs, address, enable = [], AnySeq(2), AnySeq(1)
        parts = WIDTH // self.granule
        write_address, mask, word = AnySeq(2), AnySeq(parts), AnySeq(WIDTH)
        for name in ("inferred", "macro"):
            memory = Memory(shape=WIDTH, depth=DEPTH, init=[], attrs=attributes)
            read, write = memory.read_port(), memory.write_port(granularity=self.granule)
            m.submodules[name] = memory if name == "inferred" else MemoryMacros(arrays=False).get_memory(memory)
            m.d.comb += [read.en.eq(enable), read.addr.eq(address), write.en.eq(mask)]
            m.d.comb += [write.addr.eq(write_address), write.data.eq(word)]
            outputs.append(read.data)
        written = [Signal(parts, name=f"written{row}") for row in range(DEPTH)]
        shown = Signal()
        for row, known in enumerate(written):
            with m.If(write_address == row):
                m.d.sync += known.eq(known | mask)
            m.d.comb += Assume(~enable | (address != row) | known.all())
        with m.If(enable):
            m.d.sync += shown.eq(1)
        meets = enable & mask.any() & (address == write_address)
        m.d.comb += [
            Assume(~ResetSignal()),
            Assume(self.read_old | ~meets),
            Assert(~shown | (outputs[0] == outputs[1])),
        ]
        return m


def _proved(granule: int, read_old: bool, folder: Path, verilog: str = RAM_VERILOG) -> bool:
    read = ["read_verilog -sv -DSYNTHESIS macro.v"]
    return prove(
        Bench(granule, read_old), folder, depth=_CYCLES, whole=True, verilog={"macro.v": verilog}, read=read
    ).holds


@pytest.mark.parametrize("read_old", [False, True])
@pytest.mark.parametrize("granule", with_nightly((8, WIDTH), {8}))
def test_the_macro_equals_the_inferred_memory(granule: int, read_old: bool, tmp_path: Path) -> None:
    assert _proved(granule, read_old, tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (read_enable) read_data", "read_data"),
        ("if (write_enable[part])", "if (write_enable[0])"),
        ("memory[read_address];", "memory[read_address] ^ (read_address == write_address);"),
    ],
)
def test_a_faulty_macro_is_refuted(old: str, new: str, tmp_path: Path) -> None:
    assert RAM_VERILOG.count(old) == 1
    assert not _proved(8, True, tmp_path, RAM_VERILOG.replace(old, new))
