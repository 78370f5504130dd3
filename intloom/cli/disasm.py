"""`intloom disasm`: program to assembly text."""

from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.console import Terminal
from intloom.cli.options import subcommand
from intloom.compiler.program.file import load_regions
from intloom.compiler.program.program import Program
from intloom.files import check_output, write_text
from intloom.hw.spec.isa import disassemble

_HELP = """Print the instructions of a program, with number, layer and tile as comments.

`intloom asm` assembles the text to identical bytes.

Example: [bold]intloom disasm yolov8n.loom -o yolov8n.s[/bold]
"""


@subcommand("disasm", _HELP)
def _run(
    terminal: Terminal,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.loom", help="A program.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Output file. Default: standard output.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Omit comments.")] = False,
) -> None:
    if output is not None:
        check_output(output, program)
    programs = load_regions(program)
    if terminal.as_json:
        terminal.json([row for p in programs for row in rows(p)])
        return
    text = "".join(_heading(p, plain) + listing(p, plain=plain) for p in programs)
    if output is None:
        terminal.out.file.write(text)
    else:
        write_text(output, text)
        terminal.say(f"{output}: {sum(len(p.instructions) for p in programs):,} instructions")


def _heading(program: Program, plain: bool) -> str:
    """Heading of a region; empty for a model with one region."""
    return "" if plain or program.regions == 1 else f"# region {program.region} of {program.regions}: {program.name}\n"


def rows(program: Program) -> list[dict[str, Any]]:
    """Every instruction with its number, layer and tile, as plain values."""
    layers = program.layers
    return [
        {
            "region": program.region,
            "number": number,
            "unit": instruction.unit.name.lower(),
            "kind": instruction.kind.name,
            "layer": layers[source.layer].name if 0 <= source.layer < len(layers) else None,
            "tile": source.tile,
            "note": source.note,
            "text": disassemble(instruction),
        }
        for number, (instruction, source) in enumerate(zip(program.instructions, program.provenance, strict=True))
    ]


def listing(program: Program, *, plain: bool = False) -> str:
    """The assembly text of a whole program."""
    lines = []
    for number, (instruction, source) in enumerate(zip(program.instructions, program.provenance, strict=True)):
        line = disassemble(instruction)
        if not plain:
            layer = program.layers[source.layer].name if 0 <= source.layer < len(program.layers) else "program"
            note = f", {source.note}" if source.note else ""
            line = f"{line}  # {number}: {layer}, tile {source.tile}{note}"
        lines.append(line)
    return "\n".join(lines) + "\n"
