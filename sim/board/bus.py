"""Access to a board's bus, and the driver's registers and memory on top of it."""

from collections.abc import Iterator
from typing import Protocol

from intloom.common.errors import ExitCode, IntloomError
from intloom.hw.spec import regs

WORD_BYTES = 4
"""Every transport moves whole words of 32 bits."""


class BoardError(IntloomError):
    """The board does not answer, or its registers do not keep what was written."""

    exit_code = ExitCode.ENVIRONMENT


class Bus(Protocol):
    """A board's address space; addresses and lengths are multiples of 4."""

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""


class PacketBus:
    """A bus behind a connection that moves a limited number of words at once."""

    most_read, most_written = 1, 1
    """Words."""

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        return b"".join(
            self._read(at, (stop - at) // WORD_BYTES) for at, stop in _parts(address, length, self.most_read)
        )

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
        for at, stop in _parts(address, len(data), self.most_written):
            # A single word may be a register that reads as another value.
            self._write(at, data[at - address : stop - address], checked=len(data) > WORD_BYTES)

    def _read(self, address: int, words: int) -> bytes:
        raise NotImplementedError

    def _write(self, address: int, data: bytes, *, checked: bool) -> None:
        """Store a part; `checked` asks a connection that loses packets to read it back."""
        raise NotImplementedError


def _parts(address: int, length: int, most: int) -> Iterator[tuple[int, int]]:
    """First address and end of each part of at most so many words."""
    step = WORD_BYTES * most
    for at in range(address, address + length, step):
        yield at, min(at + step, address + length)


class BusRegisters:
    """The accelerator's registers on a bus.

    Parameters
    ----------
    bus
        The board's bus.
    base
        Address of the register port.
    """

    def __init__(self, bus: Bus, base: int) -> None:
        self._bus = bus
        self._base = base

    def read_now(self, name: str) -> int:
        """Value of the register."""
        data = self._bus.read(self._base + regs.register(name).offset, WORD_BYTES)
        return int.from_bytes(data, "little")

    async def read(self, name: str) -> int:
        """Value of the register."""
        return self.read_now(name)

    async def write(self, name: str, value: int) -> None:
        """Set the register; a setting is read back, because some transports lose writes without a notice."""
        register = regs.register(name)
        self._bus.write(self._base + register.offset, value.to_bytes(WORD_BYTES, "little"))
        if register.access is regs.Access.RW and (kept := self.read_now(name)) != value:
            raise BoardError(
                f"register {name} must keep {value:#x}, but reads as {kept:#x}: check address, clock and reset"
            )


class BusMemory:
    """The shared memory on a bus.

    Parameters
    ----------
    bus
        The board's bus.
    base
        Address of the memory window on it.
    size
        Bytes of the window: no access leaves it, whatever the transport.
    """

    def __init__(self, bus: Bus, base: int, size: int) -> None:
        self._bus = bus
        self._base = base
        self._size = size

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        start = address - address % WORD_BYTES
        end = address + length + -(address + length) % WORD_BYTES
        self._check(start, end)
        return self._bus.read(self._base + start, end - start)[address - start :][:length]

    def write(self, address: int, data: bytes) -> None:
        """Store `data`, whole words, from `address` on."""
        self._check(address, address + len(data))
        self._bus.write(self._base + address, data)

    def _check(self, start: int, end: int) -> None:
        if not 0 <= start <= end <= self._size:
            raise BoardError(
                f"bytes {start:#x} to {end:#x} must lie inside the memory window of {self._size:#x} bytes: compile the "
                "program again, or enlarge the window (bytes=)"
            )
