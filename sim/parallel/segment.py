"""A segment of a program as a program of its own.

A segment that starts in the middle has a *prologue*: instructions that load both tables, weight memory and scratchpad
with the state of the instruction simulator. A segment that ends in the middle has an *epilogue*, which stores the whole
scratchpad, so that it can be compared. Every instruction of the segment keeps its address in memory: burst boundaries
of the instruction fetch depend on it.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.memory import encode_all, instruction_words
from intloom.compiler.program.program import Program, Provenance
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Kind, LoadTarget, TableUse, Unit, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.rtl.layers import Boundary, boundaries

_PROLOGUE = 7
"""Instructions of a prologue on hardware without exponentials."""
EPILOGUE = 2
"""Instructions of an epilogue."""


@dataclass(frozen=True, eq=False)
class Segment:
    """Instructions `first` to `last` (exclusive) of a program."""

    program: Program
    image: NDArray[np.uint8]
    """The whole memory before the segment, as words."""
    first: int
    last: int
    ends: list[Boundary]
    """Ends of layers, by the segment's own instruction counts."""
    earlier_ends: int
    """Layers that end before the segment."""


def prologue_length(params: HardwareParams) -> int:
    """Instructions of a prologue."""
    return _PROLOGUE + vector_tables(params) - 1


def vector_tables(params: HardwareParams) -> int:
    """Tables of 256 bytes in the vector unit."""
    return 1 + (EXPONENTIAL_BYTES if params.vector_softmax else 0)


@dataclass(frozen=True)
class Areas:
    """Words of memory from `tables` on that a segment uses: the state to load, and the stored scratchpad."""

    params: HardwareParams
    tables: int
    """Constants of the CONV that loads the array's table, and the vector unit's tables."""

    @property
    def vector_tables(self) -> int:
        """The vector unit's table, then each byte of its exponentials, if it has them."""
        p = self.params
        return self.tables + p.table_words + p.channel_words + p.tile_words

    @property
    def weights(self) -> int:
        """Content of the weight memory."""
        return self.vector_tables + vector_tables(self.params) * self.params.table_words

    @property
    def scratch(self) -> int:
        """Content of the scratchpad."""
        return self.weights + self.params.weight_words

    @property
    def stored(self) -> int:
        """The scratchpad as the epilogue stores it."""
        return self.scratch + self.params.scratch_words

    @property
    def end(self) -> int:
        """Word behind them."""
        return self.stored + self.params.scratch_words

    def content(self, state: Machine) -> NDArray[np.uint8]:
        """The words up to `stored`, with the state."""
        words = np.zeros((self.stored - self.tables, self.params.word_bytes), np.uint8)
        table, parts = self.params.table_words, state.exponentials[: vector_tables(self.params) - 1]
        for start, values in (
            # Bias, scale and weights of the CONV stay 0.
            (self.tables, state.mac_table.reshape(table, -1)),
            (self.vector_tables, state.vector_table.reshape(table, -1)),
            *((self.vector_tables + k * table, part.reshape(table, -1)) for k, part in enumerate(parts, 1)),
            (self.weights, state.weights),
            (self.scratch, state.scratch),
        ):
            words[start - self.tables :][: len(values)] = values.view(np.uint8)
        return words


def _areas(program: Program) -> Areas:
    """Behind the program's own memory."""
    return Areas(program.params, program.memory_words)


def alone(program: Program, first: int, last: int, areas: Areas) -> tuple[Instruction, ...]:
    """Instructions `first` to `last` (exclusive) as a program: a prologue and an epilogue where they need them."""
    prologue = () if first == 0 else _prologue(program, areas)
    body = program.instructions[first:last]
    if first:
        body = _shifted(body, _counts(program.instructions[:first]), _counts(prologue))
    epilogue = () if last == len(program.instructions) else _epilogue(areas, (*prologue, *body))
    return (*prologue, *body, *epilogue)


def make_segment(program: Program, first: int, last: int, state: Machine) -> Segment:
    """Instructions `first` to `last` (exclusive) of `program`; `state` is that before `first`."""
    code = alone(program, first, last, _areas(program))
    before = prologue_length(program.params) if first else 0
    nothing = Provenance(layer=-1, tile=0, note="restores or stores the state")
    origin = [nothing] * before + [*program.provenance[first:last]]
    own = replace(
        program,
        instructions=code,
        provenance=(*origin, *[nothing] * (len(code) - len(origin))),
        instructions_at=program.instructions_at + instruction_words(first - before, program.params),
        image_at=0,
        image=b"",
        memory_words=_areas(program).end,
        tensors=(),
        # The share of a layer's products in a segment is not known.
        layers=tuple(replace(layer, macs=0, vector_macs=0) for layer in program.layers),
    )
    earlier, ends = _ends(program, _counts(program.instructions[:first]), _counts(code[:before]))
    return Segment(own, _image(program, own, state), first, last, ends, earlier)


