"""Programs of VDEPTHWISE alone: RTL and instruction simulator agree, and the forecast has the cycles of each."""

import pytest

from intloom.compiler.program.cost import instruction_cost
from intloom.hw.spec import timing
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.params import preset
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import NO_LAG, Step, random_program
from tests.sim.random_programs.extremes import NANO
from tests.support.nightly import with_nightly

KINDS = (Kind.VDEPTHWISE, Kind.VDEPTHWISE, Kind.VDEPTHWISE, Kind.VTABLE, Kind.VADD)
WIDE = preset("base").replace(
    scratch_kib=64, weight_kib=16, cols=4, lanes=4, vector_softmax=False, vector_depthwise=True, lut_products=0,
    multiplier_bits=25,
)  # fmt: skip
"""16 rows, an array that simulates fast, and products that share multipliers."""
NARROW = preset("small").replace(
    vector_depthwise=True, vector_lanes=4, match=RoundingMode.EXACT, mantissa_bits=15, acc_bits=20
)
"""Accumulators narrower than the sums of VDEPTHWISE, which must not depend on them.

In `make test` the benches of reset and start-up compare results of VDEPTHWISE on such hardware (`halves`).
"""
SHAPES = {
    "nano": NANO,
    "wide": WIDE,
    "exact": NARROW,
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", with_nightly(SHAPES, ("exact",)))
def test_rtl_and_instruction_simulator_agree(shape: str, seed: int) -> None:
    params = SHAPES[shape]
    for number in range(12):
        program = random_program(seed + number, params, kinds=KINDS)
        found = compare(program, simulator_of(program), stall_permille=(0, 100)[number % 2])
        assert not found.problem, f"seed {program.seed}: {found.problem}"


@pytest.mark.slow
@pytest.mark.parametrize(("kernel_h", "kernel_w"), [(1, 3), (3, 3), (5, 5), (3, 1), (1, 1)])
@pytest.mark.parametrize(("stride", "out_h", "out_w"), [(1, 4, 28), (1, 7, 7), (2, 4, 14), (1, 1, 1)])
def test_the_forecast_has_the_cycles_of_one_instruction(
    kernel_h: int, kernel_w: int, stride: int, out_h: int, out_w: int
) -> None:
    """Rows of an odd number of words, as the compiler makes them: neighbors in a column lie in different banks."""
    program = random_program(1, WIDE)
    strides = {"stride_h": stride, "stride_w": stride}
    fields = {"a_row": 29, "in_h": 30, "in_w": 29, "iy0": -1, "ix0": -1, "b_base": 2900, "out_base": 3000}
    shape = {"kernel_h": kernel_h, "kernel_w": kernel_w, "out_h": out_h, "out_w": out_w, "out_row": 29}
    one = Step(make(Kind.VDEPTHWISE, **fields, **shape, **strides), NO_LAG)
    # The first one waits until both memories are filled.
    first = Step(one.instruction, (0, *NO_LAG[1:]))
    found = [compare(program.with_steps([first] + [one] * count), simulator_of(program)) for count in (1, 5)]
    assert not any(f.problem for f in found), found
    measured = (found[1].cycles - found[0].cycles) / 4
    forecast = instruction_cost(one.instruction, WIDE).cycles + timing.UNIT_START
    assert abs(measured - forecast) <= 1, (measured, forecast)
