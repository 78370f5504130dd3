"""Bit diagrams of instructions in plain text: 32 bits per line, highest bit first."""

from intloom.hw.spec.fields import CHECK_BITS, CHECK_LSB
from intloom.hw.spec.instructions import InstructionSpec

BITS_A_LINE = 32
_CHARACTERS_A_BIT = 3
_CHECK = -1


def _owners(spec: InstructionSpec, lines: int) -> list[int | None]:
    """The field number of every bit; None above the last field, `_CHECK` for the check bits."""
    owners: list[int | None] = [n for n, f in enumerate(spec.fields) for _ in range(f.width)]
    zeros: list[int | None] = [None] * (CHECK_LSB - len(owners))
    return [*owners, *zeros, *[_CHECK] * CHECK_BITS][: lines * BITS_A_LINE]


def _runs(bits: list[int | None]) -> list[tuple[int | None, int]]:
    """Adjacent bits of the same field as (field, count), highest first."""
    runs: list[tuple[int | None, int]] = []
    for owner in reversed(bits):
        if runs and runs[-1][0] == owner:
            runs[-1] = (owner, runs[-1][1] + 1)
        else:
            runs.append((owner, 1))
    return runs


def _label(spec: InstructionSpec, owner: int | None, room: int) -> str:
    """The field's name if it fits, else its number in the table below the diagram."""
    if owner is None:
        return "0" if room < len("zero") else "zero"
    name = "check" if owner == _CHECK else spec.fields[owner].name
    return name if len(name) <= room else str(owner)


def bit_diagram(spec: InstructionSpec) -> str:
    """The diagram of one instruction, up to the line of its last field."""
    used = sum(f.width for f in spec.fields)
    lines = -(-used // BITS_A_LINE)
    owners = _owners(spec, lines)
    text = []
    for line in range(lines):
        runs = _runs(owners[line * BITS_A_LINE : (line + 1) * BITS_A_LINE])
        rooms = [(owner, width * _CHARACTERS_A_BIT - 1) for owner, width in runs]
        ruler = "+" + "+".join("-" * room for _, room in rooms) + "+"
        cells = "|" + "|".join(_label(spec, owner, room).center(room) for owner, room in rooms) + "|"
        text += [f"    {ruler}", f"{line * BITS_A_LINE:3d} {cells}"]
    return "\n".join([*text, "    +" + "-" * (BITS_A_LINE * _CHARACTERS_A_BIT - 1) + "+"]) + "\n"
