"""Programs of VDEPTHWISE alone: RTL and instruction simulator agree, and the forecast has the cycles of each."""

import pytest

from intloom.compiler.program.cost import instruction_cost
from intloom.hw.spec import timing
from intloom.hw.spec.isa import Kind, Unit, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Stall, stall_counter
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import NO_LAG, Step, random_program
from intloom.sim.rtl.build import Build
from tests.hw.npu.disturbed import simulator
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES

KINDS = (Kind.VDEPTHWISE, Kind.VDEPTHWISE, Kind.VDEPTHWISE, Kind.VTABLE, Kind.VADD)
WIDE = preset("base").replace(
    scratch_kib=64, weight_kib=16, cols=4, lanes=4, vector_softmax=False, vector_depthwise=True, lut_products=0,
    multiplier_bits=25,
)  # fmt: skip
"""16 rows, an array that simulates fast, and products that share multipliers."""


HARDWARE = {"nano": SHAPES["nano"], "halves": SHAPES["halves"], "wide": WIDE}
"""`halves` has accumulators narrower than the sums of VDEPTHWISE, which must not depend on them."""


def _simulator(hardware: str) -> Build:
    """That of `WIDE` is no one else's."""
    return simulator_of(random_program(1, WIDE)) if hardware == "wide" else simulator(HARDWARE[hardware])


@pytest.mark.slow
@pytest.mark.parametrize("hardware", with_nightly(HARDWARE, ("wide",)))
def test_rtl_and_instruction_simulator_agree(hardware: str, seed: int) -> None:
    for number in range(12):
        program = random_program(seed + number, HARDWARE[hardware], kinds=KINDS)
        found = compare(program, _simulator(hardware), stall_permille=(0, 100)[number % 2])
        assert not found.problem, f"seed {program.seed}: {found.problem}"


@pytest.mark.slow
@pytest.mark.parametrize("hardware", with_nightly(("halves", "wide"), ("wide",)))
@pytest.mark.parametrize(("kernel_h", "kernel_w"), [(1, 3), (3, 3), (5, 5), (3, 1), (1, 1)])
@pytest.mark.parametrize(("stride", "out_h", "out_w"), [(1, 4, 28), (1, 7, 7), (2, 4, 14), (1, 1, 1)])
def test_the_forecast_has_the_cycles_of_one_instruction(
    hardware: str, kernel_h: int, kernel_w: int, stride: int, out_h: int, out_w: int
) -> None:
    """Rows of an odd number of words, as the compiler makes them: neighbors in a column lie in different banks.

    One cycle may be added: a bias or scale waits for an input word in its bank. With the two banks of `nano`, more do.
    """
    program = random_program(1, HARDWARE[hardware])
    strides = {"stride_h": stride, "stride_w": stride}
    fields = {"a_row": 29, "in_h": 30, "in_w": 29, "iy0": -1, "ix0": -1, "b_base": 2900, "out_base": 3000}
    shape = {"kernel_h": kernel_h, "kernel_w": kernel_w, "out_h": out_h, "out_w": out_w, "out_row": 29}
    one = Step(make(Kind.VDEPTHWISE, **fields, **shape, **strides), NO_LAG)
    # The first one waits until both memories are filled.
    first = Step(one.instruction, (0, *NO_LAG[1:]))
    found = [compare(program.with_steps([first] + [one] * count), _simulator(hardware)) for count in (1, 5)]
    assert not any(f.problem for f in found), found
    # Not the cycles of the run: a longer program takes more of the port, while the memories are filled.
    in_flight = [f.counters["VEC_BUSY"] + f.counters[stall_counter(Unit.VEC, Stall.MEMORY)] for f in found]
    measured = (in_flight[1] - in_flight[0]) / 4
    cost = instruction_cost(one.instruction, HARDWARE[hardware])
    forecast = cost.cycles + timing.UNIT_START - cost.joined
    assert 0 <= measured - forecast <= 1, (measured, forecast)