def expected_memory(program: Program, segment: Segment, after: Machine) -> NDArray[np.uint8]:
    """The memory after a segment; `after` is the state of the instruction simulator there."""
    areas, memory = _areas(program), segment.image.copy()
    dram = after.dram.view(np.uint8)
    code = _code(program)
    kept = memory[code].copy()
    memory[: len(dram)] = dram
    memory[code] = kept
    memory[areas.stored : areas.end] = after.scratch.view(np.uint8)
    return memory.reshape(-1)


def whole_memory(program: Program, memory: NDArray[np.uint8], original: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The memory of the whole program after its last segment; `original` is the memory before the run."""
    words = memory.reshape(-1, program.params.word_bytes)[: program.memory_words].copy()
    words[_code(program)] = original.reshape(words.shape)[_code(program)]
    return words.reshape(-1)


def _code(program: Program) -> slice:
    """Words of the program's instructions."""
    first = program.instructions_at
    return slice(first, first + instruction_words(len(program.instructions), program.params))


def _counts(instructions: tuple[Instruction, ...]) -> dict[Unit, int]:
    counts = Counter(i.unit for i in instructions)
    return {unit: counts[unit] for unit in QUEUED_UNITS}


def _waits(counts: dict[Unit, int]) -> dict[str, int]:
    return {f"wait_{unit.name.lower()}": count for unit, count in counts.items()}


def _shifted(
    body: tuple[Instruction, ...], skipped: dict[Unit, int], added: dict[Unit, int]
) -> tuple[Instruction, ...]:
    """The body with waits in counts of the segment.

    The first instruction of each unit waits for the whole prologue; the later ones issue after it. A wait of 0 stays 0.
    """
    shifted, seen = [], set()
    for instruction in body:
        waits = {}
        for unit in QUEUED_UNITS:
            name = f"wait_{unit.name.lower()}"
            count = instruction[name]
            least = added[unit] if count or instruction.unit not in seen else 0
            waits[name] = max(count - skipped[unit] + added[unit], least) if count else least
        seen.add(instruction.unit)
        shifted.append(instruction.with_fields(**waits))
    return tuple(shifted)


def _prologue(program: Program, areas: Areas) -> tuple[Instruction, ...]:
    """Load all tables by the instructions that use them, then weight memory and scratchpad."""
    p = program.params
    stream = p.table_words + p.channel_words + p.tile_words
    tables = vector_tables(p)
    return (
        program.instructions[0],
        make(Kind.LOAD, target=LoadTarget.WEIGHT, dram=areas.tables, n0=stream),
        make(Kind.LOAD, dram=areas.vector_tables, n0=tables * p.table_words),
        # One pixel at the end of the scratchpad, which is loaded afterwards.
        make(Kind.CONV, table=TableUse.LOAD, out_base=p.scratch_words - -(-p.cols // p.rows), out_plane=1, wait_load=2),
        make(Kind.VTABLE, wait_load=2),
        *(make(Kind.VEXP, wait_load=2, a_base=(k + 1) * p.table_words, part=k) for k in range(tables - 1)),
        make(Kind.LOAD, target=LoadTarget.WEIGHT, dram=areas.weights, n0=p.weight_words, wait_mac=1),
        make(Kind.LOAD, dram=areas.scratch, n0=p.scratch_words, wait_mac=1, wait_vec=tables),
    )


def _epilogue(areas: Areas, before: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Store the scratchpad after everything else."""
    counts = _counts(before)
    store = make(Kind.STORE, dram=areas.stored, n0=areas.params.scratch_words, **_waits(counts))
    return store, make(Kind.END, **_waits({**counts, Unit.STORE: counts[Unit.STORE] + 1}))


def _image(program: Program, own: Program, state: Machine) -> NDArray[np.uint8]:
    """The whole memory before the segment."""
    p, areas = program.params, _areas(program)
    memory = np.zeros((areas.end, p.word_bytes), np.uint8)
    memory[: len(state.dram)] = state.dram.view(np.uint8)
    memory[areas.tables : areas.stored] = areas.content(state)
    encoded = np.frombuffer(encode_all(own), np.uint8)
    memory.reshape(-1)[own.instructions_at * p.word_bytes :][: len(encoded)] = encoded
    return memory


def _ends(program: Program, skipped: dict[Unit, int], added: dict[Unit, int]) -> tuple[int, list[Boundary]]:
    """How many layers end before the segment, and the ends of the others in the segment's counts."""
    ends = boundaries(program)
    later = [end for end in ends if end.count > skipped[end.unit]]
    return len(ends) - len(later), [replace(e, count=e.count - skipped[e.unit] + added[e.unit]) for e in later]
