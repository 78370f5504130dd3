"""The accelerator with gated clocks and with clocks that always run: the same outputs in every cycle."""

from functools import cache
from pathlib import Path

import pytest

from intloom.hw.clock_gate import GATE_MODULE
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.lockstep import DIFFERENCE, lockstep
from tests.hw.npu.simulate import run_cocotb
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES

GATED = ("load", "store", "vec", "fetch", "dispatch", "epilogue", "loop_setup", "correction")
LATE_AT_NIGHT = ("store", "vec", "fetch", "epilogue", "loop_setup")
"""Components whose gate only the nightly run makes late."""
NIGHTLY = (("nano", "units"), ("whole", "stops"), ("halves", "stops"))
"""Shapes with their benches; programs that are stopped consist of all instructions too."""
_ROUNDS = 10
_LATE = f"""
module late_gate(input clk, input enable, output gated_clk);
  parameter NUMBER = 0;
  reg was_enabled;
  integer late;
  initial if (!$value$plusargs("late=%d", late)) late = -1;
  always @(posedge clk) was_enabled <= enable;
  {GATE_MODULE} gate(.clk(clk), .enable(enable & (was_enabled | late != NUMBER)), .gated_clk(gated_clk));
endmodule
"""
"""A gate that, on demand, misses the first edge of each wake-up."""


@cache
def side_by_side(shape: str) -> str:
    """Two accelerators, of which the first one's gates can be made late."""
    text = verilog_of(SHAPES[shape])
    for number, component in enumerate(GATED):
        gate = f"  {GATE_MODULE} {component}_gate "
        assert text.count(gate) == 1 or component == "correction"
        text = text.replace(gate, f"  late_gate #(.NUMBER({number})) {component}_gate ")
    assert f"  {GATE_MODULE} " not in text, "a gate is missing here"
    return lockstep(text) + _LATE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "bench"),
    [
        *(("nano", bench) for bench in ("faults", "stops")),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in NIGHTLY),
    ],
)
def test_gated_clocks_change_no_output(shape: str, bench: str, tmp_path: Path, seed: int) -> None:
    """Faults, all instructions, and programs stopped at any moment."""
    run_cocotb(SHAPES[shape], f"tests.hw.npu.bench_{bench}", tmp_path, seed, verilog=side_by_side(shape))


@pytest.mark.slow
@pytest.mark.parametrize("component", with_nightly(GATED, LATE_AT_NIGHT))
def test_a_clock_that_wakes_a_cycle_late_is_found(component: str, tmp_path: Path, seed: int) -> None:
    """A program of few convolutions may not need a component at its first edge, so several are tried."""
    late = f"+late={GATED.index(component)}"

    def rounds() -> None:
        for number in range(_ROUNDS):
            folder = tmp_path / str(number)
            folder.mkdir()
            verilog = side_by_side("nano")
            run_cocotb(SHAPES["nano"], "tests.hw.npu.bench_units", folder, seed + number, late, verilog=verilog)

    with pytest.raises(pytest.fail.Exception, match=DIFFERENCE):
        rounds()
