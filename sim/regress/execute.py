"""Runs one case, anywhere: makes its graph, compiles, runs all backends, compares."""

import time
import tomllib
from dataclasses import dataclass
from functools import partial
from typing import Any

from intloom.common.errors import IntloomError, SimulationError, UsageError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import disassemble
from intloom.hw.spec.params import HardwareParams, from_dict
from intloom.sim.backend import GoldenBackend, IsaBackend, RtlBackend
from intloom.sim.compare import Comparison, compare
from intloom.sim.compare.divergence import find_divergence
from intloom.sim.random_programs.compare import compare as compare_program
from intloom.sim.random_programs.compare import simulator_of
from intloom.sim.random_programs.faults import program_fault, run_with_fault
from intloom.sim.random_programs.program import random_program
from intloom.sim.random_programs.shrink import shrink
from intloom.sim.regress.case import PROGRAM, Case, CaseResult, Network, Outcome, Tools
from intloom.sim.regress.faults import fault
from intloom.sim.regress.graphs import make_graph
from intloom.sim.regress.version import project_version
from intloom.sim.result import Arrays
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions


@dataclass(frozen=True, kw_only=True)
class _Finding:
    """Outcome of a case before it is recorded."""

    message: str = ""
    """Why it failed; empty: it passed."""
    cycles: int = 0
    compared_bytes: int = 0
    instructions: int = 0


def execute(case: Case, tools: Tools) -> CaseResult:
    """Run `case`. An `IntloomError` becomes the case's outcome; it is not raised."""
    start = time.monotonic()
    try:
        hardware = from_dict(tomllib.loads(case.hardware))
        finding = _program_case(case, hardware) if case.graph == PROGRAM else _graph_case(case, hardware, tools)
        outcome = Outcome.FAIL if finding.message else Outcome.PASS
    except IntloomError as error:
        outcome, finding = Outcome.ERROR, _Finding(message=f"{type(error).__name__}: {error}")
    return CaseResult(
        suite=case.suite,
        name=case.name,
        key=case.key,
        outcome=outcome,
        seconds=time.monotonic() - start,
        message=finding.message,
        cycles=finding.cycles,
        compared_bytes=finding.compared_bytes,
        instructions=finding.instructions,
        seed=case.seed,
        reproduce=case.reproduce,
        version=project_version(),
    )


def _program_case(case: Case, hardware: HardwareParams) -> _Finding:
    """A random program on RTL and instruction simulator; a failing one is shrunk. With a fault it must end in it."""
    program = random_program(case.seed, hardware)
    simulator, count = simulator_of(program), len(program.steps)
    if case.fault:
        ended = run_with_fault(program, simulator, program_fault(case.fault, program), case.stall_permille)
        return _Finding(message=ended.problem, cycles=ended.cycles, instructions=count)
    comparison = compare_program(program, simulator, case.stall_permille)
    lines = []
    if comparison.problem:
        shrunk, failure = shrink(program, simulator, case.stall_permille)
        lines = [f"{failure.problem}; the {len(shrunk.steps)} of {count} instructions that are needed:"]
        lines += [disassemble(s.instruction) for s in shrunk.steps]
    return _Finding(
        message="\n".join(lines),
        cycles=comparison.cycles,
        compared_bytes=comparison.compared_bytes,
        instructions=count,
    )


def _graph_case(case: Case, hardware: HardwareParams, tools: Tools) -> _Finding:
    network = _network(case, tools)
    program = tools.compile(network.graph, hardware)
    if case.fault:
        return _Finding(message=_fault_case(case, program, network.inputs), instructions=len(program.instructions))
    return _equal_case(case, hardware, network, program)


def _network(case: Case, tools: Tools) -> Network:
    arguments: dict[str, Any] = dict(case.arguments)
    if case.graph != "network":
        graph, inputs = make_graph(case.graph, case.seed, arguments)
        return Network(graph, inputs, lambda _outputs: Comparison(()))
    if tools.load_network is None:
        raise UsageError(f"case {case.name!r} needs a network, but the caller gave no way to load one")
    return tools.load_network(arguments["name"], arguments["size"])


def _equal_case(case: Case, hardware: HardwareParams, network: Network, program: Program) -> _Finding:
    """The original network where there is one, golden model, instruction simulator and RTL must agree."""
    inputs = network.inputs
    golden = GoldenBackend(network.graph).run(program, inputs)
    reference = network.compare(golden.outputs)
    isa = IsaBackend(check=hardware.macs < _CHECKED_MACS).run(program, inputs)
    # Another seed than the graph's, so that stalls and data are independent.
    options = RtlOptions(memory=MemorySettings(stall_permille=case.stall_permille, seed=case.seed + 1))
    rtl = RtlBackend(options).run(program, inputs)
    against_isa = compare(golden.outputs, isa.outputs)
    against_rtl = compare(golden.outputs, rtl.outputs)
    messages = [*reference.differences]
    messages += [*(f"isa: {d}" for d in against_isa.differences), *(f"rtl: {d}" for d in against_rtl.differences)]
    # Only where the instruction simulator is right can it be the reference for each write.
    if against_rtl.differences and not against_isa.differences:
        first = find_divergence(program, inputs, options)
        messages += [first.description] if first is not None else []
    return _Finding(
        message="\n".join(messages),
        cycles=rtl.cycles,
        instructions=len(program.instructions),
        compared_bytes=reference.compared_bytes + against_isa.compared_bytes + against_rtl.compared_bytes,
    )


_CHECKED_MACS = 256
"""Below this many MACs programs are small enough to prove free of races in every case."""


def _fault_case(case: Case, program: Program, inputs: Arrays) -> str:
    """The message of a fault case: empty if the run ended with the cause of the injected fault."""
    injected = fault(case.fault)
    mutated = injected.mutate(program)
    inject = None if injected.inject is None else partial(injected.inject, mutated)
    options = RtlOptions(memory=injected.settings(mutated), watchdog=injected.watchdog)
    backend = RtlBackend(options, inject=inject)
    try:
        backend.run(mutated, inputs)
    except SimulationError as error:
        if injected.cause.name in str(error):
            return ""
        return f"fault {case.fault!r} must end with cause {injected.cause.name}, but ended with: {error}"
    return f"fault {case.fault!r} must end with cause {injected.cause.name}, but the run completed"
