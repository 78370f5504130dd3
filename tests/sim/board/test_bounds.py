"""What a program from outside can do to a board: nothing outside the memory window, and nothing unchecked."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intloom.common.errors import ProgramError
from intloom.hw.spec import regs
from intloom.hw.spec.isa import Kind
from intloom.sim.board.address import open_board
from intloom.sim.board.backend import Board, BoardBackend, PolledInterrupt
from intloom.sim.board.bus import BoardError, BusMemory, BusRegisters, PacketBus
from intloom.sim.board.etherbone import write_request
from intloom.sim.host.run_program import run_blocking
from tests.runtime.support import small_program

WINDOW = "registers=0x1000,memory=0x2000,bytes=0x100"


@contextlib.contextmanager
def _uart(_: Path) -> Iterator[tuple[str, socket.socket | int]]:
    master, slave = os.openpty()
    os.set_blocking(master, False)
    yield f"uart:{os.ttyname(slave)},{WINDOW}", master
    os.close(master)
    os.close(slave)


@contextlib.contextmanager
def _etherbone(_: Path) -> Iterator[tuple[str, socket.socket | int]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        yield f"etherbone:127.0.0.1:{server.getsockname()[1]},{WINDOW}", server.fileno()


@contextlib.contextmanager
def _litex_server(_: Path) -> Iterator[tuple[str, socket.socket | int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # The client reads the server's greeting when it connects, so it must be sent from the backlog.
        address = f"litex_server:127.0.0.1:{server.getsockname()[1]},{WINDOW}"
        accepted: list[socket.socket] = []

        def greet() -> None:
            accepted.append(server.accept()[0])
            accepted[0].send(b"greeting")

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            yield address, accepted  # type: ignore[misc]  # filled when the board is opened
        finally:
            thread.join()
            for one in accepted:
                one.close()


def _received(source: object) -> bytes:
    descriptor = source[0].fileno() if isinstance(source, list) else source
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("transport", [_uart, _etherbone, _litex_server], ids=lambda t: t.__name__[1:])
@pytest.mark.parametrize(("at", "length"), [(-16, 16), (-4, 8), (0xF0, 0x20), (0x100, 4), (1 << 40, 4)])
def test_no_access_leaves_the_window(transport, at, length, tmp_path):
    with transport(tmp_path) as (address, server):
        memory = open_board(address)._board.memory
        with pytest.raises(BoardError, match="must lie inside the memory window of 0x100 bytes"):
            memory.write(at, bytes(length))
        with pytest.raises(BoardError, match="must lie inside the memory window"):
            memory.read(at, length)
        assert _received(server) == b""


@pytest.mark.parametrize("offset", [0x2000, 0x2050])
def test_mapped_memory_is_bounded_by_the_window_not_by_the_page(offset, tmp_path):
    device = tmp_path / "mem"
    device.write_bytes(bytes(0x4000))
    memory = open_board(f"devmem:{device},memory_device={device},memory_offset={offset},{WINDOW}")._board.memory
    for at in (-16, 0x100):
        with pytest.raises(BoardError, match="must lie inside the memory window"):
            memory.write(at, b"\xff" * 16)
    memory.write(0, b"\xff" * 16)
    content = device.read_bytes()
    assert content[offset : offset + 16] == b"\xff" * 16
    assert not any(content[:offset]) and not any(content[offset + 16 :])


def _answered(answer: bytes) -> Exception | bytes:
    """What a read of two words gives if the board sends this."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        memory = open_board(f"etherbone:127.0.0.1:{server.getsockname()[1]},{WINDOW}")._board.memory
        server.settimeout(5)

        def answer_one() -> None:
            server.sendto(answer, server.recvfrom(2048)[1])

        thread = threading.Thread(target=answer_one)
        thread.start()
        try:
            return memory.read(0, 8)
        except BoardError as error:
            return error
        finally:
            thread.join()


def test_whatever_a_board_answers_to_a_read_is_words_or_an_error_of_one_line():
    """Each answer that is cut off, of another protocol, or has other numbers of words."""
    valid = write_request(1, (0x04030201, 0x08070605))
    assert _answered(valid) == bytes(range(1, 9))
    cut = [valid[:length] for length in range(len(valid))]
    other = [b"HTTP" + valid[4:], *(write_request(1, range(n)) for n in (0, 1, 3))]
    for answer in (*cut, *other):
        error = _answered(answer)
        assert isinstance(error, BoardError) and "\n" not in str(error), answer


def test_a_serial_port_that_is_unplugged_is_an_error_of_one_line(tmp_path):
    master, slave = os.openpty()
    memory = open_board(f"uart:{os.ttyname(slave)},{WINDOW}")._board.memory
    os.close(slave)
    os.close(master)
    for access in (lambda: memory.read(0, 8), lambda: memory.write(0, bytes(8))):
        with pytest.raises(BoardError, match="does not answer"):
            access()


