"""VSOFTMAX."""

from __future__ import annotations

import numpy as np

from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.softmax import unpack_exponentials
from intloom.sim.isa_sim.arithmetic import softmax
from intloom.sim.isa_sim.machine import Machine, operand, write_vector
from intloom.sim.isa_sim.registry import executes


@executes(Kind.VSOFTMAX)
def vsoftmax(machine: Machine, instruction: Instruction) -> None:
    """Softmax over the channels of each pixel."""
    i = instruction
    values = operand(machine, i, "a")
    # One row of bytes for each pixel: block by block, as channels are numbered.
    pixels = np.moveaxis(values, 0, 2).reshape(i["out_h"] * i["out_w"], -1)
    channels = (i["blocks"] - 1) * machine.params.rows + i["last_bytes"]
    # Each loaded part is one byte of all exponentials.
    exponentials = np.array(unpack_exponentials(machine.exponentials.T.tobytes()))
    result = softmax(pixels, exponentials, i["less"], i["zp_out"], channels)
    blocked = result.reshape(i["out_h"], i["out_w"], i["blocks"], -1)
    write_vector(machine, i, np.ascontiguousarray(np.moveaxis(blocked, 2, 0)))
