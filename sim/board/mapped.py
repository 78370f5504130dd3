"""Registers and memory that are mapped into this process: /dev/mem, UIO devices, u-dma-buf devices, plain files."""

import contextlib
import mmap
import os
import select
import struct
import time
from pathlib import Path

from intloom.sim.board.barrier import barrier
from intloom.sim.board.bus import WORD_BYTES, BoardError
from intloom.sim.host.run_program import Ending


class MappedBus:
    """A device file's address space.

    As with Linux's readl and writel, a barrier precedes each write of a single word and follows each read of one: the
    accelerator sees all of the memory that was written before START, and results are read after STATUS.

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
        self._barrier = barrier()
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
            word = self._words[where.start]
            self._barrier()
            return word.to_bytes(WORD_BYTES, "little")
        return self._words[where].tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
        where = self._index(address, len(data))
        if len(data) == WORD_BYTES:
            self._barrier()
            self._words[where.start] = int.from_bytes(data, "little")
        else:
            self._words[where] = memoryview(data).cast("I")


class UioInterrupt:
    """The end of a run by the interrupt of a UIO device: a read returns after the next one, a write enables it again.

    Parameters
    ----------
    path
        The device, such as /dev/uio0.
    seconds
        After this time a run is given up.
    """

    cycle = 0

    def __init__(self, path: Path, seconds: float) -> None:
        self._seconds = seconds
        self._end = 0.0
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise BoardError(f"cannot open {path}: {error.strerror}") from None

    def arm(self, limit: int) -> None:
        """Forget an earlier interrupt, enable the next one, and start the time limit, which is in seconds here."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, WORD_BYTES)
        os.write(self._descriptor, struct.pack("I", 1))
        self._end = time.monotonic() + self._seconds

    async def wait(self) -> Ending:
        """Wait for the interrupt or the limit."""
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, self._end - time.monotonic()))
        if not ready:
            return "timeout"
        os.read(self._descriptor, WORD_BYTES)
        return "interrupt"