class _WholeWords:
    """Moves words of 4 bytes at multiples of 4, inside its memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, address: int, length: int) -> bytes:
        assert address % 4 == length % 4 == 0 and address >= 0 and address + length <= len(self.content)
        return self.content[address : address + length]

    def write(self, address: int, data: bytes) -> None:
        raise NotImplementedError


def test_bytes_are_read_as_whole_words():
    base, size = 12, 24
    bus = _WholeWords(bytes(range(base + size)))
    memory = BusMemory(bus, base, size)
    for start in range(size + 1):
        for end in range(start, size + 1):
            assert memory.read(start, end - start) == bus.content[base + start : base + end]
        with pytest.raises(BoardError, match="must lie inside"):
            memory.read(start, size + 1 - start)


class _SilentBus:
    """Registers of hardware that fits the program; every write is recorded."""

    def __init__(self, fingerprint: int) -> None:
        self.values = {regs.register("MAGIC").offset: regs.MAGIC, regs.register("FINGERPRINT").offset: fingerprint}
        self.writes: list[int] = []

    def read(self, address: int, length: int) -> bytes:
        return self.values.get(address, 0).to_bytes(4, "little").ljust(length, b"\0")

    def write(self, address: int, data: bytes) -> None:
        self.writes.append(address)


def test_an_unsound_program_never_reaches_the_board():
    program, inputs = small_program()
    bus = _SilentBus(program.params.fingerprint())
    registers = BusRegisters(bus, 0)
    board = Board(
        registers=registers, memory=BusMemory(bus, 1 << 16, 1 << 20), interrupt=PolledInterrupt(registers, 1),
        memory_base=1 << 16, memory_bytes=1 << 20, seconds=1,
    )  # fmt: skip
    index = next(n for n, i in enumerate(program.instructions) if i.kind is Kind.STORE)
    escaping = program.instructions[index].with_fields(dram=program.memory_words + 1024)
    instructions = (*program.instructions[:index], escaping, *program.instructions[index + 1 :])
    with pytest.raises(ProgramError, match="is outside its"):
        BoardBackend(board).run(replace(program, instructions=instructions), inputs)
    assert bus.writes == []


class Registers(PacketBus):
    """A bus with registers alone, each of which reads as it is told, or else as it was written."""

    most_read = most_written = 4

    def __init__(self, **fixed: int) -> None:
        self.fixed = {regs.register(name).offset: value for name, value in fixed.items()}
        self.written: dict[int, int] = {}

    def _read(self, address: int, words: int) -> bytes:
        values = (self.fixed.get(a, self.written.get(a, 0)) for a in range(address, address + 4 * words, 4))
        return b"".join(value.to_bytes(4, "little") for value in values)

    def _write(self, address: int, data: bytes, *, checked: bool) -> None:
        assert not checked  # a register may read as another value
        self.written[address] = int.from_bytes(data, "little")


@pytest.mark.parametrize(
    ("status", "ended"), [({}, "timeout"), ({"done": 1}, "interrupt"), ({"error": 1}, "interrupt")]
)
def test_polling_ends_with_a_flag_or_with_the_time(status, ended):
    bits = {field.name: 0 for field in regs.register("STATUS").fields} | {"busy": 1} | status
    waiting = PolledInterrupt(BusRegisters(Registers(STATUS=regs.pack("STATUS", **bits)), 0), 0.01)
    waiting.arm(0)
    assert run_blocking(waiting.wait()) == ended


def test_settings_must_be_kept_and_a_reset_must_end():
    for register in regs.REGISTERS:
        if register.access is not regs.Access.WO:
            write = BusRegisters(Registers(**{register.name: 5}), 0).write(register.name, 4)
            if register.access is regs.Access.RW:
                with pytest.raises(BoardError, match=f"register {register.name} must keep 0x4, but reads as 0x5"):
                    run_blocking(write)
            else:
                run_blocking(write)
    registers = BusRegisters(Registers(STATUS=regs.pack("STATUS", busy=1)), 0)
    memory = BusMemory(Registers(), 0, 64)
    board = Board(
        registers=registers,
        memory=memory,
        interrupt=PolledInterrupt(registers, 0.01),
        memory_base=0,
        memory_bytes=64,
        seconds=0.01,
    )
    with pytest.raises(BoardError, match="stays busy after a reset"):
        BoardBackend(board)._reset()


def test_a_board_that_keeps_nothing_or_is_silent_ends_after_some_tries(monkeypatch):
    """Every read is answered with zeros, or none is."""
    monkeypatch.setattr("intloom.sim.board.etherbone._SECONDS", 0.02)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.5)
        memory = open_board(f"etherbone:127.0.0.1:{server.getsockname()[1]},{WINDOW}")._board.memory
        with pytest.raises(BoardError, match="does not answer: check address, cable and power"):
            memory.read(0, 8)
        requests = 0
        while True:
            try:
                server.recv(2048)
            except TimeoutError:
                break
            requests += 1
        assert requests > 1
