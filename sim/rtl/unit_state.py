"""The state of every unit of a stopped accelerator, as text for error messages."""

from collections.abc import Sequence

from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit, disassemble


def describe_instruction(program: Program, index: int) -> str:
    """Instruction `index`: its number, text, layer and tile."""
    if not 0 <= index < len(program.instructions):
        return f"#{index} (past the program's {len(program.instructions)} instructions)"
    source = program.provenance[index]
    where = program.layers[source.layer].name if 0 <= source.layer < len(program.layers) else "no layer"
    note = f", {source.note}" if source.note else ""
    return f"#{index} {disassemble(program.instructions[index])} [{where}, tile {source.tile}{note}]"


def _unit_line(program: Program, unit: Unit, started: int, done: Sequence[int]) -> str:
    own = [i for i, instruction in enumerate(program.instructions) if instruction.unit is unit]
    finished = done[unit]
    parts = [f"{unit.name}: {finished} of {len(own)} instructions finished, {started} started"]
    # After a fault the counters may exceed the program, so the index is checked.
    if 0 < finished <= len(own):
        parts.append(f"last finished {describe_instruction(program, own[finished - 1])}")
    if finished < len(own):
        parts.append(f"next {describe_instruction(program, own[finished])}")
        parts += _unmet_waits(program, own[finished], done)
    return "; ".join(parts)


def _unmet_waits(program: Program, index: int, done: Sequence[int]) -> list[str]:
    instruction = program.instructions[index]
    wanted = {u: instruction[f"wait_{u.name.lower()}"] for u in QUEUED_UNITS}
    return [f"which waits for {u.name} {done[u]}/{count}" for u, count in wanted.items() if done[u] < count]


def describe_state(program: Program, started: Sequence[int], done: Sequence[int]) -> str:
    """One line a unit: instructions finished and started, the last finished, the next and its unmet waits."""
    return "\n".join(f"  {_unit_line(program, u, started[u], done)}" for u in QUEUED_UNITS)
