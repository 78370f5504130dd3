"""Etherbone, Wishbone over a network, as LiteX uses it: to a board over UDP, or through `litex_server` over TCP."""

import socket
import struct
from collections.abc import Sequence
from itertools import count

from intloom.sim.board.bus import WORD_BYTES, BoardError, PacketBus

PORT = 1234
_MAGIC, _VERSION, _SIZES = 0x4E6F, 1, 0x44
"""Addresses and data have 4 bytes."""
_PACKET = struct.Struct(">HBB4x")
_RECORD = struct.Struct(">BBBB")
_ALL_BYTES = 0xF
_MOST_WORDS = 128
"""In a packet, so that it fits an Ethernet frame; the format allows 255."""
_TRIES = 10
_SECONDS = 1.0


def write_request(address: int, words: Sequence[int]) -> bytes:
    """A packet that stores words from `address` on."""
    return _packet(struct.pack(f">I{len(words)}I", address, *words), len(words), 0)


def read_request(identifier: int, addresses: Sequence[int]) -> bytes:
    """A packet that asks for the words at `addresses`; the answer contains `identifier`."""
    return _packet(struct.pack(f">I{len(addresses)}I", identifier, *addresses), 0, len(addresses))


def _packet(body: bytes, writes: int, reads: int) -> bytes:
    return _PACKET.pack(_MAGIC, _VERSION << 4, _SIZES) + _RECORD.pack(0, _ALL_BYTES, writes, reads) + body


def parse_answer(packet: bytes) -> tuple[int, tuple[int, ...]]:
    """Identifier and words of an answer."""
    head = _PACKET.size + _RECORD.size
    if len(packet) < head + WORD_BYTES or _PACKET.unpack_from(packet)[0] != _MAGIC:
        raise BoardError(f"an Etherbone answer must start with {_MAGIC:#x}, not {packet[:4].hex()}: check the port")
    writes = _RECORD.unpack_from(packet, _PACKET.size)[2]
    if len(packet) < head + WORD_BYTES * (1 + writes):
        raise BoardError(f"an Etherbone answer with {writes} words has only {len(packet)} bytes")
    identifier, *words = struct.unpack_from(f">I{writes}I", packet, head)
    return identifier, tuple(words)


def _read_data(answer: Sequence[int], words: int) -> bytes:
    """The bytes of so many words."""
    if len(answer) != words:
        raise BoardError(f"an Etherbone answer must have the {words} words that were read, not {len(answer)}")
    return struct.pack(f"<{words}I", *answer)


def _words(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // WORD_BYTES}I", data)


def _addresses(address: int, words: int) -> range:
    return range(address, address + WORD_BYTES * words, WORD_BYTES)


class UdpEtherbone(PacketBus):
    """A board with LiteEth's Etherbone core.

    UDP loses packets. A read is repeated until its answer comes; the memory's contents are read back after each write.

    Parameters
    ----------
    host, port
        The board.
    """

    most_read = most_written = _MOST_WORDS

    def __init__(self, host: str, port: int = PORT) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(_SECONDS)
        self._host = f"{host}:{port}"
        self._numbers = count(1)
        try:
            self._socket.connect((host, port))
        except OSError as error:
            raise BoardError(f"cannot reach {self._host}: {error}") from None

    def _read(self, address: int, words: int) -> bytes:
        for _ in range(_TRIES):
            number = next(self._numbers)
            self._send(read_request(number, _addresses(address, words)))
            answer = self._answer(number)
            if answer is not None:
                return _read_data(answer, words)
        raise BoardError(f"{self._host} does not answer: check address, cable and power")

    def _answer(self, number: int) -> tuple[int, ...] | None:
        """The answer with this number; None after a time-out. Late answers to earlier tries are dropped."""
        try:
            while True:
                identifier, words = parse_answer(self._socket.recv(2048))
                if identifier == number:
                    return words
        except TimeoutError:
            return None
        except OSError as error:
            # A closed port answers with ICMP's "port unreachable".
            raise BoardError(f"{self._host} does not answer: {error}") from None

    def _write(self, address: int, data: bytes, *, checked: bool) -> None:
        for _ in range(_TRIES):
            self._send(write_request(address, _words(data)))
            if not checked or self._read(address, len(data) // WORD_BYTES) == data:
                return
        raise BoardError(f"memory at {address:#x} of {self._host} does not keep what is written")

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.send(packet)
        except OSError as error:
            raise BoardError(f"cannot send to {self._host}: {error}") from None


class TcpEtherbone(PacketBus):
    """A board behind LiteX's `litex_server`.

    Parameters
    ----------
    host, port
        The server.
    """

    most_read = most_written = _MOST_WORDS

    def __init__(self, host: str, port: int = PORT) -> None:
        self._host = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout=_TRIES * _SECONDS)
            # The server introduces itself.
            self._socket.recv(128)
        except OSError as error:
            raise BoardError(f"cannot reach {self._host}: {error}; start litex_server") from None

    def _read(self, address: int, words: int) -> bytes:
        self._send(read_request(0, _addresses(address, words)))
        answer = self._receive(_PACKET.size + _RECORD.size + WORD_BYTES * (1 + words))
        return _read_data(parse_answer(answer)[1], words)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except OSError as error:
                raise BoardError(f"{self._host} does not answer: {error}") from None
            if not more:
                raise BoardError(f"{self._host} closed the connection")
            data += more
        return data

    def _write(self, address: int, data: bytes, *, checked: bool) -> None:
        self._send(write_request(address, _words(data)))

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.sendall(packet)
        except OSError as error:
            raise BoardError(f"cannot send to {self._host}: {error}") from None
