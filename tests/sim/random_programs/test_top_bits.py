"""Every instruction field at its highest bit, on RTL and instruction simulator."""

from dataclasses import replace

import numpy as np
import pytest

from intloom.common.errors import EncodingError
from intloom.hw.control.watchdog import CANDIDATES
from intloom.hw.spec.fields import HEADER
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import (
    COUNT_BITS,
    INSTRUCTION_BYTES,
    INSTRUCTIONS,
    Instruction,
    Kind,
    Unit,
    disassemble,
    encode,
    make,
)
from intloom.hw.spec.program_check import CRC_BITS, add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import is_legal
from intloom.sim.random_programs.words import words_of
from tests.sim.random_programs import extremes, top_bits
from tests.sim.random_programs.extremes import LONG, WIDE, ExtremeProgram, extreme_program
from tests.sim.random_programs.short_runs import DONE, Ending, altered, checked, ending, waits

PROGRAMS = {"wide": (WIDE, top_bits.wide_program()), "long": (LONG, top_bits.long_program())}
MEMORY = [(0, 1 << 33)]


class Simulator:
    """The instruction simulator, on the memories that the program starts with."""

    def __init__(self, program: ExtremeProgram) -> None:
        self._params, self._data = program.params, program.data
        image = np.frombuffer(self._data[program.image_word], np.int8).reshape(-1, self._params.word_bytes)
        weights = self._data[program.image_word + self._params.scratch_words]
        self._scratch, self._weights = image, np.frombuffer(weights, np.int8).reshape(-1, self._params.word_bytes)

    def result(self, i: Instruction) -> tuple[bytes, ...]:
        """All that an instruction changes."""
        memory = _Memory(self._data, self._params.word_bytes)
        machine = Machine(self._params, memory, self._scratch.copy(), self._weights.copy())  # type: ignore[arg-type]  # a sparse memory, sliced alike
        table = np.random.default_rng(1).integers(-128, 128, 256, dtype=np.int8)
        machine.vector_table = table
        machine.exponentials[:] = np.random.default_rng(2).integers(0, 256, machine.exponentials.shape)
        if i.kind is Kind.CONV:
            machine.sums = np.full((i["out_h"] * i["out_w"], self._params.cols), 1 << 20, np.int32)
        SEMANTICS[i.kind](machine, i)
        stored = np.concatenate([np.zeros(0, np.int64), *memory.written])
        parts = (
            machine.scratch,
            machine.weights,
            machine.vector_table,
            machine.mac_table,
            machine.exponentials,
            stored,
        )
        return tuple(part.tobytes() for part in parts)


class _Memory:
    """External memory: ranges with data, zero elsewhere; writes are recorded."""

    def __init__(self, data: dict[int, bytes], word_bytes: int) -> None:
        self._data, self._word_bytes = data, word_bytes
        self.written: list[np.ndarray] = []

    def __getitem__(self, words: slice) -> np.ndarray:
        for first, data in self._data.items():
            held = np.frombuffer(data, np.int8).reshape(-1, self._word_bytes)
            if first <= words.start < first + len(held):
                return held[words.start - first : words.stop - first]
        return np.zeros((words.stop - words.start, self._word_bytes), np.int8)

    def __setitem__(self, words: slice, values: np.ndarray) -> None:
        self.written += [np.array([words.start]), values.reshape(-1).astype(np.int64)]


def _depends(simulator: Simulator, i: Instruction, name: str, bit: int) -> bool:
    """Whether the result differs, or does not exist, with the bit inverted."""
    try:
        other = simulator.result(top_bits.flipped(i, name, bit))
    except (IndexError, ValueError, EncodingError):
        return True
    return simulator.result(i) != other


@pytest.fixture(scope="module")
def simulators() -> dict[str, Simulator]:
    return {name: Simulator(extreme_program(params, [])) for name, (params, _) in PROGRAMS.items()}


def test_every_field_has_instructions_that_need_its_highest_bit(simulators: dict[str, Simulator]) -> None:
    """Of every field in the instruction table, the highest bit and the sign change a result or end in an error."""
    proven: set[tuple[Kind, str, int]] = set()
    for shape, (_, steps) in PROGRAMS.items():
        for name, i in steps:
            bits = top_bits.required_bits(i.spec.field(name)) if name else ()
            proven |= {(i.kind, name, b) for b in bits if _depends(simulators[shape], i, name, b)}
    proven |= {(e.instruction.kind, name, e.bit) for name, e in (*top_bits.faulty(), *top_bits.unused())}
    for spec, field in top_bits.ALL_FIELDS:
        if field in HEADER or spec.kind in (Kind.BEGIN, Kind.END):
            continue
        missing = {b for b in top_bits.required_bits(field) if (spec.kind, field.name, b) not in proven}
        assert not missing, f"{spec.kind}.{field.name} has no instruction that needs bits {sorted(missing)}"


def test_addresses_of_faulty_bits_have_instructions_that_need_the_bits_below(simulators: dict[str, Simulator]) -> None:
    """Of an address whose highest bits lie past the scratchpad, the highest legal bit changes a result."""
    parts = (*top_bits.faulty(), *top_bits.unused())
    names = {(e.instruction.kind, name) for name, e in parts if name != "crc"}
    bit = (WIDE.scratch_words - 1).bit_length() - 1
    steps = [(name, i) for name, i in PROGRAMS["wide"][1] if (i.kind, name) in names]
    needed = {(i.kind, name) for name, i in steps if _depends(simulators["wide"], i, name, bit)}
    assert needed == names


