"""Random programs: RTL and instruction simulator agree; programs are legal; failing ones are found and shrunk."""

import re
from collections import Counter
from dataclasses import fields, replace
from itertools import combinations

import pytest

from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.isa import BY_KIND, QUEUED_UNITS, Kind, LoadTarget, make
from intloom.hw.spec.params import FIELD_TYPES, POWERS, RANGES, HardwareParams, preset
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.hardware import HARDWARE_COUNT, hardware_of, random_parameters
from intloom.sim.random_programs.program import NO_LAG, Step, constant_area, is_legal, random_program
from intloom.sim.random_programs.shrink import shrink
from tests.hw.npu.disturbed import simulator
from tests.sim.random_programs.extremes import LONG, WIDE
from tests.support.shapes import SHAPES

EVERY = SHAPES["halves"]
PROGRAMS = 12
"""Random programs on each shape."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_rtl_and_instruction_simulator_agree(shape: str, seed: int) -> None:
    """Programs of the run's seed; registers and memories have random contents before the reset."""
    hardware = SHAPES[shape]
    for number in range(PROGRAMS):
        program = random_program(seed + number, hardware)
        found = compare(program, simulator(hardware), (0, 100)[number % 2], start_seed=1 + number)
        assert not found.problem, f"seed {program.seed}: {found.problem}"
        assert found.cycles > hardware.scratch_words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hardware", "programs"),
    [pytest.param(WIDE, 2, id="wide"), pytest.param(LONG, 18, id="long", marks=pytest.mark.nightly)],
)
def test_they_agree_on_the_largest_memories_and_words(hardware: HardwareParams, programs: int, seed: int) -> None:
    """Hardware whose simulators other tests build too."""
    for number in range(programs):
        program = random_program(seed + number, hardware)
        found = compare(program, simulator_of(program), stall_permille=(0, 100)[number % 2])
        assert not found.problem, f"seed {program.seed}: {found.problem}"
        assert found.cycles > hardware.scratch_words


@pytest.mark.slow
def test_every_cycle_of_tiles_of_three_pixels_is_busy_or_stalled() -> None:
    """The planner's latency is longer than such a tile: between tiles the array has its weights, but no position."""
    program = random_program(1, SHAPES["nano"])
    conv = make(
        Kind.CONV,
        in_w=8,
        in_h=8,
        in_row=8,
        in_block_step=64,
        kernel_h=3,
        in_blocks=4,
        out_blocks=16,
        out_w=3,
        out_base=2048,
        out_plane=3,
    )
    for steps in (1, 4):
        small = program.with_steps([Step(conv, NO_LAG)] * steps)
        found = compare(small, simulator(SHAPES["nano"]))
        assert not found.problem, found.problem


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("shape", SHAPES)
def test_results_do_not_depend_on_registers_and_memories_before_the_reset(shape: str, seed: int) -> None:
    """Registers have no initial values, as on an ASIC: the reset must suffice, and state without reset not matter.

    Short programs do so on every shape in `make test` (tests/hw/npu/test_coincidences.py).
    """
    for number in range(3):
        program = random_program(seed + number, SHAPES[shape])
        found = [compare(program, simulator(SHAPES[shape]), start_seed=start) for start in (1 + number, 1000 + number)]
        assert [result.problem for result in found] == ["", ""], f"seed {program.seed}"
        assert found[0].cycles == found[1].cycles, f"seed {program.seed}"


def test_equal_seeds_give_equal_programs() -> None:
    first, again, other = (random_program(n, EVERY) for n in (5, 5, 6))
    assert (first.code(), first.contents()) == (again.code(), again.contents())
    assert first.code() != other.code()


def test_programs_are_legal_and_hold_every_kind() -> None:
    kinds: Counter[Kind] = Counter()
    coded, params = 0, EVERY.replace(word_code=True)
    for number in range(120):
        program = random_program(number, params)
        kinds.update(s.instruction.kind for s in program.steps)
        coded += sum(s.instruction.kind is Kind.LOAD and s.instruction["coded"] > 0 for s in program.steps)
        instructions = program.instructions()
        assert [i.kind for i in (instructions[0], instructions[-1])] == [Kind.BEGIN, Kind.END]
        constants = (program.constants_word, constant_area(params))
        assert all(is_legal(s.instruction, params, [*program.islands, constants]) for s in program.steps)
    assert set(kinds) == {s.kind for s in BY_KIND.values() if s.unit in QUEUED_UNITS}
    assert min(kinds.values()) >= 8
    assert coded >= 8


