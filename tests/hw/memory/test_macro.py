"""Memory macros: what a read returns that meets a write, in memories of which the design uses it and in others."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib.memory import Memory

from intloom.hw.memory.macro import MemoryMacros
from intloom.hw.yosys_attributes import NO_COLLISIONS


@pytest.mark.parametrize(("attributes", "read_old"), [({}, 1), (NO_COLLISIONS, 0)])
def test_a_macro_returns_the_old_word_unless_no_read_meets_a_write(attributes: dict[str, int], read_old: int) -> None:
    """A memory of Amaranth returns the word before the write, unless the design promises that no read meets one."""
    memory = Memory(shape=32, depth=256, init=[], attrs=attributes)
    memory.read_port()
    memory.write_port()
    module = Module()
    module.submodules.memory = memory
    assert f"parameter \\READ_OLD {read_old}\n" in rtlil.convert(module, platform=MemoryMacros(arrays=False), ports=[])
