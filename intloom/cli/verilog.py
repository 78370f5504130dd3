"""`intloom verilog`: the accelerator as Verilog, with C header, register description and core file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import subcommand
from intloom.files import check_folder
from intloom.flow.testbench import render_testbench
from intloom.hw.generate import write_package

_HELP = """Write the accelerator as Verilog-2005, with C header, register documentation and FuseSoC core file.

The same parameters give the same bytes.

Example: [bold]intloom verilog --preset base -o rtl[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Output folder.")]
    hardware: HardwareOptions
    split: Annotated[bool, typer.Option("--split", help="Write one file per module instead of npu.v.")] = False
    memory_macros: Annotated[
        bool,
        typer.Option("--memory-macros", help="Make large memories instances of intloom_ram, in a file of its own."),
    ] = False


@subcommand("verilog", _HELP)
def _run(
    terminal: Terminal,
    given: _Options,
) -> None:
    check_folder(given.output, "output")
    params = given.hardware.params
    with terminal.progress() as tell:
        tell("generate", 0, 1)
        files = write_package(
            params,
            given.output,
            split=given.split,
            memory_macros=given.memory_macros,
            testbench=render_testbench(params),
        )
    names = [str(file) for file in files]
    result = {"folder": str(given.output), "files": names, "fingerprint": params.fingerprint()}
    terminal.give(result, lambda: terminal.results(names))
