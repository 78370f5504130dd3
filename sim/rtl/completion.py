"""Whether an RTL run completed its program, and the error message when it did not."""

from __future__ import annotations

from collections.abc import Mapping

from intloom.common.errors import HardwareMismatchError, SimulationError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import Cause, Stall, stall_counter
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.status import Status
from intloom.sim.rtl.unit_state import describe_instruction, describe_state


def require_completed(program: Program, report: HostReport, status: Status, limit: int) -> None:
    """Raise unless the program ran to its end.

    Raises
    ------
    HardwareMismatchError
        The program was made for other hardware.
    SimulationError
        The accelerator stopped with an error, hung, broke a rule of its bus, or its counters contradict the program or
        each other; the message names the state of every unit.
    """
    if report.fingerprint != program.params.fingerprint():
        raise HardwareMismatchError(
            f"program {program.name!r} is for hardware {program.params.fingerprint():#010x}, "
            f"but the accelerator is {report.fingerprint:#010x}: compile it for these parameters"
        )
    reason = _reason(program, report, status, limit)
    if reason is not None:
        done = [report.counters[f"{u.name}_DONE"] for u in QUEUED_UNITS]
        # A bench without a trace port leaves the started counts at 0.
        started = [max(s, d) for s, d in zip(status.started, done, strict=True)]
        raise SimulationError(f"{reason}\n{describe_state(program, started, done)}")


def _reason(program: Program, report: HostReport, status: Status, limit: int) -> str | None:
    at = f"after {report.counters['CYCLES']} cycles"
    if report.ended == "violation":
        return f"the accelerator broke a rule of AXI4 {at}: {status.violation}"
    if report.ended == "timeout":
        return f"the accelerator gave no interrupt within {limit} cycles"
    if report.status["error"]:
        cause, unit = Cause(report.status["cause"]), Unit(report.status["unit"])
        where = describe_instruction(program, report.error_index)
        return f"the accelerator stopped {at} with cause {cause.name} in unit {unit.name} at instruction {where}"
    if not report.status["done"]:
        return f"the accelerator raised its interrupt {at}, but is neither done nor in error"
    return _contradiction(program, report.counters)


def _contradiction(program: Program, counters: Mapping[str, int]) -> str | None:
    """Why the counters of a completed run cannot be true, or None.

    A multiplier makes one product per cycle, and a unit is busy or stalled for one cause in a cycle.
    """
    cycles, multipliers = counters["CYCLES"], program.params.macs
    macs = sum(layer.macs for layer in program.layers)
    if macs > cycles * multipliers:
        return (
            f"counter CYCLES is {cycles}, but {macs} products take at least {-(-macs // multipliers)} cycles on "
            f"{multipliers} multipliers: array utilization is above 100 %"
        )
    for unit in QUEUED_UNITS:
        stalls = sum(counters[stall_counter(unit, stall)] for stall in Stall)
        busy = counters[f"{unit.name}_BUSY"]
        if busy + stalls > cycles:
            return f"unit {unit.name} counts {busy} busy and {stalls} stalled cycles, but CYCLES is {cycles}"
    return None
