"""The accelerator's RTL as a board: a bus, and servers that lead real transports to it."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import struct
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from intloom.compiler.program.program import Program
from intloom.hw.spec.regs import ADDRESS_BITS, REGISTERS, Access, register
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import MEMORY_BASE, Job, RunFiles
from intloom.sim.rtl.verilog import verilog_of
from tests.support.host_software import HOST_HEADERS, run_host_software

REGISTERS_AT = 0x8000_0000
_READ, _WRITE, _RUN = 1, 2, 3
_LIMIT = 20_000_000


class RtlBoard:
    """A simulation that runs while it is entered.

    Parameters
    ----------
    program
        Its hardware is simulated.
    folder
        For the files of the run; it is made.
    memory_base
        Address of the memory on the accelerator's bus.
    memory_bytes
        Its size; None: as the program needs it.
    """

    def __init__(
        self, program: Program, folder: Path, memory_base: int = MEMORY_BASE, memory_bytes: int | None = None
    ) -> None:
        params = program.params
        self.memory_base = memory_base
        self.memory_bytes = memory_bytes or program.memory_words * params.word_bytes
        self.files = RunFiles(folder)
        self._lock = threading.RLock()
        folder.mkdir()
        with self.files.memory.open("wb") as memory:
            memory.truncate(self.memory_bytes)
        for name in ("requests", "answers"):
            os.mkfifo(folder / name)
        library = folder / "host.so"
        source = Path(__file__).with_name("rtl_host.c")
        subprocess.run(
            ["gcc", "-shared", "-fPIC", f"-I{HOST_HEADERS}", "-include", "stdint.h", str(source), "-o", str(library)],
            check=True,
        )
        job = Job(
            word_bytes=params.word_bytes, port_bytes=params.port_bytes,
            memory_words=self.memory_bytes // params.word_bytes, program_word=0,
            instructions=0, limit=_LIMIT, memory_base=memory_base, first_byte=memory_base,
        )  # fmt: skip
        simulator = FastBench().build(verilog_of(params))
        self._thread = threading.Thread(target=run_host_software, args=(simulator, library, job, self.files))

    def __enter__(self) -> RtlBoard:
        self._thread.start()
        self._requests = (self.files.folder / "requests").open("wb", buffering=0)
        self._answers = (self.files.folder / "answers").open("rb", buffering=0)
        with self.files.memory.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.write(bytes(12))
        self._thread.join()
        self._requests.close()
        self._answers.close()

    def request(self, kind: int, offset: int = 0, value: int = 0) -> int:
        with self._lock:
            self._requests.write(struct.pack("III", kind, offset, value))
            failed, answer = struct.unpack("II", self._answers.read(8))
        assert not failed
        return answer

    def run_on(self) -> bool:
        """Simulate at most 256 cycles; returns the interrupt line."""
        return bool(self.request(_RUN))

    def read(self, address: int, length: int | None = None, burst: str = "incr") -> Any:
        """Words of the bus, as LiteX's bridges return them."""
        words = [self._read(address + 4 * i) for i in range(1 if length is None else length)]
        return words[0] if length is None else words

    def write(self, address: int, data: list[int] | int) -> None:
        for i, word in enumerate(data if isinstance(data, list) else [data]):
            at = address + 4 * i
            if at >= REGISTERS_AT:
                self.request(_WRITE, at - REGISTERS_AT, word)
            else:
                struct.pack_into("<I", self._memory, at - self.memory_base, word)

    def _read(self, at: int) -> int:
        if at >= REGISTERS_AT:
            return self.request(_READ, at - REGISTERS_AT)
        return struct.unpack_from("<I", self._memory, at - self.memory_base)[0]


@contextlib.contextmanager
def served(serve: Callable[[], None]) -> Iterator[None]:
    """Call `serve` again and again in a thread."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            serve()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def udp_server(board: RtlBoard, lose: Callable[[], bool] = lambda: False) -> Iterator[int]:
    """An Etherbone core behind UDP, made of LiteX's own packets; `lose` says which packets get lost. Gives its port."""
    from litex.tools.remote.etherbone import EtherbonePacket, EtherboneRecord, EtherboneWrites

    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.bind(("127.0.0.1", 0))

    def serve() -> None:
        ready, _, _ = select.select([port], [], [], 0.001)
        if not ready:
            board.run_on()
            return
        data, sender = port.recvfrom(8192)
        if lose():
            return
        packet = EtherbonePacket(32, data)
        packet.decode()
        (record,) = packet.records
        if record.writes is not None:
            board.write(record.writes.base_addr, record.writes.get_datas())
        if record.reads is not None:
            answer = EtherboneRecord()
            datas = [board.read(a) for a in record.reads.get_addrs()]
            # LiteX's decoder drops the return address of reads; its gateware does not.
            (identifier,) = struct.unpack_from(">I", data, 12)
            answer.writes = EtherboneWrites(base_addr=identifier, datas=datas)
            answer.wcount = len(datas)
            reply = EtherbonePacket(32)
            reply.records = [answer]
            reply.encode()
            if not lose():
                port.sendto(reply.bytes, sender)

    with port, served(serve):
        yield port.getsockname()[1]


