"""The first difference of a run, from its comparisons."""

from collections.abc import Sequence

from intloom.compiler.program.memory import paired_name
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import disassemble
from intloom.sim.checks import GOLDEN, Check, FirstDivergence


def first_difference(program: Program, checks: Sequence[Check]) -> FirstDivergence | None:
    """The difference in the earliest layer, first against the golden model; `program` contains all regions."""
    order = {layer.name: index for index, layer in enumerate(program.layers)}
    wrong = [c for c in checks if c.mismatches]
    if not wrong:
        return None
    first = min(wrong, key=lambda c: (c.against != GOLDEN, order.get(c.layer, len(order))))
    index = order.get(first.layer)
    instruction = _last_writer(program, first.tensor)
    return FirstDivergence(
        against=first.against,
        layer=first.layer,
        layer_index=index,
        node="" if index is None else ", ".join(program.layers[index].origin),
        tensor=first.tensor,
        coordinate=first.coordinate,
        expected=first.expected,
        got=first.got,
        instruction=instruction,
        text="" if instruction is None else disassemble(program.instructions[instruction]),
    )


def _last_writer(program: Program, tensor: str) -> int | None:
    """The instruction that completes a tensor; unknown for combined programs, whose instructions are renumbered."""
    if program.regions > 1:
        return None
    names = (tensor, paired_name(tensor))
    return next((t.first_instruction for t in program.tensors if t.name in names), None)
