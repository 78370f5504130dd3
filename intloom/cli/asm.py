"""`intloom asm`: assembly text to instructions."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal
from intloom.cli.options import subcommand
from intloom.common.errors import EncodingError, FileFormatError, UsageError
from intloom.compiler.program.file import load, save
from intloom.compiler.program.program import Program, Provenance
from intloom.compiler.program.soundness import check_program
from intloom.files import check_output, read_bytes, write_bytes
from intloom.hw.spec.isa import INSTRUCTION_BYTES, Instruction, assemble, encode
from intloom.hw.spec.program_check import add_check

_HELP = """Assemble text in the format of `intloom disasm` into binary instructions or into a program.

With --into, the constants and tensors of that program are kept and its instructions are replaced. The result is
checked for races, invalid addresses and waits that never end, unless --no-check is given.

Examples:

[bold]intloom asm mine.s -o mine.bin[/bold]

[bold]intloom asm changed.s --into yolov8n.loom -o changed.loom[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    output: Annotated[Path, typer.Option("-o", "--output", help="Output file.")]
    into: Annotated[
        Path | None, typer.Option(metavar="PROGRAM.loom", help="Program whose instructions are replaced.")
    ] = None
    no_check: Annotated[
        bool, typer.Option("--no-check", help="With --into: skip the check for races, addresses and waits.")
    ] = False


@subcommand("asm", _HELP)
def _run(
    terminal: Terminal,
    source: Annotated[Path, typer.Argument(metavar="TEXT", help="Assembly text.")],
    given: _Options,
) -> None:
    check_output(given.output, source)
    instructions = assemble_text(source)
    if given.into is None:
        if given.output.suffix == ".loom":
            raise UsageError(
                f"{given.output} needs constants and tensors; give --into PROGRAM.loom or another output suffix"
            )
        write_bytes(given.output, add_check(encode(i) for i in instructions))
    else:
        program = _replaced(load(given.into), instructions)
        if not given.no_check:
            check_program(program)
        save(program, given.output)
    size = len(instructions) * INSTRUCTION_BYTES
    terminal.give(
        {"path": str(given.output), "instructions": len(instructions), "bytes": size},
        lambda: terminal.say(f"{given.output}: {len(instructions)} instructions, {size} bytes"),
    )


def assemble_text(path: Path) -> list[Instruction]:
    """The instructions in a file; errors name the line."""
    try:
        lines = read_bytes(path, "assembly text").decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} must be text, not binary") from None
    instructions = []
    for number, line in enumerate(lines, start=1):
        if not line.split("#", 1)[0].strip():
            continue
        try:
            instructions.append(assemble(line))
        except EncodingError as error:
            raise EncodingError(f"{path}:{number}: {error}") from None
    if not instructions:
        raise FileFormatError(f"{path} must hold instructions, but holds none")
    return instructions


def _replaced(program: Program, instructions: list[Instruction]) -> Program:
    provenance = program.provenance
    if len(instructions) != len(program.instructions):
        # The old program has no layer for these instructions.
        provenance = tuple(Provenance(layer=-1, tile=0, note="assembled") for _ in instructions)
    if instructions == list(program.instructions):
        return program
    # Changed instructions may write other words than those that the program records.
    return replace(program, instructions=tuple(instructions), provenance=provenance, local_tensors=(), local_results=())
