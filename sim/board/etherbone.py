"""Etherbone, Wishbone over a network, as LiteX uses it: to a board over UDP, or through `litex_server` over TCP."""

import socket
import struct
from collections.abc import Iterator, Sequence
from itertools import count

from intloom.sim.board.bus import WORD_BYTES, BoardError

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


def _pieces(address: int, length: int) -> Iterator[tuple[int, int]]:
    """Address and number of words of each packet."""
    words = length // WORD_BYTES
    for first in range(0, words, _MOST_WORDS):
        yield address + WORD_BYTES * first, min(_MOST_WORDS, words - first)


class UdpEtherbone:
    """A board with LiteEth's Etherbone core.

    UDP loses packets. A read is repeated until its answer comes; the memory's contents are read back after each write.

    Parameters
    ----------
    host, port
        The board.
    """

    def __init__(self, host: str, port: int = PORT) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(_SECONDS)
        self._host = f"{host}:{port}"
        self._numbers = count(1)
        try:
            self._socket.connect((host, port))
        except OSError as error:
            raise BoardError(f"cannot reach {self._host}: {error}") from None

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        return b"".join(self._read(at, words) for at, words in _pieces(address, length))

    def _read(self, address: int, words: int) -> bytes:
        for _ in range(_TRIES):
            number = next(self._numbers)
            self._send(read_request(number, [address + WORD_BYTES * i for i in range(words)]))
            answer = self._answer(number)
            if answer is not None:
                return struct.pack(f"<{words}I", *answer)
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

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on; more than one word is read back."""
        for at, words in _pieces(address, len(data)):
            piece = data[at - address :][: WORD_BYTES * words]
            request = write_request(at, struct.unpack(f"<{words}I", piece))
            self._send(request)
            # A single word may be a register that reads as another value.
            tries = 0
            while len(data) > WORD_BYTES and self._read(at, words) != piece:
                tries += 1
                if tries == _TRIES:
                    raise BoardError(f"memory at {at:#x} of {self._host} does not keep what is written")
                self._send(request)

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.send(packet)
        except OSError as error:
            raise BoardError(f"cannot send to {self._host}: {error}") from None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class TcpEtherbone:
    """A board behind LiteX's `litex_server`.

    Parameters
    ----------
    host, port
        The server.
    """

    def __init__(self, host: str, port: int = PORT) -> None:
        self._host = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout=_TRIES * _SECONDS)
            # The server introduces itself.
            self._socket.recv(128)
        except OSError as error:
            raise BoardError(f"cannot reach {self._host}: {error}; start litex_server") from None

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        parts = []
        for at, words in _pieces(address, length):
            self._send(read_request(0, [at + WORD_BYTES * i for i in range(words)]))
            size = _PACKET.size + _RECORD.size + WORD_BYTES * (1 + words)
            parts.append(struct.pack(f"<{words}I", *parse_answer(self._receive(size))[1]))
        return b"".join(parts)

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

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
        for at, words in _pieces(address, len(data)):
            piece = data[at - address :][: WORD_BYTES * words]
            self._send(write_request(at, struct.unpack(f"<{words}I", piece)))

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.sendall(packet)
        except OSError as error:
            raise BoardError(f"cannot send to {self._host}: {error}") from None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
