"""Runs of compiled programs against the golden model."""

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import HardwareParams
from intloom.sim.backend import Backend, IsaBackend
from intloom.sim.compare import compare
from intloom.sim.golden import run_graph
from intloom.sim.result import Arrays, RunResult

CHECKED = IsaBackend(check=True)
"""The instruction simulator with checks of every access."""


def assert_golden(graph: IntGraph, program: Program, inputs: Arrays, backend: Backend = CHECKED) -> RunResult:
    """Run the program of `graph`; its outputs equal those of the golden model."""
    result = backend.run(program, inputs)
    compare(run_graph(graph, inputs, match=program.params.match), result.outputs).require_equal()
    return result


def golden_program(graph: IntGraph, inputs: Arrays, params: HardwareParams, effort: int = 1) -> Program:
    """The program of `graph`, sound and equal to the golden model."""
    program = compile_graph(graph, params, effort=effort)
    check_program(program)
    assert_golden(graph, program, inputs)
    return program
