"""Firmware for RISC-V: C runtime, program, and an application that checks outputs, runs threads, or reads text."""

import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from intloom.common.errors import EnvironmentFault, SimulationError, UsageError
from intloom.compiler.program.device_image import ImageTensor, device_image, plan_image
from intloom.compiler.program.program import Program
from intloom.files import write_bytes, write_text
from intloom.flow.export import RUNTIME, render_program_header, runtime_headers, runtime_sources
from intloom.hw.soc.soc import RESET_VECTOR
from intloom.hw.spec.c_text import header
from intloom.hw.spec.image_format import ImageRole
from intloom.hw.spec.isa import Kind

Int8s = Mapping[str, NDArray[np.int8]]
COMPILER = "riscv64-unknown-elf-gcc"
_PACKAGES = "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf"
_TARGET = ("-march=rv32im", "-mabi=ilp32", "--specs=picolibc.specs", "-nostartfiles")
_STYLE = ("-std=c99", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-O2", "-ffunction-sections", "-Wl,--gc-sections")
_SOC = RUNTIME / "soc"
_START = _SOC / "start.S"
_CHECK_HEADER = "check.h"
BOARD_HEADER = "board.h"
_SPARE_BYTES = 1 << 20
"""Of memory, for code, variables and stack."""
_LARGEST_WITH_CRC = 1 << 16
"""Bytes of an image. The core takes about 20 cycles per byte."""
_PAGE = 4096
_WIDTH, _COLORS = "<I", 3
"""Of a picture in memory: the format of its width, and the bytes of a pixel."""


@dataclass(frozen=True)
class Check:
    """An image: inputs of all regions, and what the golden model computes from them, by tensor name."""

    inputs: Int8s
    outputs: Int8s


@dataclass(frozen=True)
class Frames:
    """Frames that the firmware runs, image after image: one by one in one window, then double buffered in two."""

    one_by_one: int
    streamed: int


NO_FRAMES = Frames(0, 0)


@dataclass(frozen=True)
class Firmware:
    """What lies in memory when the core starts."""

    binary: bytes
    memory_bytes: int
    code_bytes: int
    """Instructions and constants without image and inputs."""
    data_at: int = 0
    """Where data begins that is no part of the binary; at the end of the memory."""


def build_firmware(
    programs: Sequence[Program], checks: Sequence[Check], folder: Path, frames: Frames = NO_FRAMES
) -> Firmware:
    """Compile the firmware in `folder`; it checks the first image, and after all faults it runs frames.

    Raises
    ------
    EnvironmentFault
        The cross compiler or its C library is missing.
    """
    linked = _write_sources(programs, checks, folder, frames)
    window = _pages(plan_image(programs).window_bytes)
    return _for_soc(_SOC.glob("*.c"), folder, linked, 2 * window if frames.streamed else window)


def build_threads(program: Program, checks: Sequence[Check], folder: Path) -> Firmware:
    """Compile the firmware whose threads share two accelerators; both check all images on both of them.

    Raises
    ------
    EnvironmentFault
        The cross compiler or its C library is missing.
    """
    linked = _write_sources([program], checks, folder)
    window = plan_image([program]).window_bytes
    # Each thread has a window for each accelerator, at a multiple of what caches and buses need.
    sources = [_SOC / "machine.c", *(RUNTIME / "threads").glob("*.[cS]")]
    return _for_soc(sources, folder, linked, 4 * _pages(window))


def build_reader(program: Program, letters: Sequence[str], data_bytes: int, folder: Path) -> Firmware:
    """Compile the firmware that reads text: `program` is a recognizer, whose classes stand for `letters`.

    The picture is not part of it: it lies in the last `data_bytes` of the memory.

    Raises
    ------
    EnvironmentFault
        The cross compiler or its C library is missing.
    UsageError
        The program has other tensors than an input and an output.
    """
    plan = plan_image([program])
    roles = [tensor.role for tensor in plan.tensors]
    if roles != [ImageRole.INPUT, ImageRole.OUTPUT]:
        raise UsageError(f"a recognizer must have one input and one output, not {len(roles)} tensors")
    image = _write_program([program], folder)
    write_bytes(folder / "check.bin", b"")
    write_text(folder / "reader.h", _reader_header(program, letters))
    sources = [_SOC / "machine.c", *(RUNTIME / "reading").glob("*.c")]
    return _for_soc(sources, folder, image, plan.window_bytes, data_bytes)


def picture_size(height: int, width: int) -> int:
    """Bytes of a picture in memory."""
    return struct.calcsize(_WIDTH) + _COLORS * height * width


def picture_bytes(picture: Image.Image) -> bytes:
    """A picture as the reader finds it in memory: its width, then the bytes of red, green and blue, row by row."""
    return struct.pack(_WIDTH, picture.width) + picture.convert("RGB").tobytes()


def _reader_header(program: Program, letters: Sequence[str]) -> str:
    body = []
    if program.params.constant_check:
        word = next(i["dram"] for i in program.instructions if i.kind is Kind.LOAD and i["crc"]) - program.image_at
        body = [f"#define READER_FIRST_WEIGHT {word * program.params.word_bytes}u /* In the constants. */\n"]
    body += [
        "/* The letter of each class of the network, in UTF-8. */",
        "static const char *const letters[] = {",
        # Octal: no byte of a letter means anything to the compiler.
        *('    "' + "".join(f"\\{byte:03o}" for byte in letter.encode()) + '",' for letter in letters),
        "};\n",
    ]
    return header("reader.h", "What the reader knows of its network.", body, written_by="intloom.soc")


def _for_soc(own: Iterable[Path], folder: Path, linked_bytes: int, window_bytes: int, data_bytes: int = 0) -> Firmware:
    """The firmware of an application of the simulated system; image and inputs have `linked_bytes` of it."""
    data_at = _pages(linked_bytes + window_bytes + _SPARE_BYTES)
    symbols = {"MEMORY_BYTES": data_at, "WINDOW_BYTES": window_bytes, "picture_start": RESET_VECTOR + data_at}
    binary = _compile(own, _SOC / "soc.ld", folder, symbols)
    return Firmware(binary, data_at + _pages(data_bytes), len(binary) - linked_bytes, data_at)


def _pages(size: int) -> int:
    """Bytes of the pages that hold `size` bytes."""
    return size + -size % _PAGE


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
    _write_sources(programs, [check], folder)
    return _compile((RUNTIME / "board").glob("*.c"), RUNTIME / "board" / "board.ld", folder, symbols)


def _write_sources(
    programs: Sequence[Program], checks: Sequence[Check], folder: Path, frames: Frames = NO_FRAMES
) -> int:
    """Write program, inputs and headers; returns the bytes of program and inputs."""
    program, tensors = _write_program(programs, folder), plan_image(programs).tensors
    read = [t for t in tensors if t.role is ImageRole.INPUT and t.source is None]
    given = b"".join(_bytes_of(t, check.inputs) for check in checks for t in read)
    write_bytes(folder / "check.bin", given)
    body = [
        f"#define CHECK_IMAGES {len(checks)}u",
        f"#define CHECK_INPUT_BYTES {len(given) // len(checks)}u /* Of an image. */",
        f"#define CHECK_FRAMES {frames.one_by_one}u /* After all faults, in one window. */",
        f"#define CHECK_STREAM {frames.streamed}u /* Then, double buffered in two windows. */",
        f"#define CHECK_PROGRAM_CRC {int(program <= _LARGEST_WITH_CRC)} /* Compute the device image's checksum. */\n",
        "/* CRC-32 of each output, in the order of the device image's tensors, computed by the golden model. */",
        *_crc_table([t for t in tensors if t.role is ImageRole.OUTPUT], checks),
    ]
    write_text(
        folder / _CHECK_HEADER,
        header(_CHECK_HEADER, "Check of the outputs.", body, ["<stdint.h>"], written_by="intloom.soc"),
    )
    return program + len(given)


def _crc_table(outputs: Sequence[ImageTensor], checks: Sequence[Check]) -> list[str]:
    lines = [f"static const uint32_t check_crcs[CHECK_IMAGES][{len(outputs)}] = {{"]
    for check in checks:
        crcs = [f"0x{zlib.crc32(_bytes_of(t, check.outputs)):08x}u" for t in outputs]
        lines.append(f"    {{{', '.join(crcs)}}},")
    return [*lines, "};\n"]


def _write_program(programs: Sequence[Program], folder: Path) -> int:
    """Write the image and the headers of runtime and program; returns the bytes of the image."""
    image = device_image(programs)
    write_bytes(folder / "program.bin", image)
    for name, text in {**runtime_headers(), "program.h": render_program_header(programs, image)}.items():
        write_text(folder / name, text)
    return len(image)


def _bytes_of(tensor: ImageTensor, values: Int8s) -> bytes:
    """A tensor's elements as values of the model's type."""
    value = np.ascontiguousarray(values[tensor.buffer.name]).view(np.uint8)
    return (value ^ 0x80 if tensor.buffer.unsigned else value).tobytes()


def _compile(own: Iterable[Path], layout: Path, folder: Path, symbols: Mapping[str, int]) -> bytes:
    """Compile the runtime with an application's `own` sources; all systems have one start-up code."""
    if shutil.which(COMPILER) is None:
        raise EnvironmentFault(f"{COMPILER} is missing; install it with: apt-get install {_PACKAGES}")
    sources = [*(p for p in runtime_sources() if p.suffix == ".c"), *sorted(own), _START]
    script = [f"-T{layout}", *(f"-Wl,--defsym={name}={value}" for name, value in symbols.items())]
    options = [*_TARGET, *_STYLE, f"-I{folder}", f"-I{RUNTIME}", f"-I{layout.parent}", f"-Wa,-I{folder}"]
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
