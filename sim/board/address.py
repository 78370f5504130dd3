"""Addresses of boards: `TRANSPORT:WHERE,key=value,...`."""

import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from intloom.common.errors import UsageError
from intloom.hw.spec.regs import ADDRESS_BITS
from intloom.sim.board.backend import Board, BoardBackend, PolledInterrupt
from intloom.sim.board.bus import Bus, BusMemory, BusRegisters
from intloom.sim.board.etherbone import PORT, TcpEtherbone, UdpEtherbone
from intloom.sim.board.mapped import MappedBus, UioInterrupt
from intloom.sim.board.pynq import PynqBus, open_overlay
from intloom.sim.board.uart import BAUD, UartBus

_SECONDS = 60
_REGISTER_BYTES = 1 << ADDRESS_BITS


@dataclass(frozen=True)
class BoardAddress:
    """A board's transport, where it is, and its settings."""

    transport: str
    where: str
    settings: Mapping[str, str]

    def number(self, key: str, default: int | None = None) -> int:
        """A setting as a number, decimal or with 0x."""
        text = self.settings.get(key)
        if text is None:
            if default is None:
                raise UsageError(f"the board's address needs {key}=NUMBER")
            return default
        try:
            return int(text, 0)
        except ValueError:
            raise UsageError(f"{key} in the board's address must be a number, not {text!r}") from None

    def host(self) -> tuple[str, int]:
        """Host and port of a network address."""
        host, _, port = self.where.partition(":")
        if port and not port.isdecimal():
            raise UsageError(f"the port of {self.where!r} must be a number; write HOST or HOST:PORT")
        return host, int(port or PORT)


_COMMON = frozenset({"memory", "bytes", "timeout"})
_NETWORK = _COMMON | {"registers"}


def parse_address(text: str) -> BoardAddress:
    """The parts of an address.

    Raises
    ------
    UsageError
        Transport or settings are unknown, or a part is missing.
    """
    head, *settings = text.split(",")
    transport, _, where = head.partition(":")
    if transport not in TRANSPORTS:
        raise UsageError(f"a board's address must begin with {', '.join(TRANSPORTS)}, not {transport!r}")
    if not where:
        raise UsageError(f"write the device, file or host of the board: {transport}:WHERE,memory=...")
    allowed, _ = TRANSPORTS[transport]
    given = dict[str, str]()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in allowed:
            raise UsageError(
                f"settings of {transport} are {', '.join(sorted(allowed))}, each as key=value: {setting!r}"
            )
        given[key] = value
    return BoardAddress(transport, where, given)


def open_board(text: str) -> BoardBackend:
    """The backend for the board at this address; raises as `parse_address`, and `BoardError`."""
    address = parse_address(text)
    return BoardBackend(TRANSPORTS[address.transport][1](address))


def _board(address: BoardAddress, registers: BusRegisters, memory: Bus, base: int, size: int) -> Board:
    seconds = address.number("timeout", _SECONDS)
    return Board(
        registers=registers,
        memory=BusMemory(memory, base, size),
        interrupt=PolledInterrupt(registers, seconds),
        memory_base=base,
        memory_bytes=size,
        seconds=seconds,
    )


def _on_one_bus(address: BoardAddress, bus: Bus) -> Board:
    base = address.number("memory")
    registers = BusRegisters(bus, address.number("registers"))
    return _board(address, registers, bus, base, address.number("bytes"))


def _mapped_memory(address: BoardAddress) -> Bus:
    """The memory window: of /dev/mem by physical address, of another device from its beginning."""
    base, device = address.number("memory"), address.settings.get("memory_device", "/dev/mem")
    offset = address.number("memory_offset", base if device == "/dev/mem" else 0)
    return MappedBus(Path(device), base, address.number("bytes"), offset)


def _devmem(address: BoardAddress) -> Board:
    base = address.number("registers")
    registers = BusRegisters(MappedBus(Path(address.where), base, _REGISTER_BYTES, base), base)
    return _board(address, registers, _mapped_memory(address), address.number("memory"), address.number("bytes"))


def _uio(address: BoardAddress) -> Board:
    path = Path(address.where)
    # Map n of a UIO device is n pages into the file.
    offset = address.number("map", 0) * mmap.PAGESIZE
    registers = BusRegisters(MappedBus(path, 0, _REGISTER_BYTES, offset), 0)
    board = _board(address, registers, _mapped_memory(address), address.number("memory"), address.number("bytes"))
    if address.number("interrupt", 1):
        source = Path(address.settings.get("interrupt_device", path))
        return replace(board, interrupt=UioInterrupt(source, board.seconds))
    return board


def _pynq(address: BoardAddress) -> Board:
    bus = PynqBus(*open_overlay(address.where, address.settings.get("ip", "npu_0"), address.number("bytes")))
    return _board(address, BusRegisters(bus, 0), bus, bus.memory_base, address.number("bytes"))


TRANSPORTS: dict[str, tuple[frozenset[str], Callable[[BoardAddress], Board]]] = {
    "devmem": (_COMMON | {"registers", "memory_device", "memory_offset"}, _devmem),
    "uio": (_COMMON | {"map", "interrupt", "interrupt_device", "memory_device", "memory_offset"}, _uio),
    "pynq": (frozenset({"ip", "bytes", "timeout"}), _pynq),
    "etherbone": (_NETWORK, lambda a: _on_one_bus(a, UdpEtherbone(*a.host()))),
    "litex_server": (_NETWORK, lambda a: _on_one_bus(a, TcpEtherbone(*a.host()))),
    "uart": (_NETWORK | {"baud"}, lambda a: _on_one_bus(a, UartBus(Path(a.where), a.number("baud", BAUD)))),
}
"""Settings and opener of each transport."""
