"""`intloom version`: versions of Intloom and of the libraries that affect results."""

from importlib.metadata import version

from intloom.cli.console import Terminal
from intloom.cli.options import subcommand
from intloom.hw.spec.isa import ISA_VERSION
from intloom.hw.spec.regs import VERSION as REGISTER_MAP_VERSION

_PARTS = ("intloom", "amaranth", "cocotb", "onnx", "onnxruntime", "onnxslim", "numpy")


@subcommand("version", "Print versions.\n\nExample: [bold]intloom version --json[/bold]")
def _run(terminal: Terminal) -> None:
    versions = {part: version(part) for part in _PARTS}
    lines = [f"{part} {number}" for part, number in versions.items()]
    lines.append(f"instruction set {ISA_VERSION}, register map {REGISTER_MAP_VERSION}")
    values = {**versions, "isa": ISA_VERSION, "registers": REGISTER_MAP_VERSION}
    terminal.give(values, lambda: terminal.results(lines))
