"""VCOPY."""

from __future__ import annotations

import numpy as np

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.machine import Machine, grid, output_grid, through
from intloom.sim.isa_sim.registry import executes


@executes(Kind.VCOPY)
def vcopy(machine: Machine, instruction: Instruction) -> None:
    """Copy words, enlarged, with rotated and selected bytes."""
    i = instruction
    dims = ((i["blocks"], i["a_plane"]), (i["out_h"], 0), (i["out_w"], 0))
    rows = np.arange(i["out_h"]) // i["up_h"] * i["a_row"]
    columns = np.arange(i["out_w"]) // i["up_w"] * i["a_x"]
    source = (grid(i["a_base"], *dims) + rows[:, None] + columns) % ADDRESS_SPACE
    values = np.roll(machine.scratch[source], i["rotate"], axis=-1)
    if i["table"]:
        values = through(machine.vector_table, values)
    targets = output_grid(i, i["blocks"])
    chosen = slice(i["first_byte"], i["first_byte"] + i["byte_count"])
    result = machine.scratch[targets]
    result[..., chosen] = values[..., chosen]
    machine.scratch[targets] = result
