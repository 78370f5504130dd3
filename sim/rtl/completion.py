"""Decides whether a finished RTL run was a good one, and says in full why not."""

from __future__ import annotations

from intloom.common.errors import HardwareMismatchError, SimulationError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import Cause
from intloom.sim.rtl.bench import RawResult
from intloom.sim.rtl.unit_state import describe_instruction, describe_state


def require_completed(program: Program, raw: RawResult, limit: int) -> None:
    """Raise unless the program ran to its end.

    Raises
    ------
    HardwareMismatchError
        The program was made for other hardware.
    SimulationError
        The accelerator stopped with an error, hung, or broke a rule of its bus; the message
        holds the state of every unit.
    """
    if raw.fingerprint != program.params.fingerprint():
        raise HardwareMismatchError(
            f"program {program.name!r} is for hardware {program.params.fingerprint():#010x}, "
            f"but the accelerator is {raw.fingerprint:#010x}: compile it for these parameters"
        )
    reason = _reason(program, raw, limit)
    if reason is not None:
        done = [raw.counters[f"{u.name}_DONE"] for u in QUEUED_UNITS]
        started = [max(s, d) for s, d in zip(raw.progress.started, done, strict=True)]
        raise SimulationError(f"{reason}\n{describe_state(program, started, done)}")


def _reason(program: Program, raw: RawResult, limit: int) -> str | None:
    at = f"after {raw.counters['CYCLES']} cycles"
    if raw.ended == "violation":
        return f"the accelerator broke a rule of AXI4 {at}: {raw.progress.violation}"
    if raw.ended == "timeout":
        return f"the accelerator gave no interrupt within {limit} cycles"
    if raw.status["error"]:
        cause, unit = Cause(raw.status["cause"]), Unit(raw.status["unit"])
        where = describe_instruction(program, raw.error_index)
        return f"the accelerator stopped {at} with cause {cause.name} in unit {unit.name} at instruction {where}"
    if not raw.status["done"]:
        return f"the accelerator raised its interrupt {at}, but is neither done nor in error"
    return None
