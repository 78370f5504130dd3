"""The Linux driver in Debian's kernel under QEMU: its registers are the RTL's, and the RTL reads and writes the memory
of the virtual machine.
"""

import array
import os
import shutil
import socket
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intloom.compiler.program.program import Program, Role
from intloom.flow.export import checked_image, export_c
from intloom.sim.golden import run_graph
from tests.runtime.support import ROOT, RUNTIME, STRICT, small_graph, small_program
from tests.sim.board.rtl_board import RtlBoard, shown_registers

HERE = Path(__file__).parent
MEMORY_BYTES = 192 << 20
"""Of the virtual machine; a multiple of the accelerator's word."""
PAGE = 4096
_SECONDS = 900
"""The guest's whole life, on a loaded machine."""


def kernel() -> str:
    """The version of an installed kernel with its headers."""
    versions = [path.parent.name for path in sorted(Path("/lib/modules").glob("*/build"))]
    return next(version for version in versions if Path(f"/boot/vmlinuz-{version}").exists())


def module(source: Path, folder: Path, makefile: str) -> Path:
    """Build the kernel module of a source in a folder of its own; warnings are errors."""
    folder.mkdir()
    for file in (source, RUNTIME / "linux/intloom_ioctl.h", ROOT / "include/intloom_registers.h"):
        shutil.copy(file, folder)
    (folder / "Makefile").write_text(makefile + "ccflags-y += -Werror\n")
    build = ["make", "-C", f"/lib/modules/{kernel()}/build", f"M={folder}", "modules"]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / f"{source.stem}.ko"


def initial_files(program: Program, folder: Path) -> Path:
    """The guest's file system: busybox, both modules, the test's program, and what it does."""
    root = folder / "root"
    for name in ("dev", "sys", "proc", "bin"):
        (root / name).mkdir(parents=True)
    driver = RUNTIME / "linux"
    shutil.copy(module(driver / "intloom.c", folder / "driver", (driver / "Makefile").read_text()), root)
    shutil.copy(module(HERE / "board.c", folder / "board", "obj-m := board.o\n"), root)
    for name in ("busybox", "sh"):
        shutil.copy("/bin/busybox", root / "bin" / name)
    shutil.copy(HERE / "init", root / "init")
    (root / "init").chmod(0o755)
    export_c((program,), checked_image((program,)), folder / "c")
    (folder / "c/main.c").unlink()
    sources = [*(folder / "c").glob("*.c"), RUNTIME / "linux/intloom_linux.c", HERE / "guest.c"]
    includes = [f"-I{folder / 'c'}", f"-I{RUNTIME / 'linux'}"]
    command = ["gcc", *STRICT, "-O1", "-static", *includes, *map(str, sources), "-o", str(root / "guest")]
    subprocess.run(command, check=True)
    pack = "find . | cpio --quiet -o -H newc | gzip -1 > ../initial"
    subprocess.run(["sh", "-c", pack], cwd=root, check=True)
    return folder / "initial"


def send(connection: socket.socket, value: int, descriptor: int | None = None) -> None:
    """A message of ivshmem's server, with a file."""
    rights: list[Any] = []
    if descriptor is not None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    connection.sendmsg([struct.pack("<q", value)], rights)


def console_of_guest(folder: Path, board: RtlBoard, initial: Path) -> str:
    """What the guest prints: QEMU has the memory of the board, and the register file as memory of an ivshmem device."""
    registers, address = folder / "registers", folder / "s"
    event = os.eventfd(0, os.EFD_NONBLOCK)
    memory = f"memory-backend-file,id=ram,size={MEMORY_BYTES},mem-path={board.files.memory},share=on"
    command = ["qemu-system-x86_64", "-accel", "tcg", "-M", "pc,memory-backend=ram", "-m", f"{MEMORY_BYTES >> 20}M"]
    command += ["-object", memory, "-chardev", f"socket,path={address},id=server"]
    command += ["-device", "ivshmem-doorbell,vectors=1,chardev=server", "-kernel", f"/boot/vmlinuz-{kernel()}"]
    command += ["-initrd", str(initial), "-append", "console=ttyS0 panic=-1 loglevel=6"]
    command += ["-display", "none", "-serial", "stdio", "-no-reboot", "-nic", "none"]
    with (
        socket.socket(socket.AF_UNIX) as server,
        shown_registers(board, registers, lambda: os.eventfd_write(event, 1)),
        registers.open("r+b") as shared,
    ):
        shared.truncate(PAGE)
        server.bind(str(address))
        server.listen(1)
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(command, text=True, stdin=null, stdout=pipe, stderr=subprocess.STDOUT) as machine:
            try:
                connection, _ = server.accept()
                with connection:
                    for value, descriptor in ((0, None), (0, None), (-1, shared.fileno()), (0, event)):
                        send(connection, value, descriptor)
                    console: str = machine.communicate(timeout=_SECONDS)[0]
            finally:
                machine.kill()
    os.close(event)
    return console