@contextlib.contextmanager
def litex_server(board: RtlBoard) -> Iterator[int]:
    """LiteX's own server, as `litex_server` starts it; gives its port."""
    from litex.tools.litex_server import RemoteServer

    class Comm:
        read, write = staticmethod(board.read), staticmethod(board.write)
        addr_width = 32

        def open(self) -> None:
            pass

        def close(self) -> None:
            pass

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    server = RemoteServer(Comm(), "127.0.0.1", port)
    server.open()
    server.start(1)

    def run_on() -> None:
        board.run_on()
        time.sleep(0.0005)

    with served(run_on):
        yield port


@contextlib.contextmanager
def uart_bridge(board: RtlBoard) -> Iterator[str]:
    """A UART bridge at the end of a pseudo terminal; gives the path of the other end."""
    master, slave = os.openpty()

    def receive(size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(master, size - len(data))
        return data

    def serve() -> None:
        ready, _, _ = select.select([master], [], [], 0.001)
        if not ready:
            board.run_on()
            return
        command, words, at = struct.unpack(">BBI", receive(6))
        if command == 1:
            board.write(4 * at, list(struct.unpack(f">{words}I", receive(4 * words))))
        else:
            os.write(master, struct.pack(f">{words}I", *board.read(4 * at, words)))

    try:
        with served(serve):
            yield os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)


class RegisterFile:
    """A file that shows the registers and passes changes of it on to the accelerator."""

    _CONTROL, _STATUS = register("CONTROL").offset, register("STATUS").offset

    def __init__(self, board: RtlBoard, path: Path) -> None:
        path.write_bytes(bytes(1 << ADDRESS_BITS))
        with path.open("r+b") as file:
            self._page = memoryview(mmap.mmap(file.fileno(), 0)).cast("I")
        self._board = board
        self._shown = dict.fromkeys((r.offset for r in REGISTERS), 0)
        self.refresh()

    def refresh(self) -> None:
        # The status is read first and shown last: counters that are read after the end do not change.
        status = self._board.request(_READ, self._STATUS)
        for one in REGISTERS:
            at = one.offset
            value = self._board.request(_READ, at)
            if at == self._STATUS:
                continue
            if one.access is Access.RO:
                self._page[at // 4] = value
            elif value != self._shown[at] and self._page[at // 4] == self._shown[at]:
                self._shown[at] = self._page[at // 4] = value
        self._page[self._STATUS // 4] = status

    def pass_on(self) -> None:
        # A command is taken before the settings, which the driver writes before it, and executed after them. It is
        # read and cleared without a call between: at a call, the driver's thread may run and write the next one.
        control = self._CONTROL // 4
        command, self._page[control] = self._page[control], 0
        for one in REGISTERS:
            value, at = self._page[one.offset // 4], one.offset
            if one.access not in (Access.RO, Access.WO) and value != self._shown[at]:
                self._board.request(_WRITE, at, value)
                self._shown[at] = self._page[at // 4] = self._board.request(_READ, at)
        if command:
            self._board.request(_WRITE, self._CONTROL, command)


@contextlib.contextmanager
def shown_registers(board: RtlBoard, path: Path, interrupt: Callable[[], None]) -> Iterator[None]:
    """Keep the register file `path` up to date, and call `interrupt` at each rising edge of the interrupt."""
    registers = RegisterFile(board, path)
    line = False

    def serve() -> None:
        nonlocal line
        registers.pass_on()
        before, line = line, board.run_on()
        registers.refresh()
        if line and not before:
            interrupt()

    with served(serve):
        yield


@contextlib.contextmanager
def mapped_registers(board: RtlBoard) -> Iterator[tuple[Path, str]]:
    """The register file's path, and a device with the interrupts."""
    path = board.files.folder / "registers"
    # As a UIO device, a terminal has two directions.
    master, slave = os.openpty()
    tty.setraw(slave)
    with shown_registers(board, path, lambda: os.write(master, struct.pack("I", 1))):
        yield path, os.ttyname(slave)
    os.close(master)
    os.close(slave)
