"""Whether an RTL run completed its program, and the error message when it did not."""

from intloom.common.errors import HardwareMismatchError, SimulationError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import Cause
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.counter_checks import BenchCounts, contradictions
from intloom.sim.rtl.status import Status
from intloom.sim.rtl.unit_state import describe_instruction, describe_state

_PARITY = {Cause.SCRATCH_PARITY: "scratchpad", Cause.WEIGHT_PARITY: "weight memory"}
"""Causes of parity errors, and the memory of each."""


def require_completed(program: Program, report: HostReport, status: Status | None, limit: int) -> None:
    """Raise unless the program ran to its end; `status` is the bench's, None on a board.

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
        started = done if status is None else [max(s, d) for s, d in zip(status.started, done, strict=True)]
        raise SimulationError(f"{reason}\n{describe_state(program, started, done)}")


def _reason(program: Program, report: HostReport, status: Status | None, limit: int) -> str | None:
    at = f"after {report.counters['CYCLES']} cycles"
    if report.ended == "violation" and status is not None:
        return f"the accelerator broke a rule of AXI4 {at}: {status.violation}"
    if report.ended == "timeout":
        return f"the accelerator gave no interrupt within {limit} cycles"
    if report.status["error"]:
        cause, unit = Cause(report.status["cause"]), Unit(report.status["unit"])
        stopped = f"the accelerator stopped {at} with cause {cause.name}"
        if cause in _PARITY:
            return f"{stopped}: {_parity_error(cause, unit, report.error_index)}"
        return f"{stopped} in unit {unit.name} at instruction {describe_instruction(program, report.error_index)}"
    if not report.status["done"]:
        return f"the accelerator raised its interrupt {at}, but is neither done nor in error"
    return _contradiction(program, report, status)


def _parity_error(cause: Cause, unit: Unit, word: int) -> str:
    """What was found and what to do after a parity error; the error index is the word's address."""
    return (
        f"unit {unit.name} read word {word} of the {_PARITY[cause]}, which does not match its parity; reset the "
        "accelerator and run the program again; if the same word fails again, the memory is defective or was not "
        "written after power-up"
    )


def _contradiction(program: Program, report: HostReport, status: Status | None) -> str | None:
    """Why the counters of a completed run cannot be true, or None; a multiplier makes one product per cycle."""
    counters = report.counters
    cycles, multipliers = counters["CYCLES"], program.params.macs
    macs = program.macs
    if macs > cycles * multipliers:
        return (
            f"counter CYCLES is {cycles}, but {macs} products of the array take at least "
            f"{-(-macs // multipliers)} cycles on {multipliers} multipliers: array utilization is above 100 %"
        )
    counted = None
    if status is not None:
        cycles = report.last_cycle - report.first_cycle
        counted = BenchCounts(cycles=cycles, read_beats=status.read_beats, write_beats=status.write_beats)
    return next(contradictions(counters, program.instructions, counted), None)
