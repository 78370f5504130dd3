"""Boards with PYNQ: registers through an overlay's IP object, memory from `pynq.allocate`."""

import importlib
from typing import Any

import numpy as np

from intloom.common.errors import EnvironmentFault, UsageError
from intloom.hw.spec.regs import ADDRESS_BITS
from intloom.sim.board.bus import WORD_BYTES, BoardError


def open_overlay(bitstream: str, ip: str, size: int) -> tuple[Any, Any]:
    """Load a bitstream; returns the object of the accelerator in it, and a buffer that it can reach."""
    try:
        pynq = importlib.import_module("pynq")
    except ImportError as error:
        raise EnvironmentFault(f"pynq cannot be imported ({error}); run on a board with PYNQ") from None
    overlay = pynq.Overlay(bitstream)
    device = getattr(overlay, ip, None)
    if device is None:
        raise UsageError(f"{bitstream} has no IP {ip!r}; name it with ip=, as in the block design")
    return device, pynq.allocate(shape=(size,), dtype=np.uint8)


class PynqBus:
    """Registers from address 0 on, and a buffer at its physical address.

    Parameters
    ----------
    device
        The IP object: has `read(offset)` and `write(offset, value)`.
    buffer
        What `pynq.allocate` returned: bytes, `device_address`, `flush` and `invalidate`.
    """

    def __init__(self, device: Any, buffer: Any) -> None:
        self._device = device
        self._buffer = buffer
        self.memory_base = int(buffer.device_address)
        if self.memory_base < 1 << ADDRESS_BITS:
            raise BoardError(f"a buffer must not be at {self.memory_base:#x}, where the registers are")

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        if address < self.memory_base:
            offsets = range(address, address + length, WORD_BYTES)
            return b"".join(int(self._device.read(o)).to_bytes(WORD_BYTES, "little") for o in offsets)
        self._buffer.invalidate()
        at = address - self.memory_base
        return bytes(self._buffer[at : at + length])

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
        if address < self.memory_base:
            for at in range(0, len(data), WORD_BYTES):
                self._device.write(address + at, int.from_bytes(data[at : at + WORD_BYTES], "little"))
            return
        at = address - self.memory_base
        self._buffer[at : at + len(data)] = np.frombuffer(data, np.uint8)
        self._buffer.flush()
