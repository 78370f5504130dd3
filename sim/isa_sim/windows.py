"""The pixels under each tap of a window, for pools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.hw.spec.isa import Instruction
from intloom.sim.isa_sim.machine import Machine, Words, grid


def taps(machine: Machine, i: Instruction, outside: int) -> Iterator[Words]:
    """For each pixel of the window: the input bytes [block, y, x, byte] under it; `outside` where there is no input."""
    planes = grid(i["a_base"], (i["blocks"], i["a_plane"]))[:, None, None]
    for ky in range(i["kernel_h"]):
        y = i["iy0"] + np.arange(i["out_h"]) * i["stride_h"] + ky
        inside_y = (y >= 0) & (y < i["in_h"])
        for kx in range(i["kernel_w"]):
            x = i["ix0"] + np.arange(i["out_w"]) * i["stride_w"] + kx
            inside = inside_y[:, None] & (x >= 0) & (x < i["in_w"])
            # Where there is no input the address does not matter: any word will do.
            words = np.where(inside, (planes + y[:, None] * i["a_row"] + x) % ADDRESS_SPACE, 0)
            values = machine.scratch[words]
            values[:, ~inside] = outside
            yield values
