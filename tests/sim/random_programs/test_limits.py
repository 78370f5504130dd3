"""Loop counts that need the highest bit of their fields, on RTL and instruction simulator."""

from __future__ import annotations

import pytest

from intloom.hw.spec.isa import BY_KIND, Instruction, Kind, make
from intloom.hw.spec.params import preset
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import NO_LAG, Step, random_program

NANO = preset("nano")
LONGEST = {
    "out_h": (Kind.VCOPY, Kind.VADD, Kind.VMUL),
    "blocks": (Kind.VCOPY, Kind.VADD, Kind.VMUL),
    "n0": (Kind.LOAD,),
    "n1": (Kind.LOAD, Kind.STORE),
    "n2": (Kind.LOAD, Kind.STORE),
    "in_blocks": (Kind.CONV,),
    "out_blocks": (Kind.CONV,),
}
"""Loop counts that a program on nano can take to their limit; others need more scratchpad words than it has."""
COPIED = {"byte_count": NANO.word_bytes, "a_base": 7, "out_base": 900}
AFFINE = {"m1": 3, "m2": 3, "shift": 2, "b_base": 9, "a_base": 7, "out_base": 900}
FIELDS = {
    Kind.VCOPY: COPIED,
    Kind.VADD: AFFINE,
    Kind.VMUL: AFFINE,
    # The weight memory is a ring, so a run may be longer than it.
    Kind.LOAD: {"target": 1, "local": 3},
    Kind.STORE: {"local": 5},
    Kind.CONV: {"in_base": 1, "zp_in": 3, "out_base": 1000, "out_plane": 1, "weights": 77},
}


def _longest(kind: Kind, name: str, memory: int) -> Instruction:
    fields = {**FIELDS[kind], **({"dram": memory} if kind in (Kind.LOAD, Kind.STORE) else {})}
    return make(kind, **fields, **{name: BY_KIND[kind].field(name).maximum})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in LONGEST.items() for kind in kinds])
def test_a_loop_runs_to_its_limit(name: str, kind: Kind) -> None:
    frame = random_program(1, NANO)
    island = frame.islands[0][0]
    if name == "n0":
        # Behind the base there is room for the whole run; what was not written is zero.
        island = 0 if frame.program_word > 1 << 20 else frame.program_word + 4096
    program = frame.with_steps([Step(_longest(kind, name, island), NO_LAG)])
    found = compare(program, simulator_of(program))
    assert not found.problem
    assert found.cycles > BY_KIND[kind].field(name).maximum
