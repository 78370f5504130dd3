"""VAVG."""

from __future__ import annotations

import numpy as np

from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.arithmetic import affine
from intloom.sim.isa_sim.machine import Machine, affine_fields, output_grid, write_vector
from intloom.sim.isa_sim.registry import executes
from intloom.sim.isa_sim.windows import taps


@executes(Kind.VAVG)
def vavg(machine: Machine, instruction: Instruction) -> None:
    """Scaled sum of each window; input outside counts as zp_in."""
    shape = (*output_grid(instruction, instruction["blocks"]).shape, machine.params.rows)
    total = np.zeros(shape, np.int64)
    for values in taps(machine, instruction, instruction["zp_in"]):
        total += values
    write_vector(machine, instruction, affine(total, 0, affine_fields(instruction)))
