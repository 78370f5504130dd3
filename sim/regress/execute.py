"""Runs one case, anywhere: makes its graph, compiles, runs all backends, compares."""

from __future__ import annotations

import time
import tomllib
from typing import Any

from compiler.ir import IntGraph
from compiler.program.program import Program
from hw.spec.errors import IntloomError, SimulationError, UsageError
from hw.spec.params import HardwareParams, from_dict
from sim.backend import GoldenBackend, IsaBackend, RtlBackend
from sim.compare import compare
from sim.compare.divergence import find_divergence
from sim.result import Arrays, RunResult
from sim.rtl.job import MemorySettings

from .case import Case, CaseResult, Outcome, Tools
from .faults import fault
from .graphs import make_graph


def execute(case: Case, tools: Tools) -> CaseResult:
    """Run `case`. Never raises for what the case itself may do wrong; only an interrupt passes through."""
    start = time.monotonic()
    result: RunResult | None = None
    compared = 0
    try:
        hardware = from_dict(tomllib.loads(case.hardware))
        graph, inputs = _graph(case, tools)
        program = tools.compile(graph, hardware)
        if case.fault:
            outcome, message = _fault_case(case, program, inputs)
        else:
            result, compared, message = _equal_case(case, hardware, graph, program, inputs)
            outcome = Outcome.FAIL if message else Outcome.PASS
    except IntloomError as error:
        outcome, message = Outcome.ERROR, f"{type(error).__name__}: {error}"
    return CaseResult(
        suite=case.suite,
        name=case.name,
        key=case.key,
        outcome=outcome,
        seconds=time.monotonic() - start,
        message=message,
        cycles=result.cycles if result else 0,
        compared_bytes=compared,
        seed=case.seed,
        reproduce=case.reproduce,
    )


def _graph(case: Case, tools: Tools) -> tuple[IntGraph, Arrays]:
    arguments: dict[str, Any] = dict(case.arguments)
    if case.graph != "network":
        return make_graph(case.graph, case.seed, arguments)
    if tools.load_network is None:
        raise UsageError(f"case {case.name!r} needs a network, but the caller gave no way to load one")
    return tools.load_network(arguments["name"], arguments["size"])


def _equal_case(
    case: Case, hardware: HardwareParams, graph: IntGraph, program: Program, inputs: Arrays
) -> tuple[RunResult, int, str]:
    """Golden, instruction simulator and RTL must agree; gives the RTL's result, bytes compared and what differs."""
    golden = GoldenBackend(graph).run(program, inputs)
    isa = IsaBackend(check=hardware.macs < _CHECKED_MACS).run(program, inputs)
    memory = MemorySettings(stall_permille=case.stall_permille, seed=case.seed + 1)
    rtl = RtlBackend(memory=memory).run(program, inputs)
    against_isa = compare(golden.outputs, isa.outputs, got_name="isa")
    against_rtl = compare(golden.outputs, rtl.outputs)
    messages = [str(m) for c in (against_isa, against_rtl) for m in c.mismatches]
    if not against_rtl.equal and against_isa.equal:
        messages.append(str(find_divergence(program, inputs, memory=memory)))
    return rtl, against_isa.compared_bytes + against_rtl.compared_bytes, "\n".join(messages)


_CHECKED_MACS = 256
"""Below this many MACs programs are small enough to prove free of races in every case."""


def _fault_case(case: Case, program: Program, inputs: Arrays) -> tuple[Outcome, str]:
    planted = fault(case.fault)
    spoiled = planted.spoil(program)
    backend = RtlBackend(memory=planted.settings(spoiled), watchdog=planted.watchdog)
    try:
        backend.run(spoiled, inputs)
    except SimulationError as error:
        if planted.cause.name in str(error):
            return Outcome.PASS, ""
        return Outcome.FAIL, f"fault {case.fault!r} must end with cause {planted.cause.name}, but ended with: {error}"
    return Outcome.FAIL, f"fault {case.fault!r} must end with cause {planted.cause.name}, but the run ended well"
