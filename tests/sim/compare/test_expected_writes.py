"""How many words an instruction writes: as many as its accesses have; a CONV, whose port is narrower, in parts."""

import random

import pytest

from intloom.compiler.program.footprint import addresses, footprint
from intloom.hw.spec.isa import BY_KIND, Kind, Unit
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.sim.compare.expected_writes import write_count, writer_of
from intloom.sim.random_programs.instructions import InstructionMaker
from intloom.sim.random_programs.program import is_legal
from tests.support.shapes import SHAPES

COUNTED = [kind for kind in Kind if kind not in (Kind.BEGIN, Kind.END, Kind.CONV)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", COUNTED)
def test_an_instruction_writes_the_words_of_its_accesses(kind: Kind, shape: str, rng: random.Random) -> None:
    params = SHAPES[shape]
    if (needed := BY_KIND[kind].requires) and not getattr(params, needed):
        params = params.replace(**{needed: True})
    islands = [(0, 1 << 14)]
    maker = InstructionMaker(rng, params, islands)
    maker.loaded |= {Unit.VEC, Unit.MAC}
    maker.exponentials |= {*range(EXPONENTIAL_BYTES)}
    for _ in range(5):
        made = next(i for i in iter(lambda: maker.instruction(kind), None) if is_legal(i, params, islands))
        words = sum(addresses(access).size for access in footprint(made, params) if access.write)
        assert write_count(made, params) == words
        assert (writer_of(made) is not None) == (words > 0)
