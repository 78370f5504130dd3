"""`intloom disasm`: a program as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.program.file import load_regions
from compiler.program.program import Program
from hw.spec.isa import disassemble
from intloom.files import write_text

from .options import terminal_of

_HELP = """Print a program's instructions, each with its number, ONNX node and tile as a comment.

`intloom asm` reads the text back to identical bytes.

Example: [bold]intloom disasm yolov8n.loom -o yolov8n.s[/bold]
"""


def register(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command("disasm", help=_HELP)(_run)


def _run(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.loom", help="A program.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Text file; else standard output.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without comments.")] = False,
) -> None:
    programs = load_regions(program)
    text = "".join(_heading(p, plain) + listing(p, plain=plain) for p in programs)
    if output is None:
        terminal_of(context).out.file.write(text)
    else:
        write_text(output, text)


def _heading(program: Program, plain: bool) -> str:
    """Tells the regions of a model apart; the program of a model that has only one needs no heading."""
    return "" if plain or program.regions == 1 else f"# region {program.region} of {program.regions}: {program.name}\n"


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
