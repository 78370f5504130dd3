"""VTABLE."""

from __future__ import annotations

from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.isa_sim.registry import executes


@executes(Kind.VTABLE)
def vtable(machine: Machine, instruction: Instruction) -> None:
    """Load the vector unit's table."""
    start = instruction["a_base"]
    words = machine.scratch[start : start + machine.params.table_words]
    machine.vector_table = words.reshape(-1)[:TABLE_BYTES].copy()
