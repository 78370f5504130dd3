"""The accelerator with gated clocks and with clocks that always run: the same outputs in every cycle."""

from pathlib import Path

import pytest

from intloom.hw.clock_gate import GATE_MODULE
from intloom.sim.random_programs.compare import compare
from intloom.sim.random_programs.program import random_program
from intloom.sim.rtl.bare import build_bare
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.disturbed import Design, run
from tests.hw.npu.lockstep import DIFFERENCE, lockstep
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES

GATED = ("load", "store", "vec", "fetch", "dispatch", "epilogue", "loop_setup", "correction")
_ROUNDS = 30
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


def side_by_side(verilog: str) -> str:
    """Two accelerators, of which the first one's gates can be made late."""
    for number, component in enumerate(GATED):
        gate = f"  {GATE_MODULE} {component}_gate "
        assert verilog.count(gate) == 1 or component == "correction"
        verilog = verilog.replace(gate, f"  late_gate #(.NUMBER({number})) {component}_gate ")
    assert f"  {GATE_MODULE} " not in verilog, "a gate is missing here"
    return lockstep(verilog) + _LATE


@pytest.mark.slow
@pytest.mark.parametrize("shape", with_nightly(("nano", "whole", "halves"), ("whole", "halves")))
def test_gated_clocks_change_no_output(shape: str, tmp_path: Path, seed: int) -> None:
    """Programs with all units at work, with faults, and stopped at any moment."""
    run(Design(SHAPES[shape], side_by_side), tmp_path, seed, _ROUNDS)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("shape", ["whole", "halves"])
def test_programs_of_every_instruction_change_no_output(shape: str, seed: int) -> None:
    simulator = build_bare(side_by_side(verilog_of(SHAPES[shape])), optimize="-O1")
    for number in range(3):
        program = random_program(seed + number, SHAPES[shape])
        found = compare(program, simulator, stall_permille=(0, 100)[number % 2], taps=False)
        assert not found.problem, f"seed {program.seed}: {found.problem}"


@pytest.mark.slow
@pytest.mark.parametrize("component", GATED)
def test_a_clock_that_wakes_a_cycle_late_is_found(component: str, tmp_path: Path, seed: int) -> None:
    with pytest.raises(AssertionError, match=DIFFERENCE):
        run(Design(SHAPES["nano"], side_by_side), tmp_path, seed, _ROUNDS, f"+late={GATED.index(component)}")
