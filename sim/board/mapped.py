"""Registers and memory that are mapped into this process: /dev/mem, UIO devices, u-dma-buf devices, plain files."""

import contextlib
import mmap
import os
import struct
from pathlib import Path

from intloom.sim.board.bus import WORD_BYTES, BoardError


class MappedBus:
    """A device file's address space.

    Parameters
    ----------
    path
        The device: /dev/mem, whose offsets are physical addresses, or a device with one region.
    base
        Bus address at which the mapping begins.
    length
        Bytes to map.
    offset
        Offset of the mapping in the file: for /dev/mem the base, for map n of a UIO device n pages, else 0.
    """

    def __init__(self, path: Path, base: int, length: int, offset: int) -> None:
        page = mmap.PAGESIZE
        self._base = base
        self._skip = offset % page
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_SYNC)
            try:
                self._map = mmap.mmap(descriptor, self._skip + length, offset=offset - self._skip)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise BoardError(f"cannot map {length:#x} bytes of {path} at {offset:#x}: {error}") from None
        # Elements of 32 bits: each is one access of the bus.
        self._words = memoryview(self._map).cast("I")

    def _index(self, address: int, length: int) -> slice:
        first = (address - self._base + self._skip) // WORD_BYTES
        last = first + length // WORD_BYTES
        if address < self._base or last > len(self._words):
            raise BoardError(f"{length} bytes at {address:#x} are outside of the mapped window at {self._base:#x}")
        return slice(first, last)

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        where = self._index(address, length)
        if length == WORD_BYTES:
            return self._words[where.start].to_bytes(WORD_BYTES, "little")
        return self._words[where].tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
        where = self._index(address, len(data))
        if len(data) == WORD_BYTES:
            self._words[where.start] = int.from_bytes(data, "little")
        else:
            self._words[where] = memoryview(data).cast("I")

    def close(self) -> None:
        """Unmap."""
        self._words.release()
        self._map.close()


class UioInterrupts:
    """The interrupt of a UIO device: a read returns after the next one, a write enables it again.

    Parameters
    ----------
    path
        The device, such as /dev/uio0.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise BoardError(f"cannot open {path}: {error.strerror}") from None

    def enable(self) -> None:
        """Let the next interrupt come; an earlier one is forgotten."""
        with contextlib.suppress(BlockingIOError):
            self.take()
        os.write(self.descriptor, struct.pack("I", 1))

    def take(self) -> None:
        """Take the interrupt that has come."""
        os.read(self.descriptor, WORD_BYTES)

    def close(self) -> None:
        """Close the device."""
        os.close(self.descriptor)