def test_programs_are_legal_and_each_instruction_keeps_its_result() -> None:
    for params, steps in PROGRAMS.values():
        seen: set[int] = set()
        for name, i in steps:
            assert is_legal(i, params, MEMORY), f"{name}: {disassemble(i)}"
            written = set(words_of(i, params).writes.get("scratch", np.zeros(0)).tolist())
            assert not seen & written, f"{name}: {disassemble(i)}"
            seen |= written


# Benches on preset `large` cover the fields of long words in `make test`.
@pytest.mark.parametrize(
    "shape", [pytest.param("wide", marks=pytest.mark.slow), pytest.param("long", marks=pytest.mark.evidence)]
)
def test_rtl_and_instruction_simulator_agree(shape: str) -> None:
    """One program of all these instructions, at a base address of 64 bits."""
    params, steps = PROGRAMS[shape]
    extra = [e.instruction for _, e in top_bits.unused()] if params is WIDE else []
    program = extreme_program(params, [i for _, i in steps] + extra)
    found = compare(program, simulator_of(program))
    if found.problem:
        blamed = _first_wrong(program)
        pytest.fail(f"{found.problem}; the first wrong instruction is {disassemble(blamed)}")
    assert program.base >> extremes.WIDE.axi_addr_bits - 1 == 1


@pytest.mark.slow
def test_header_bits_and_addresses_past_the_scratchpad_end_in_their_error() -> None:
    """Highest bits of waits, opcode, version, fingerprint and CRC; address bits beyond the largest scratchpad."""
    simulator = simulator_of(extreme_program(WIDE, []))

    def run(*codes: bytes) -> Ending:
        return ending(simulator, WIDE, checked(WIDE, *codes))

    first, last = begin(WIDE), make(Kind.END)
    assert run() == run(encode(first)) == DONE
    for name, i in waits():
        assert run(altered(i, name, COUNT_BITS - 1)) == Ending(Cause.WATCHDOG, i.unit, 1), f"{i.kind}.{name}"
        program = add_check([encode(first), altered(last, name, COUNT_BITS - 1)])
        assert ending(simulator, WIDE, program) == Ending(Cause.WATCHDOG, Unit.CONTROL, 1), f"END.{name}"
    for spec in INSTRUCTIONS:
        code = altered(make(spec.kind), "opcode", spec.field("opcode").width - 1)
        assert run(code) == Ending(Cause.BAD_OPCODE, Unit.CONTROL, 1), spec.kind
    for name in ("version", "fingerprint"):
        code = altered(first, name, first.spec.field(name).width - 1)
        assert run(code) == Ending(Cause.WRONG_PROGRAM, Unit.CONTROL, 1)
    program = bytearray(checked(WIDE))
    at = INSTRUCTION_BYTES * 8 + last.spec.offsets["crc"] + CRC_BITS - 1
    program[at // 8] ^= 1 << at % 8
    assert ending(simulator, WIDE, bytes(program)) == Ending(Cause.PROGRAM_CHECK, Unit.CONTROL, 1)
    for name, fault in top_bits.faulty():
        code = altered(fault.instruction, name, fault.bit)
        assert run(code) == Ending(fault.cause, fault.unit, 1), f"{fault.instruction.kind}.{name} bit {fault.bit}"


@pytest.mark.slow
def test_an_error_index_above_2_to_the_15() -> None:
    """BEGIN takes few cycles and may be repeated; behind many of them an instruction is illegal."""
    index = (1 << 15) + 5
    program = checked(WIDE, *[encode(begin(WIDE))] * (index - 1), altered(make(Kind.VTABLE), "opcode", 7))
    found = ending(simulator_of(extreme_program(WIDE, [])), WIDE, program)
    assert found == Ending(Cause.BAD_OPCODE, Unit.CONTROL, index)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind.CONV, Kind.LOAD])
def test_the_watchdog_reports_no_part_of_an_index(kind: Kind) -> None:
    """Its limits are so short that it ends while the instruction is being loaded, its index not yet whole."""
    index = 5462
    program = checked(WIDE, *[encode(begin(WIDE))] * (index - 1), encode(make(kind)))
    simulator = simulator_of(extreme_program(WIDE, []))
    # Limits in all phases of the watchdog's scan.
    found = {ending(simulator, WIDE, program, watchdog=limit) for limit in range(300, 300 + CANDIDATES)}
    loaded = Ending(Cause.WATCHDOG, make(kind).unit, index)
    in_dispatch = {Ending(Cause.WATCHDOG, Unit.CONTROL, at) for at in (index, index + 1)}
    assert loaded in found
    assert found <= {loaded, *in_dispatch}


def _first_wrong(program: ExtremeProgram) -> Instruction:
    """The last instruction of the shortest program with a difference."""
    passes, fails = 0, len(program.body)
    while fails - passes > 1:
        middle = (passes + fails) // 2
        part = replace(program, body=program.body[:middle])
        passes, fails = (passes, middle) if compare(part, simulator_of(part)).problem else (middle, fails)
    return program.body[fails - 1]
