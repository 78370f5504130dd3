"""VMUL."""

from __future__ import annotations

import numpy as np

from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.arithmetic import affine
from intloom.sim.isa_sim.machine import Machine, affine_fields, operand, write_vector
from intloom.sim.isa_sim.registry import executes


@executes(Kind.VMUL)
def vmul(machine: Machine, instruction: Instruction) -> None:
    """Quantized product of two operands."""
    a = operand(machine, instruction, "a").astype(np.int64) - instruction["zp_a"]
    b = operand(machine, instruction, "b").astype(np.int64) - instruction["zp_b"]
    write_vector(machine, instruction, affine(a * b, 0, affine_fields(instruction)))
