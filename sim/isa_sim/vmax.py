"""VMAX."""

from __future__ import annotations

import numpy as np

from intloom.hw.spec.arith import INT8_MIN
from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.machine import Machine, write_vector
from intloom.sim.isa_sim.registry import executes
from intloom.sim.isa_sim.windows import taps


@executes(Kind.VMAX)
def vmax(machine: Machine, instruction: Instruction) -> None:
    """Largest byte of each window; input outside does not count."""
    result = None
    for values in taps(machine, instruction, INT8_MIN):
        result = values if result is None else np.maximum(result, values, out=result)
    if result is not None:
        write_vector(machine, instruction, result)
