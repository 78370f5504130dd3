"""Single tiles of a layer as programs of their own: each computing instruction alone, on its initial memory content.

The instruction simulator computes scratchpad, weight memory and tables before the instruction. The program loads them,
runs the instruction, and stores the whole scratchpad, so that a write to a wrong address is found too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Layer, Layout, Program, Provenance, Role, TensorBuffer
from intloom.hw.spec.isa import (
    ISA_VERSION,
    QUEUED_UNITS,
    AccessPattern,
    Instruction,
    Kind,
    LoadTarget,
    TableUse,
    Unit,
    disassemble,
    make,
)
from intloom.hw.spec.params import HardwareParams
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.isa_sim.machine import Machine
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
    chosen = [index for index in range(len(program.instructions)) if _is_chosen(program, index, layers, tile)]
    if not chosen:
        highest = max((p.tile for p in program.provenance if _layer_name(program, p) in layers), default=-1)
        raise UsageError(f"tile must be from 0 to {highest} in these layers, not {tile}")
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    for index in chosen:
        while simulator.position < index:
            simulator.step()
        yield _slice(program, index, simulator)


def _layer_name(program: Program, source: Provenance) -> str:
    return program.layers[source.layer].name if 0 <= source.layer < len(program.layers) else ""


def _is_chosen(program: Program, index: int, layers: set[str], tile: int) -> bool:
    source, unit = program.provenance[index], program.instructions[index].unit
    # A vector table is loaded with the instruction that uses it.
    loads_table = program.instructions[index].spec.pattern is AccessPattern.TABLE
    computes = unit in _COMPUTING and not loads_table
    return computes and source.tile == tile and _layer_name(program, source) in layers


def _slice(program: Program, index: int, simulator: IsaSimulator) -> TileSlice:
    params, instruction, machine = program.params, program.instructions[index], simulator.machine
    if instruction.values.get("continue_sums"):
        raise UsageError(
            f"tile {program.provenance[index].tile} continues the sums of the tile before it, so it cannot run alone: "
            "run the layer, without a tile"
        )
    scratch, weights = machine.scratch.copy(), machine.weights.copy()
    # The instructions that it waited for are not in this program.
    plain = instruction.with_fields(**{f"wait_{u.name.lower()}": 0 for u in QUEUED_UNITS})
    code = [plain]
    if plain.kind is Kind.CONV and plain["table"] == TableUse.KEEP:
        code = [_with_own_table(plain, params, weights, machine)]
    elif plain.unit is Unit.VEC:
        code = [*_table_loads(plain, params, scratch, machine), plain]
    simulator.step()
    after = machine.scratch.copy()
    for load in code[:-1]:
        # The table lies where the instruction neither reads nor writes.
        spot = slice(load["a_base"], load["a_base"] + params.table_words)
        after[spot] = scratch[spot]
    source = program.provenance[index]
    name = f"{_layer_name(program, source)} tile {source.tile} #{index} {instruction.kind}"
    # The share of the layer's products in this tile is not known.
    layer = replace(program.layers[source.layer], macs=0, vector_macs=0)
    made = _program(name, params, code, weights.tobytes() + scratch.tobytes(), layer)
    return TileSlice(name, index, made, {SCRATCHPAD: np.ascontiguousarray(after.T)[None, :, None, :]})


def _with_own_table(
    conv: Instruction, params: HardwareParams, weights: NDArray[np.int8], machine: Machine
) -> Instruction:
    """The CONV with the table that it keeps from an earlier one put before its weights."""
    stream = next(a for a in footprint(conv, params) if a.memory is Memory.WEIGHT)
    if stream.dims[0][0] + params.table_words > params.weight_words:
        raise UsageError(f"{disassemble(conv)} fills the weight memory, so its table does not fit beside its weights")
    at = (conv["weights"] - params.table_words) % params.weight_words
    words = (at + np.arange(params.table_words)) % params.weight_words
    # The weight memory is a ring, so the words before the weights may wrap.
    weights[words] = machine.mac_table.reshape(params.table_words, -1)
    return conv.with_fields(table=TableUse.LOAD, weights=at)


def _table_loads(
    vector: Instruction, params: HardwareParams, scratch: NDArray[np.int8], machine: Machine
) -> list[Instruction]:
    """Loads of the tables that a vector instruction uses, from words that it does not access."""
    tables: list[tuple[Kind, dict[str, int], NDArray[np.int8]]] = []
    if vector["table"]:
        tables.append((Kind.VTABLE, {}, machine.vector_table))
    if vector.kind is Kind.VSOFTMAX:
        tables += [(Kind.VEXP, {"part": k}, part.view(np.int8)) for k, part in enumerate(machine.exponentials)]
    words, free = params.table_words, np.ones(params.scratch_words, bool)
    for access in footprint(vector, params):
        free[addresses(access) % params.scratch_words] = False
    loads = []
    for kind, fields, content in tables:
        runs = np.convolve(free, np.ones(words, int), "valid") == words
        if not runs.any():
            raise UsageError(
                f"{disassemble(vector)} fills the scratchpad, so its table does not fit beside its operands"
            )
        at = int(np.argmax(runs))
        free[at : at + words] = False
        scratch[at : at + words] = content.reshape(words, -1)
        loads.append(make(kind, a_base=at, **fields))
    return loads


def _program(name: str, params: HardwareParams, code: list[Instruction], image: bytes, layer: Layer) -> Program:
    """Load weight memory and scratchpad from `image`, run `code`, store the scratchpad."""
    count = len(code) + 5
    image_at = instruction_words(count, params)
    scratch_at = image_at + params.weight_words
    output_at = scratch_at + params.scratch_words
    unit = code[-1].unit
    waits = {f"wait_{unit.name.lower()}": len(code)}
    instructions = (
        make(Kind.BEGIN, version=ISA_VERSION, fingerprint=params.fingerprint()),
        make(Kind.LOAD, target=LoadTarget.WEIGHT, dram=image_at, n0=params.weight_words),
        make(Kind.LOAD, dram=scratch_at, n0=params.scratch_words),
        *(i.with_fields(wait_load=2, **{f"wait_{unit.name.lower()}": n}) for n, i in enumerate(code)),
        make(Kind.STORE, dram=output_at, n0=params.scratch_words, **waits),
        make(Kind.END, wait_load=2, wait_store=1, **waits),
    )
    words = params.weight_words + 2 * params.scratch_words
    return Program(
        name=name,
        params=params,
        instructions=instructions,
        provenance=tuple(Provenance(layer=0, tile=0) for _ in instructions),
        instructions_at=0,
        image_at=image_at,
        image=image,
        memory_words=output_at + params.scratch_words,
        tensors=(_whole_scratchpad(params, output_at, count - 2),),
        layers=(layer,),
        predicted_cycles=words,
    )


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
