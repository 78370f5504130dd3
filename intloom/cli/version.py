"""`intloom version`: versions of Intloom and of the libraries that affect results."""

from importlib.metadata import version

import typer

from intloom.cli.options import AsJson, subcommand, terminal_of
from intloom.hw.spec.isa import ISA_VERSION
from intloom.hw.spec.regs import VERSION as REGISTER_MAP_VERSION

_PARTS = ("intloom", "amaranth", "cocotb", "onnx", "onnxruntime", "onnxslim", "numpy")


@subcommand("version", "Print versions.\n\nExample: [bold]intloom version --json[/bold]")
def _run(context: typer.Context, as_json: AsJson = False) -> None:
    terminal = terminal_of(context)
    versions = {part: version(part) for part in _PARTS}
    if as_json:
        terminal.json({**versions, "isa": ISA_VERSION, "registers": REGISTER_MAP_VERSION})
        return
    for part, number in versions.items():
        terminal.result(f"{part} {number}")
    terminal.result(f"instruction set {ISA_VERSION}, register map {REGISTER_MAP_VERSION}")
