"""The firmware of the simulated system: the C runtime, a program and the check of its outputs, compiled for RISC-V."""

import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import EnvironmentFault, SimulationError
from intloom.compiler.program.device_image import ImageTensor, device_image, plan_image
from intloom.compiler.program.program import Program
from intloom.files import write_bytes, write_text
from intloom.flow.export import RUNTIME, render_program_header, runtime_headers, runtime_sources
from intloom.hw.spec.c_text import header
from intloom.hw.spec.image_format import ImageRole

Int8s = Mapping[str, NDArray[np.int8]]
COMPILER = "riscv64-unknown-elf-gcc"
_PACKAGES = "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf"
_TARGET = ("-march=rv32im", "-mabi=ilp32", "--specs=picolibc.specs", "-nostartfiles")
_STYLE = ("-std=c99", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-O2", "-ffunction-sections", "-Wl,--gc-sections")
_START = RUNTIME / "soc" / "start.S"
_CHECK_HEADER = "check.h"
BOARD_HEADER = "board.h"
_SPARE_BYTES = 1 << 20
"""Of memory, for code, variables and stack."""
_LARGEST_WITH_CRC = 1 << 16
"""Bytes of an image. The core takes about 20 cycles per byte."""
_PAGE = 4096


@dataclass(frozen=True)
class Check:
    """Inputs of all regions, and what the golden model computes from them, by tensor name."""

    inputs: Int8s
    outputs: Int8s


@dataclass(frozen=True)
class Firmware:
    """What lies in memory when the core starts."""

    binary: bytes
    memory_bytes: int
    code_bytes: int
    """Instructions and constants without image and inputs."""


def build_firmware(programs: Sequence[Program], check: Check, folder: Path, *, run_again: bool = False) -> Firmware:
    """Compile the firmware in `folder`; with `run_again` it runs the program once more after all faults.

    Raises
    ------
    EnvironmentFault
        The cross compiler or its C library is missing.
    """
    image, inputs = _write_sources(programs, check, folder, run_again)
    window = plan_image(programs).window_bytes
    needed = image + inputs + window + _SPARE_BYTES
    memory = needed + -needed % _PAGE
    binary = _compile("soc", folder, {"MEMORY_BYTES": memory, "WINDOW_BYTES": window})
    return Firmware(binary, memory, len(binary) - image - inputs)


def build_board_firmware(
    programs: Sequence[Program], check: Check, folder: Path, board_header: str, symbols: Mapping[str, int]
) -> bytes:
    """Compile the firmware of a board in `folder`; `symbols` are what the linker script needs.

    Raises
    ------
    EnvironmentFault
        The cross compiler or its C library is missing.
    """
    write_text(folder / BOARD_HEADER, board_header)
    _write_sources(programs, check, folder, run_again=False)
    return _compile("board", folder, symbols)


def _write_sources(programs: Sequence[Program], check: Check, folder: Path, run_again: bool) -> tuple[int, int]:
    """Write image, inputs and headers; returns the bytes of image and inputs."""
    image, plan = device_image(programs), plan_image(programs)
    given = [_bytes_of(t, check.inputs) for t in plan.tensors if t.role is ImageRole.INPUT and t.source is None]
    write_bytes(folder / "program.bin", image)
    write_bytes(folder / "check.bin", b"".join(given))
    texts = {**runtime_headers(), "program.h": render_program_header(programs, image)}
    texts[_CHECK_HEADER] = _check_header(plan.tensors, check, run_again, len(image) <= _LARGEST_WITH_CRC)
    for name, text in texts.items():
        write_text(folder / name, text)
    return len(image), sum(map(len, given))


def _bytes_of(tensor: ImageTensor, values: Int8s) -> bytes:
    """A tensor's elements as values of the model's type."""
    value = np.ascontiguousarray(values[tensor.buffer.name]).view(np.uint8)
    return (value ^ 0x80 if tensor.buffer.unsigned else value).tobytes()


def _check_header(tensors: Sequence[ImageTensor], check: Check, run_again: bool, image_crc: bool) -> str:
    crcs = [zlib.crc32(_bytes_of(t, check.outputs)) for t in tensors if t.role is ImageRole.OUTPUT]
    body = [
        f"#define CHECK_RUN_AGAIN {int(run_again)} /* Run once more after all faults. */",
        f"#define CHECK_IMAGE_CRC {int(image_crc)} /* Compute the image's checksum. */\n",
        "/* CRC-32 of each output, in the order of the image's tensors, computed by the golden model. */",
        "static const uint32_t check_crcs[] = {",
        *(f"    0x{crc:08x}u," for crc in crcs),
        "};\n",
    ]
    return header(_CHECK_HEADER, "Check of the outputs.", body, ["<stdint.h>"], written_by="intloom.soc")


def _compile(system: str, folder: Path, symbols: Mapping[str, int]) -> bytes:
    """Compile the runtime with the sources in its folder `system`; all systems have one start-up code."""
    if shutil.which(COMPILER) is None:
        raise EnvironmentFault(f"{COMPILER} is missing; install it with: apt-get install {_PACKAGES}")
    own = RUNTIME / system
    sources = [*(p for p in runtime_sources() if p.suffix == ".c"), *sorted(own.glob("*.c")), _START]
    script = [f"-T{own / system}.ld", *(f"-Wl,--defsym={name}={value}" for name, value in symbols.items())]
    options = [*_TARGET, *_STYLE, f"-I{folder}", f"-I{RUNTIME}", f"-I{own}", f"-Wa,-I{folder}"]
    # The first program must define printf's variant: without it picolibc links the one for floats.
    options += ["-DPICOLIBC_INTEGER_PRINTF_SCANF"]
    _tool([COMPILER, *options, *map(str, sources), *script, "-lm", "-o", str(folder / "firmware.elf")])
    copy = COMPILER.replace("gcc", "objcopy")
    _tool([copy, "-O", "binary", str(folder / "firmware.elf"), str(folder / "firmware.bin")])
    return (folder / "firmware.bin").read_bytes()


def _tool(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "picolibc.specs" in done.stderr:
        raise EnvironmentFault(f"picolibc for RISC-V is missing; install it with: apt-get install {_PACKAGES}")
    if done.returncode:
        raise SimulationError(f"{command[0]} cannot build the firmware: {done.stderr.strip()[-600:]}")
