"""VEXP."""

from __future__ import annotations

import numpy as np

from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.isa_sim.registry import executes


@executes(Kind.VEXP)
def vexp(machine: Machine, instruction: Instruction) -> None:
    """Load one byte of each exponential."""
    start = instruction["a_base"]
    words = machine.scratch[start : start + machine.params.table_words]
    machine.exponentials[instruction["part"]] = words.reshape(-1)[:TABLE_BYTES].view(np.uint8)
