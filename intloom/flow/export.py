"""Export of a program for systems without Python: a device image, and C sources around it."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from intloom.common.errors import EnvironmentFault
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.program.device_image import ImagePlan, ImageTensor, device_image, plan_image
from intloom.compiler.program.program import Program
from intloom.compiler.program.soundness import check_program
from intloom.files import write_text
from intloom.hw.spec.c_text import header
from intloom.hw.spec.render_c import IMAGE_HEADER, REGISTERS_HEADER, render_registers
from intloom.hw.spec.render_c_image import render_image

RUNTIME = Path(__file__).parents[1] / "runtime"
"""Folder of the C runtime's sources."""
PROGRAM_HEADER = "program.h"
PROGRAM_SOURCE = "program.c"
_ROW_BYTES = 16
_COMMENT_LENGTH = 100
_COMPILED = "-std=c99", "-Os", "-ffreestanding", "-fno-pic"


@dataclass(frozen=True)
class CodeSize:
    """Bytes of the compiled runtime."""

    compiler: str
    code: int
    """Instructions and constants."""
    data: int
    """Initialized and zeroed variables."""


def runtime_sources() -> list[Path]:
    """The runtime's C files and headers."""
    return sorted(p for p in RUNTIME.iterdir() if p.suffix in (".c", ".h"))


def runtime_headers() -> dict[str, str]:
    """Name and text of the generated headers that the runtime includes; they are the same for all hardware."""
    return {REGISTERS_HEADER: render_registers(), IMAGE_HEADER: render_image(IMAGE_HEADER)}


def _comment(text: str) -> str:
    """Text from a program file as part of a C comment: nothing in it can end the comment or the line."""
    return re.sub(r"[^\w .,:=+-]", "_", text, flags=re.ASCII)[:_COMMENT_LENGTH]


def _identifier(number: int, tensor: ImageTensor) -> str:
    name = re.sub(r"\W+", "_", tensor.buffer.name, flags=re.ASCII).strip("_").upper()
    return f"PROGRAM_{number}_{tensor.role.name}_{name[:_COMMENT_LENGTH]}"


def _tensor_rows(plan: ImagePlan) -> list[str]:
    """An enumeration of all tensors, with the row of the layout table as comment."""
    rows = []
    for number, tensor in enumerate(plan.tensors):
        b = tensor.buffer
        shape = " x ".join(map(str, b.shape[1:]))
        source = "" if tensor.source is None else f", same content as tensor {tensor.source}"
        rows.append(
            f"    {_identifier(number, tensor)} = {number}, /* region {tensor.region}: {shape}, "
            f"{b.layout}, {tensor.bytes} bytes at 0x{tensor.window_at:x} of the window, "
            f"scale {b.scale:.9g}, zero point {b.zero_point}, {'uint8' if b.unsigned else 'int8'}{source} */"
        )
    return rows


def render_program_header(programs: Sequence[Program], image: bytes) -> str:
    """The header of an exported program: sizes and the table of tensors."""
    plan = plan_image(programs)
    elements = (t.buffer.shape[1] * t.buffer.shape[2] * t.buffer.shape[3] for t in plan.tensors)
    body = [
        f"#define PROGRAM_IMAGE_BYTES {len(image)}u",
        f"#define PROGRAM_WINDOW_BYTES {plan.window_bytes}u /* Shared memory that the program needs. */",
        f"#define PROGRAM_FINGERPRINT 0x{programs[0].params.fingerprint():08x}u",
        f"#define PROGRAM_REGIONS {len(programs)}u",
        f"#define PROGRAM_LARGEST_TENSOR {max(elements, default=1)}u /* Elements. */\n",
        "/* Indices for intloom_get_tensor, with channels x rows x pixels. */",
        "enum program_tensor {",
        *_tensor_rows(plan),
        "};\n",
        "extern const uint8_t program_image[PROGRAM_IMAGE_BYTES];\n",
    ]
    return header(
        PROGRAM_HEADER, f"Program {_comment(programs[0].name)}.", body, ["<stdint.h>"], written_by="`intloom export`"
    )


def render_program_source(image: bytes) -> str:
    """The device image as a C array."""
    rows = (image[i : i + _ROW_BYTES] for i in range(0, len(image), _ROW_BYTES))
    lines = ["    " + " ".join(f"{byte}," for byte in row) for row in rows]
    head = [f'#include "{PROGRAM_HEADER}"', "", "const uint8_t program_image[PROGRAM_IMAGE_BYTES] = {"]
    return "\n".join(["/* Written by `intloom export`: do not edit. */", *head, *lines, "};", ""])


def checked_image(programs: Sequence[Program]) -> bytes:
    """The device image of programs that `check_program` accepts: a driver in C cannot check instructions.

    Raises
    ------
    ProgramError
        A program could leave its memory or hang.
    """
    for program in programs:
        check_program(program)
    return device_image(programs)


def export_c(programs: Sequence[Program], image: bytes, folder: Path) -> list[Path]:
    """Write runtime, generated headers, image and example into `folder`; returns the paths of the files."""
    texts = runtime_headers()
    texts |= {p.name: p.read_text(encoding="utf-8") for p in runtime_sources()}
    texts |= {p.name: p.read_text(encoding="utf-8") for p in sorted((RUNTIME / "example").iterdir())}
    texts |= {PROGRAM_HEADER: render_program_header(programs, image), PROGRAM_SOURCE: render_program_source(image)}
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def measure_runtime(compiler: str) -> CodeSize:
    """Compile the runtime, optimized for size, and measure its sections; `compiler` is a command with its options.

    Raises
    ------
    EnvironmentFault
        The compiler is missing or fails.
    """
    command = [compiler] if shutil.which(compiler) else compiler.split()
    if not command or shutil.which(command[0]) is None:
        raise EnvironmentFault(f"C compiler {compiler} is missing; install it or name another one with --cc")
    with temporary_folder() as folder:
        for file, text in runtime_headers().items():
            (folder / file).write_text(text, encoding="utf-8")
        sources = [str(p) for p in runtime_sources() if p.suffix == ".c"]
        _tool([*command, *_COMPILED, f"-I{folder}", f"-I{RUNTIME}", "-c", *sources], folder)
        size = _tool([command[0], "-print-prog-name=size"], folder).strip()
        rows = _tool([size, *sorted(p.name for p in folder.glob("*.o"))], folder).splitlines()[1:]
    numbers = [[int(n) for n in row.split()[:3]] for row in rows]
    return CodeSize(compiler, sum(n[0] for n in numbers), sum(n[1] + n[2] for n in numbers))


def _tool(command: Sequence[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise EnvironmentFault(f"{command[0]} cannot compile the C runtime: {detail[0]}") from None
    return done.stdout