def test_coded_loads_fit_the_smallest_weight_memory() -> None:
    sets = (hardware_of(number) for number in range(HARDWARE_COUNT))
    params = min((p for p in sets if p.word_code), key=lambda p: p.weight_words)
    ends = set()
    for number in range(200):
        for step in random_program(number, params).steps:
            i = step.instruction
            if i.kind is Kind.LOAD and i["coded"] and LoadTarget(i["target"]) is LoadTarget.WEIGHT:
                copies = (i["n1"] - 1) * i["local_s1"] + (i["n2"] - 1) * i["local_s2"]
                ends.add(i["local"] + copies + i["n0"])
    assert max(ends) == params.weight_words


def test_instructions_overlap_and_bases_need_the_highest_address_bits() -> None:
    programs = [random_program(number, preset("base")) for number in range(90)]
    assert max(p.base for p in programs) >> 39
    assert max(first for p in programs for first, _ in p.islands) >> 31
    waits = [i["wait_vec"] for p in programs for i in p.instructions() if i.kind is Kind.VCOPY]
    assert sum(w > 0 for w in waits) > 10


def test_random_hardware_is_legal_and_varied() -> None:
    found = [random_parameters(number) for number in range(4, 24)]
    assert found == [hardware_of(number) for number in range(4, 24)]
    for name in ("rows", "cols", "lanes", "scratch_banks", "axi_burst", "acc_bits", "queue_depth", "match", "trace"):
        assert len({getattr(p, name) for p in found}) > 1, name
    assert {hardware_of(n).rows for n in range(4)} == {4, 8, 16, 32}


def test_every_parameter_has_both_limits_on_some_hardware() -> None:
    """Presets, random hardware, and that of the extreme programs."""
    sets = [*(hardware_of(number) for number in range(24)), WIDE, LONG]
    for name, limits in (*POWERS.items(), *RANGES.items()):
        assert {getattr(p, name) for p in sets} >= set(limits), name
    for name in (f.name for f in fields(EVERY) if FIELD_TYPES[f.name] is bool):
        assert {getattr(p, name) for p in sets} == {False, True}, name
    assert {p.match for p in sets} == set(RoundingMode)


@pytest.mark.slow
def test_a_wrong_instruction_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The instruction simulator multiplies wrongly: of a program that ends with a VMUL, only a VMUL is left."""
    program = random_program(4, EVERY)
    right = SEMANTICS[Kind.VMUL]

    def wrong(machine, instruction):
        right(machine, instruction.with_fields(zp_a=instruction["zp_a"] ^ 1))

    monkeypatch.setitem(SEMANTICS, Kind.VMUL, wrong)
    small = program.with_steps([Step(make(Kind.VMUL, m1=1, m2=1, shift=6, out_w=64, out_base=64), NO_LAG)])
    for candidate in (small, program.with_steps([*program.steps, *small.steps])):
        shrunk, failure = shrink(candidate, simulator(EVERY))
        assert [s.instruction.kind for s in shrunk.steps] == [Kind.VMUL]
        assert "scratchpad word" in failure.problem
    # Without the log of writes, the memories at the end are compared.
    at_end = compare(small, simulator(EVERY), taps=False)
    assert re.match(
        r"scratchpad word (6[4-9]|[7-9]\d|1[01]\d|12[0-7]), byte [0-3]: \d+ instead of \d+$", at_end.problem
    )


def test_contents_do_not_overlap() -> None:
    for number in range(60):
        program = random_program(number, hardware_of(number))
        size = program.params.word_bytes
        assert program.base + (program.program_word * size + len(program.code())) <= 1 << program.params.axi_addr_bits
        spans = [(word * size, word * size + len(data)) for word, data in program.contents().items()]
        results = program.result_word * size
        spans.append((results, results + program.params.scratch_words * size))
        assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(spans, 2))
        assert replace(program, seed=number).contents() == program.contents()
