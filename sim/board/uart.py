"""LiteX's UART bridge (UARTBone): reads and writes of the board's bus over a serial port."""

import os
import select
import struct
import termios
import tty
from pathlib import Path

from intloom.sim.board.bus import WORD_BYTES, BoardError

BAUD = 115200
_WRITE, _READ = 1, 2
_COMMAND = struct.Struct(">BBI")
"""Command, number of words, word address."""
_MOST_READ, _MOST_WRITTEN = 128, 8
"""Words per command. The bridge has a FIFO of 16 bytes and no flow control, so writes are as short as LiteX's own."""
_SECONDS = 2.0


class UartBus:
    """A board with a UART bridge.

    Parameters
    ----------
    path
        The serial port.
    baud
        Its rate; that of the board's bridge.
    """

    def __init__(self, path: Path, baud: int = BAUD) -> None:
        self._path = path
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise BoardError(f"the serial port has no rate of {baud} baud; LiteX's default is {BAUD}")
        try:
            self._port = os.open(path, os.O_RDWR | os.O_NOCTTY)
            tty.setraw(self._port)
            attributes = termios.tcgetattr(self._port)
            attributes[4] = attributes[5] = speed
            termios.tcsetattr(self._port, termios.TCSANOW, attributes)
            termios.tcflush(self._port, termios.TCIOFLUSH)
        except (OSError, termios.error) as error:
            raise BoardError(f"cannot open {path} as a serial port: {error}") from None

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""
        parts = []
        for first in range(0, length, WORD_BYTES * _MOST_READ):
            words = min(_MOST_READ, (length - first) // WORD_BYTES)
            self._send(_COMMAND.pack(_READ, words, (address + first) // WORD_BYTES))
            data = self._receive(WORD_BYTES * words)
            parts.append(struct.pack(f"<{words}I", *struct.unpack(f">{words}I", data)))
        return b"".join(parts)

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
        step = WORD_BYTES * _MOST_WRITTEN
        for first in range(0, len(data), step):
            piece = data[first : first + step]
            words = len(piece) // WORD_BYTES
            head = _COMMAND.pack(_WRITE, words, (address + first) // WORD_BYTES)
            self._send(head + struct.pack(f">{words}I", *struct.unpack(f"<{words}I", piece)))

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._port, view) :]

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self._port], [], [], _SECONDS)
            more = os.read(self._port, size - len(data)) if ready else b""
            if not more:
                raise BoardError(
                    f"{self._path} gave {len(data)} of {size} bytes within {_SECONDS:.0f} s: check baud rate and bridge"
                )
            data += more
        return data

    def close(self) -> None:
        """Close the port."""
        os.close(self._port)
