"""VADD."""

from __future__ import annotations

import numpy as np

from hw.spec.isa import Instruction, Kind
from sim.golden.affine import affine

from .machine import Machine, law, operand, write_vector
from .registry import executes


@executes(Kind.VADD)
def vadd(machine: Machine, instruction: Instruction) -> None:
    """Quantised sum of two operands."""
    a = operand(machine, instruction, "a").astype(np.int64)
    b = operand(machine, instruction, "b").astype(np.int64)
    write_vector(machine, instruction, affine(a, b, law(instruction)))
