"""List of subcommands."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from intloom.cli.options import SUBCOMMANDS

COMMANDS: Mapping[str, str] = {
    "demo": "Read a photograph of text with the accelerator in RTL, with a report.",
    "zoo": "List and build float models of published networks.",
    "preprocess": "Fold constants and batch normalization, simplify the graph, infer shapes.",
    "cache": "List and clear the cache of preprocessed models, Verilog, simulators and results.",
    "quantize": "Quantize a float model to 8 bits.",
    "inspect": "Show where every node of a model runs, and why.",
    "compile": "Compile a quantized model into a program for the accelerator.",
    "explore": "Choose an accelerator: forecast, area and energy of many configurations.",
    "area": "Estimate the cells of an accelerator's components.",
    "export": "Write a program as device image or C sources, for systems without Python.",
    "disasm": "Print a program's instructions.",
    "asm": "Assemble text into instructions or into a program.",
    "run": "Run a program on the golden model, the instruction simulator or the RTL.",
    "evaluate": "Measure accuracy: float model, quantized model and accelerator side by side.",
    "regress": "Run a suite of checked simulations.",
    "bench": "Measure simulation speed and the error of predicted cycles.",
    "report": "Write a self-contained HTML page of a run.",
    "compare": "Compare two runs: cycles, memory traffic and differences of every layer.",
    "compare-vela": "Compare a TFLite file with Vela's estimates for Arm's Ethos-U.",
    "verilog": "Write the accelerator as Verilog.",
    "doctor": "Check the tools that simulation and synthesis need.",
    "version": "Print versions.",
}
"""Name and summary of each subcommand; the module of a command is imported only when it is called."""
_COMPLETION_VARIABLE = "_INTLOOM_COMPLETE"
_EPILOG = """
Example, from a network to a checked RTL run:

    intloom zoo build yolov8n --imgsz 64 -o yolov8n.onnx

    intloom quantize yolov8n.onnx -o yolov8n.q.onnx

    intloom compile yolov8n.q.onnx --preset small -o yolov8n.loom

    intloom run yolov8n.loom --backend rtl --check -o out/run

    intloom report out/run

-v prints more, -q prints less, -vv prints tracebacks. Exit codes: 0 success, 1 results differ, 2 usage, 3 bad file,
4 unsupported model, 5 bad parameters, 6 tool missing, 7 other hardware, 8 simulation failed, 9 disk, 130 interrupted.
"""


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"intloom {version('intloom')}\n")
        raise typer.Exit


def build_app(words: Sequence[str]) -> typer.Typer:
    """The application for a command line: the subcommand in `words`, and name and summary of the others.

    Importing all subcommands takes seconds, because they import simulator, compiler and onnxruntime.
    """
    app = typer.Typer(
        name="intloom",
        help="Int8 accelerator for neural networks: Verilog generator, ONNX compiler and checked co-simulation.",
        epilog=flow(_EPILOG),
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    if _COMPLETION_VARIABLE in os.environ:
        words = os.environ.get("COMP_WORDS", "").split()[1:]
    chosen = next((w for w in words if not w.startswith("-")), None)
    for name, text in COMMANDS.items():
        if name == chosen:
            add_subcommand(app, name)
        else:
            app.command(name, help=text)(_only_for_help)
    _reflow(app)
    return app


def add_subcommand(app: typer.Typer, name: str) -> None:
    """Import the module of a subcommand and add its function, or the group of its functions."""
    importlib.import_module(f"intloom.cli.{name.replace('-', '_')}")
    if name in SUBCOMMANDS:
        text, command = SUBCOMMANDS[name]
        app.command(name, help=text)(command)
        return
    group = typer.Typer(help=COMMANDS[name])
    for words, (text, command) in SUBCOMMANDS.items():
        if words.startswith(f"{name} "):
            group.command(words.removeprefix(f"{name} "), help=text)(command)
    app.add_typer(group, name=name)


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options of the program itself."""


def _reflow(app: typer.Typer) -> None:
    """Join the lines of help texts, so that the terminal wraps them."""
    for command in app.registered_commands:
        command.help = flow(command.help or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _reflow(group.typer_instance)


def flow(text: str) -> str:
    """The text with each paragraph on one line."""
    return "\n\n".join(" ".join(p.split("\n")) if not p.startswith(" ") else p for p in text.strip().split("\n\n"))


def _only_for_help() -> None:
    """Placeholder for a command that was not called."""
