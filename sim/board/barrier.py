"""A barrier of the processor for mapped devices: Python has none, so it calls two instructions in memory of its own."""

import ctypes
import mmap
import os
import platform
from collections.abc import Callable
from functools import cache

import numpy as np

from intloom.sim.board.bus import BoardError

# A barrier for all observers of the system, then a return: those of `CPU_BARRIER` in runtime/intloom_device.c.
INSTRUCTIONS = {
    "aarch64": "bf3f03d5 c0035fd6",  # dmb sy; ret
    "armv7l": "5ff07ff5 1eff2fe1",  # dmb sy; bx lr
    "riscv64": "0f00f00f 67800000",  # fence iorw, iorw; ret
    "x86_64": "0faef0 c3",  # mfence; ret
}
"""Machine code by machine, in the order of memory."""


@cache
def barrier() -> Callable[[], None]:
    """A function after which every device sees all accesses to memory before it, and none after it has been made.

    Raises
    ------
    BoardError
        The machine is unknown, or the system does not execute code of a process.
    """
    machine = platform.machine()
    if machine not in INSTRUCTIONS:
        raise BoardError(
            f"no barrier is known for {machine!r}, only for {', '.join(INSTRUCTIONS)}: use the C runtime "
            "with a barrier hook, or a transport over a network"
        )
    code = bytes.fromhex(INSTRUCTIONS[machine])
    try:
        # A file, as a library is: the kernel makes the instruction cache agree with it.
        file = os.memfd_create("intloom-barrier")
        try:
            os.write(file, code)
            page = mmap.mmap(file, len(code), prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
        finally:
            os.close(file)
    except OSError as error:
        raise BoardError(f"cannot make the processor's barrier executable: {error}") from None
    # A view keeps the page, and gives the address, which `mmap` does not tell of memory that is read only.
    view = np.frombuffer(page, np.uint8)
    call = ctypes.CFUNCTYPE(None)(view.ctypes.data)

    def run(_view: object = view) -> None:
        call()

    return run
