"""VMUL."""

from __future__ import annotations

import numpy as np

from hw.spec.isa import Instruction, Kind
from sim.golden.affine import affine

from .machine import Machine, law, operand, write_vector
from .registry import executes


@executes(Kind.VMUL)
def vmul(machine: Machine, instruction: Instruction) -> None:
    """Quantised product of two operands."""
    a = operand(machine, instruction, "a").astype(np.int64) - instruction["zp_a"]
    b = operand(machine, instruction, "b").astype(np.int64) - instruction["zp_b"]
    write_vector(machine, instruction, affine(a * b, 0, law(instruction)))
