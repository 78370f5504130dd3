"""LiteX's UART bridge (UARTBone): reads and writes of the board's bus over a serial port."""

import os
import select
import struct
import termios
import tty
from pathlib import Path

from intloom.sim.board.bus import WORD_BYTES, BoardError, PacketBus

BAUD = 115200
_WRITE, _READ = 1, 2
_COMMAND = struct.Struct(">BBI")
"""Command, number of words, word address."""
_SECONDS = 2.0


class UartBus(PacketBus):
    """A board with a UART bridge.

    Parameters
    ----------
    path
        The serial port.
    baud
        Its rate; that of the board's bridge.
    """

    most_read, most_written = 128, 8
    """The bridge has a FIFO of 16 bytes and no flow control, so writes are as short as LiteX's own."""

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

    def _read(self, address: int, words: int) -> bytes:
        self._send(_COMMAND.pack(_READ, words, address // WORD_BYTES))
        return _swapped(self._receive(WORD_BYTES * words))

    def _write(self, address: int, data: bytes, *, checked: bool) -> None:
        self._send(_COMMAND.pack(_WRITE, len(data) // WORD_BYTES, address // WORD_BYTES) + _swapped(data))

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._port, view) :]
        except OSError as error:
            raise self._lost(error) from None

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self._port], [], [], _SECONDS)
            try:
                more = os.read(self._port, size - len(data)) if ready else b""
            except OSError as error:
                raise self._lost(error) from None
            if not more:
                raise BoardError(
                    f"{self._path} gave {len(data)} of {size} bytes within {_SECONDS:.0f} s: check baud rate and bridge"
                )
            data += more
        return data

    def _lost(self, error: OSError) -> BoardError:
        """A port that was unplugged while it was in use."""
        return BoardError(f"{self._path} does not answer: {error}")


def _swapped(data: bytes) -> bytes:
    """Words with their bytes in the opposite order."""
    words = len(data) // WORD_BYTES
    return struct.pack(f"<{words}I", *struct.unpack(f">{words}I", data))
