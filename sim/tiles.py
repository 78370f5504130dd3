"""Single tiles of a layer as programs of their own: each computing instruction alone, on its initial memory content.

The instruction simulator computes scratchpad, weight memory and tables before the instruction. The program loads them,
runs the instruction, and stores the whole scratchpad, so that a write to a wrong address is found too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from intloom.common.errors import UsageError
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Layout, Program, Provenance, Role, TensorBuffer
from intloom.hw.spec.isa import AccessPattern, Unit
from intloom.hw.spec.params import HardwareParams
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.parallel.segment import EPILOGUE, Areas, alone, prologue_length
from intloom.sim.parallel.state import states
from intloom.sim.result import Arrays

SCRATCHPAD = "scratchpad"
"""The one output of a tile's program."""
_COMPUTING = (Unit.MAC, Unit.VEC)


@dataclass(frozen=True, eq=False)
class TileSlice:
    """One computing instruction as a program, and the scratchpad that it must produce."""

    name: str
    index: int
    """Its number in the whole program."""
    program: Program
    expected: Arrays


def tile_slices(program: Program, inputs: Arrays, layers: set[str], tile: int) -> Iterator[TileSlice]:
    """Every computing instruction of tile `tile` of the layers.

    Raises
    ------
    UsageError
        No layer has such a tile.
    """
    chosen = {index for index in range(len(program.instructions)) if _is_chosen(program, index, layers, tile)}
    if not chosen:
        highest = max((p.tile for p in program.provenance if _layer_name(program, p) in layers), default=-1)
        raise UsageError(f"tile must be from 0 to {highest} in these layers, not {tile}")
    for (index, before), (_, after) in pairwise(states(program, inputs, chosen | {index + 1 for index in chosen})):
        if index in chosen:
            yield _slice(program, index, before, after)


def _layer_name(program: Program, source: Provenance) -> str:
    return program.layers[source.layer].name if 0 <= source.layer < len(program.layers) else ""


def _is_chosen(program: Program, index: int, layers: set[str], tile: int) -> bool:
    source, unit = program.provenance[index], program.instructions[index].unit
    # A vector table is loaded with the instruction that uses it.
    loads_table = program.instructions[index].spec.pattern is AccessPattern.TABLE
    computes = unit in _COMPUTING and not loads_table
    return computes and source.tile == tile and _layer_name(program, source) in layers


def _slice(program: Program, index: int, before: Machine, after: Machine) -> TileSlice:
    params = program.params
    instruction, source = program.instructions[index], program.provenance[index]
    if instruction.values.get("continue_sums"):
        raise UsageError(
            f"tile {source.tile} continues the sums of the tile before it, so it cannot run alone: "
            "run the layer, without a tile"
        )
    name = f"{_layer_name(program, source)} tile {source.tile} #{index} {instruction.kind}"
    areas = Areas(params, instruction_words(prologue_length(params) + 1 + EPILOGUE, params))
    code = alone(program, index, index + 1, areas)
    made = replace(
        program,
        name=name,
        instructions=code,
        provenance=tuple(Provenance(layer=0, tile=0) for _ in code),
        instructions_at=0,
        image_at=areas.tables,
        image=areas.content(before).tobytes(),
        memory_words=areas.end,
        tensors=(_whole_scratchpad(params, areas.stored, len(code) - 2),),
        # The share of the layer's products in this tile is not known.
        layers=(replace(program.layers[source.layer], macs=0, vector_macs=0),),
        predicted_cycles=areas.end - areas.tables,
        local_tensors=(),
        local_results=(),
    )
    return TileSlice(name, index, made, {SCRATCHPAD: np.ascontiguousarray(after.scratch.T)[None, :, None, :]})


def _whole_scratchpad(params: HardwareParams, address: int, stored_by: int) -> TensorBuffer:
    """The scratchpad as an output tensor of one row."""
    return TensorBuffer(
        name=SCRATCHPAD,
        role=Role.OUTPUT,
        shape=(1, params.rows, 1, params.scratch_words),
        layout=Layout.BLOCKED,
        address=address,
        words=params.scratch_words,
        scale=1.0,
        zero_point=0,
        unsigned=False,
        first_instruction=stored_by,
    )
