"""Programs with one defect, class by class: what the checker passes gives one result in every order.

The reference is `tests.support.any_order`, which does not know footprints. A mutant that the checker passes must be
harmless in every order tried, or wrong in the same way in all of them (an address moved to other valid data, which the
comparison with the golden model notices). A mutant whose result depends on the order must be refused.
"""

import dataclasses
import itertools
import os
import random

import pytest

from intloom.common.errors import EncodingError, ProgramError
from intloom.compiler.program.program import Program
from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Kind
from intloom.hw.spec.params import preset
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from tests.support.any_order import StuckError, at_random, first_of, run_in_order

PARAMS = preset("nano")
WAITS = ("wait_load", "wait_mac", "wait_vec", "wait_store")
ADDRESSES = ("local", "dram", "in_base", "out_base", "res_base", "a_base", "b_base", "weights")
STEPS = ("n0", "local_s1", "local_s2", "dram_s1", "in_plane", "in_row", "out_plane", "out_row", "a_row", "a_plane")
ORDERS = [first_of(o) for o in itertools.permutations(QUEUED_UNITS)]
MUTANTS = 40


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(0)
    x = maker.conv(maker.input(3, 14, 14), 8, 3)
    y = maker.add(maker.conv(x, 8, 3), x)
    pooled = maker.max_pool(y, 3, pad=1)
    graph = maker.graph(maker.conv(maker.concat(maker.apply_table(pooled), x), 8))
    inputs = maker.random_inputs()
    program = compile_graph(graph, PARAMS.replace(scratch_kib=8))
    return program, inputs, run_graph(graph, inputs, match=PARAMS.match)


def with_code(program: Program, code: list[Instruction]) -> Program:
    return dataclasses.replace(program, instructions=tuple(code))


def lower_a_wait(code: list[Instruction], rng: random.Random) -> bool:
    """Some wait of some instruction becomes shorter, or vanishes."""
    index, wait = rng.randrange(1, len(code) - 1), rng.choice(WAITS)
    if not code[index][wait]:
        return False
    code[index] = code[index].with_fields(**{wait: rng.choice([0, code[index][wait] - 1])})
    return True


def shift(code: list[Instruction], rng: random.Random, names: tuple[str, ...]) -> bool:
    """A field of `names` moves a little."""
    index = rng.randrange(1, len(code) - 1)
    fields = [n for n in names if n in code[index].values]
    if not fields:
        return False
    name = rng.choice(fields)
    try:
        code[index] = code[index].with_fields(**{name: code[index][name] + rng.choice([-16, -3, -1, 1, 2, 14, 60])})
    except EncodingError:
        return False
    return True


def move_an_address(code: list[Instruction], rng: random.Random) -> bool:
    """Something is read or written elsewhere."""
    return shift(code, rng, ADDRESSES)


def change_a_step(code: list[Instruction], rng: random.Random) -> bool:
    """Rows or planes lie elsewhere, or a move is longer."""
    return shift(code, rng, STEPS)


def swap_neighbors(code: list[Instruction], rng: random.Random) -> bool:
    """Two instructions are exchanged."""
    index = rng.randrange(1, len(code) - 2)
    code[index], code[index + 1] = code[index + 1], code[index]
    return True


def drop_an_instruction(code: list[Instruction], rng: random.Random) -> bool:
    """One is missing; waits count on."""
    del code[rng.randrange(1, len(code) - 1)]
    return True


def repeat_an_instruction(code: list[Instruction], rng: random.Random) -> bool:
    """One is repeated."""
    index = rng.randrange(1, len(code) - 1)
    code.insert(index, code[index])
    return True


CLASSES = (
    lower_a_wait, move_an_address, change_a_step, swap_neighbors, drop_an_instruction, repeat_an_instruction,
)  # fmt: skip


def mutants(program: Program, mutate, seed: int) -> list[Program]:
    rng = random.Random(seed)
    found: list[Program] = []
    while len(found) < MUTANTS:
        code = list(program.instructions)
        if mutate(code, rng) and code != list(program.instructions):
            found.append(with_code(program, code))
    return found


def refused(program: Program) -> bool:
    try:
        check_program(program)
    except ProgramError:
        return True
    return False


def outcomes(program: Program, inputs, seed: int) -> list[bytes | None]:
    """Results in many orders as bytes; None where the program gets stuck or leaves its memories."""
    results: list[bytes | None] = []
    for choose in [*ORDERS, *(at_random(seed + k) for k in range(4))]:
        try:
            made = run_in_order(program, inputs, choose)
            results.append(b"".join(made[name].tobytes() for name in sorted(made)))
        except (StuckError, IndexError, ValueError):
            results.append(None)
    return results


def test_the_program_itself_gives_one_result_in_every_order(case):
    program, inputs, expected = case
    check_program(program)
    assert len(program.instructions) > 40
    golden = b"".join(expected[name].tobytes() for name in sorted(expected))
    assert set(outcomes(program, inputs, 0)) == {golden}


@pytest.mark.parametrize("mutate", CLASSES, ids=lambda m: m.__name__)
def test_what_the_checker_passes_does_not_depend_on_the_order(case, mutate):
    program, inputs, expected = case
    seed = int(os.environ["INTLOOM_SEED"]) % 1_000_000
    golden = b"".join(expected[name].tobytes() for name in sorted(expected))
    count = dict.fromkeys(("refused", "passed, wrong alike in every order", "passed, harmless"), 0)
    for number, mutant in enumerate(mutants(program, mutate, seed)):
        if refused(mutant):
            count["refused"] += 1
            continue
        found = set(outcomes(mutant, inputs, seed))
        assert len(found) == 1, f"mutant {number} of seed {seed} passes, but its result depends on the order"
        count["passed, harmless" if found == {golden} else "passed, wrong alike in every order"] += 1
    print(f"{mutate.__name__}: {count}")
    assert count["refused"] > 0


def test_a_dropped_wait_is_seen_without_the_checker_too(case):
    """The checker refuses each; some orders give other bytes, as the first of them show: the reference detects them."""
    program, inputs, _ = case
    seen, enough = 0, 11
    for index, instruction in enumerate(program.instructions[1:-1], start=1):
        for wait in WAITS:
            if instruction[wait] and instruction.kind in (Kind.CONV, Kind.STORE, Kind.LOAD):
                code = list(program.instructions)
                code[index] = instruction.with_fields(**{wait: 0})
                mutant = with_code(program, code)
                assert refused(mutant)
                seen += seen < enough and len(set(outcomes(mutant, inputs, index))) > 1
    assert seen == enough


def test_a_wait_for_what_never_ends_gets_stuck_and_is_refused(case):
    program, inputs, _ = case
    code = list(program.instructions)
    index = next(k for k, i in enumerate(code) if i.kind is Kind.CONV)
    stores = sum(i.kind is Kind.STORE for i in code)
    code[index] = code[index].with_fields(wait_store=stores)
    with pytest.raises(StuckError):
        run_in_order(with_code(program, code), inputs, at_random(0))
    assert refused(with_code(program, code))
