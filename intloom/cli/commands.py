"""The list of subcommands."""

from __future__ import annotations

import importlib

import typer

_COMMANDS = (
    "zoo",
    "preprocess",
    "cache",
    "quantize",
    "inspect",
    "compile",
    "disasm",
    "asm",
    "run",
    "report",
    "verilog",
    "version",
    "doctor",
)
_EPILOG = """
From a network to a checked RTL run:

    intloom zoo build yolov8n --imgsz 64 -o yolov8n.onnx

    intloom quantize yolov8n.onnx -o yolov8n.q.onnx

    intloom compile yolov8n.q.onnx --preset small -o yolov8n.loom

    intloom run yolov8n.loom --backend rtl --check -o out/run

    intloom report out/run

-v and -q say more and less; -vv shows tracebacks. Exit codes: 0 all right, 1 results differ, 2 usage, 3 bad file,
4 unsupported model, 5 bad parameters, 6 tool missing, 7 other hardware, 8 simulation failed, 9 disk, 130 interrupted.
"""


def build_app() -> typer.Typer:
    """The application with all subcommands."""
    app = typer.Typer(
        name="intloom",
        help="From a quantised ONNX network to a Verilog accelerator, its program, and the proof that they agree.",
        epilog=_EPILOG,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in _COMMANDS:
        importlib.import_module(f"intloom.cli.{name}").register(app)
    return app
