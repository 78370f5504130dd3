"""Directed programs reach the cover points for which they are made."""

from intloom.hw.spec.isa import Kind
from intloom.sim.random_programs.program import constant_area, is_legal
from tests.hw.coverage.directed import directed_programs
from tests.hw.coverage.fields import PAIR, cover_points, reached
from tests.sim.random_programs import top_bits
from tests.sim.random_programs.extremes import LONG, WIDE


def test_every_cover_point_has_a_legal_program_or_an_address_fault() -> None:
    """Values past the largest scratchpad end in an error; all others are reached by a program that ends well."""
    still_open = set(cover_points()) - set(reached(i for _, i in top_bits.wide_program()))
    for name, fault in top_bits.faulty():
        still_open -= set(reached([top_bits.flipped(fault.instruction, name, fault.bit)]))
    for params in (WIDE, LONG):
        for program in directed_programs(sorted(still_open), params, 7):
            constants = (program.constants_word, constant_area(params))
            memory = [*program.islands, constants]
            assert all(is_legal(s.instruction, params, memory) for s in program.steps)
            still_open -= set(reached(program.instructions()))
    assert not still_open


def test_a_pair_of_kinds_follows_each_other_in_one_program() -> None:
    (program,) = directed_programs([f"VMUL{PAIR}VAVG"], WIDE, 3)
    assert [s.instruction.kind for s in program.steps if s.instruction.kind is not Kind.VTABLE] == [
        Kind.VMUL,
        Kind.VAVG,
    ]
