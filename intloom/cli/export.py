"""`intloom export`: program to device image and C sources."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.console import Terminal
from intloom.cli.options import subcommand
from intloom.common.errors import UsageError
from intloom.compiler.program.device_image import plan_image
from intloom.compiler.program.file import load_regions
from intloom.files import check_folder, check_output, write_bytes
from intloom.flow.export import checked_image, export_c, measure_runtime

_COMPILER = "cc"
_HELP = """Write a program for systems without Python.

--bin writes the device image: one file with instructions, constants and tensor tables. --c writes the same image as C
source, with the C runtime and an example. The output states the sizes of code and data.

Examples:

[bold]intloom export yolov8n.loom --c firmware[/bold]

[bold]intloom export yolov8n.loom --bin yolov8n.bin --cc "riscv64-unknown-elf-gcc --specs=picolibc.specs"[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    c_folder: Annotated[
        Path | None, typer.Option("--c", metavar="DIR", help="Output folder for C sources, headers and an example.")
    ] = None
    binary: Annotated[Path | None, typer.Option("--bin", metavar="FILE", help="Output file for the device image.")] = (
        None
    )
    compiler: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="COMPILER",
            help=f"C compiler, with options, to measure the code size. Default: {_COMPILER}.",
        ),
    ] = None


@subcommand("export", _HELP)
def _run(
    terminal: Terminal,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.loom", help="A program.")],
    given: _Options,
) -> None:
    if given.c_folder is None and given.binary is None:
        raise UsageError("name an output: --c DIR for C sources, --bin FILE for the device image")
    if given.c_folder is not None:
        check_folder(given.c_folder, "--c")
    if given.binary is not None:
        check_output(given.binary, program)
    programs = load_regions(program)
    image = checked_image(programs)
    files = export_c(programs, image, given.c_folder) if given.c_folder is not None else []
    if given.binary is not None:
        write_bytes(given.binary, image)
        files.append(given.binary)
    plan = plan_image(programs)
    sizes: dict[str, Any] = {
        "image_bytes": len(image),
        "window_bytes": plan.window_bytes,
        "regions": len(programs),
        "tensors": len(plan.tensors),
        **_code_size(given.compiler),
    }
    names = [str(file) for file in files]
    terminal.give({"files": names, **sizes}, lambda: terminal.results(names))
    if not terminal.as_json:
        terminal.say(_summary(sizes))


def _code_size(compiler: str | None) -> dict[str, Any]:
    """Sizes of the compiled runtime; nothing where only the default compiler is missing."""
    if compiler is None and shutil.which(_COMPILER) is None:
        return {}
    size = measure_runtime(compiler or _COMPILER)
    return {"compiler": size.compiler, "code_bytes": size.code, "static_bytes": size.data}


def _summary(sizes: Mapping[str, Any]) -> str:
    text = f"image {sizes['image_bytes']:,} bytes, shared memory {sizes['window_bytes']:,} bytes, "
    if "compiler" not in sizes:
        return f"{text}code size not measured: C compiler {_COMPILER} is missing"
    code, data = sizes["code_bytes"], sizes["static_bytes"]
    return f"{text}runtime {code:,} bytes of code and {data:,} bytes of data with {sizes['compiler']} -Os"