def golden_sum(program: Program) -> str:
    """The checksum of the outputs for the guest's input."""
    graph, inputs = small_graph()
    ((name, given),) = inputs.items()
    values = (np.arange(given.size) * 7).astype(np.uint8).view(np.int8).reshape(given.shape)
    golden = run_graph(graph, {name: values}, match=program.params.match)
    total = 0
    for tensor in program.tensors:
        if tensor.role is Role.OUTPUT:
            total ^= zlib.crc32(golden[tensor.name].tobytes())
    return f"{total:08x}"


EXPECTED_MISUSE = {
    "another call": "Inappropriate ioctl for device",
    "a null pointer": "Bad address",
    "a program without a buffer": "Invalid argument",
    "a map without a buffer": "Invalid argument",
    "a buffer of nothing": "Invalid argument",
    "a buffer of 2^64 - 1": "Invalid argument",
    "a buffer beyond the limit": "Invalid argument",
    "a buffer beyond the memory": "Cannot allocate memory",
    "a buffer": "taken",
    "a second buffer": "Device or resource busy",
    "a map of more": "Invalid argument",
    "a map behind it": "Invalid argument",
    "an empty window": "Invalid argument",
    "a window behind the buffer": "Invalid argument",
    "a window across its end": "Invalid argument",
    "a window around 2^32": "Invalid argument",
    "a window between words": "Invalid argument",
    "a window between lines": "Invalid argument",
    "a reserved field": "Invalid argument",
    "a register between words": "Invalid argument",
    "a register behind the last": "Invalid argument",
    "a hole between registers": "Operation not permitted",
    "the memory base": "Operation not permitted",
    "the command register": "Operation not permitted",
    "a reset without a program": "taken",
}


@pytest.mark.evidence
@pytest.mark.needs("linux-headers-amd64")
@pytest.mark.needs("qemu-system-x86")
@pytest.mark.needs("busybox-static")
@pytest.mark.needs("cpio")
def test_the_driver_runs_programs_and_survives_misuse_kill_and_unload(tmp_path: Path) -> None:
    program, _ = small_program()
    initial = initial_files(program, tmp_path)
    good = f"OK {golden_sum(program)}"
    with RtlBoard(program, tmp_path / "board-files", 0, MEMORY_BYTES) as board:
        console = console_of_guest(tmp_path, board, initial)
    lines = [line.strip() for line in console.splitlines()]
    assert "the guest has ended" in lines, console
    assert f"first {good}" in lines, console
    told = dict(line.split(": ", 1) for line in lines if ": " in line)
    assert {what: told.get(what) for what in EXPECTED_MISUSE} == EXPECTED_MISUSE
    # The accelerator's own LIMIT confines the program; the driver resets it for the next one.
    assert told["confined"] == "ended 1, cause OUTSIDE_WINDOW"
    assert f"after the fault {good}" in lines
    assert lines.count(f"side by side {good}") == 2
    assert told["killed while running"] == "start 0, signal 9"
    assert f"after the kill {good}" in lines
    # Open files keep the module; a device that is unbound leaves them without hardware.
    assert told["rmmod"] == "can't unload module 'intloom': Resource temporarily unavailable"
    assert told["a register after it"] == told["a program after it"] == "No such device"
    assert "the device is gone" in lines
    assert f"bound again {good}" in lines and "unloaded" in lines and f"loaded again {good}" in lines
    for trouble in ("BUG", "WARNING", "Oops", "Call Trace", "general protection", "hung"):
        assert trouble not in console, console
