"""Programs run on the RTL through every transport: network sockets, a pseudo terminal, mapped files."""

import contextlib
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import intloom
from intloom.common.errors import CapacityError, HardwareMismatchError, SimulationError, UsageError
from intloom.compiler.program.file import save
from intloom.hw.spec.regs import ADDRESS_BITS, BY_NAME
from intloom.sim.backend import BackendRequest, backend_kind
from intloom.sim.board.address import open_board, parse_address
from intloom.sim.board.backend import PolledInterrupt
from intloom.sim.board.bus import BoardError
from intloom.sim.board.etherbone import PORT
from intloom.sim.golden import run_graph
from intloom.sim.host.run_program import Ending
from tests.runtime.support import small_graph, small_program
from tests.sim.board.rtl_board import (
    REGISTERS_AT,
    RtlBoard,
    litex_server,
    mapped_registers,
    uart_bridge,
    udp_server,
)

pytestmark = pytest.mark.slow
PROGRAM, INPUTS = small_program()
NEEDS_LITEX = pytest.mark.needs("litex")


@pytest.fixture
def rtl(tmp_path: Path) -> Iterator[RtlBoard]:
    with RtlBoard(PROGRAM, tmp_path / "rtl") as board:
        yield board


def settings(rtl: RtlBoard) -> str:
    return f"registers={REGISTERS_AT:#x},{window(rtl)}"


def window(rtl: RtlBoard) -> str:
    return f"memory={rtl.memory_base:#x},bytes={rtl.memory_bytes}"


def assert_runs(address: str, times: int = 2) -> None:
    """Each run has other inputs, so that the outputs of the run before are wrong."""
    backend = backend_kind(f"board:{address}").open(BackendRequest(graphs=tuple, address=address))
    for _ in range(times):
        inputs = {n: np.random.default_rng(_).integers(-128, 128, v.shape).astype(np.int8) for n, v in INPUTS.items()}
        result = backend.run(PROGRAM, inputs)
        golden = run_graph(small_graph()[0], inputs, match=PROGRAM.params.match)
        assert result.outputs
        for name, value in result.outputs.items():
            np.testing.assert_array_equal(value, golden[name])
        assert result.cycles > 0
        assert result.counters["STORE_DONE"] > 0


@NEEDS_LITEX
def test_etherbone_over_udp(rtl: RtlBoard) -> None:
    with udp_server(rtl) as port:
        assert_runs(f"etherbone:127.0.0.1:{port},{settings(rtl)}")


@NEEDS_LITEX
def test_lost_packets_are_sent_again(rtl: RtlBoard, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("intloom.sim.board.etherbone._SECONDS", 0.1)
    chance = random.Random(seed)
    with udp_server(rtl, lambda: chance.random() < 0.1) as port:
        backend = open_board(f"etherbone:127.0.0.1:{port},{settings(rtl)}")
        memory = backend._board.memory
        data = chance.randbytes(4000)
        memory.write(0, data)
        assert memory.read(0, 4000) == data
        assert memory.read(5, 3) == data[5:8]


@NEEDS_LITEX
@pytest.mark.parametrize("words", [2, 127, 128, 129, 130, 257])
def test_any_lost_packet_is_sent_again(rtl: RtlBoard, words: int, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The first of a write, the last, however short, and those that read back."""
    monkeypatch.setattr("intloom.sim.board.etherbone._SECONDS", 0.05)
    chance, packets = random.Random(seed), iter(())

    def lose() -> bool:
        return next(packets, False)

    with udp_server(rtl, lose) as port:
        memory = open_board(f"etherbone:127.0.0.1:{port},{settings(rtl)}")._board.memory
        for lost in range(9):
            data = chance.randbytes(4 * words)
            packets = iter([False] * lost + [True])
            memory.write(0, data)
            packets = iter(())
            assert memory.read(0, len(data)) == data


@NEEDS_LITEX
def test_litex_server(rtl: RtlBoard) -> None:
    with litex_server(rtl) as port:
        assert_runs(f"litex_server:127.0.0.1:{port},{settings(rtl)}")


def test_uart_bridge(rtl: RtlBoard) -> None:
    with uart_bridge(rtl) as path:
        assert_runs(f"uart:{path},{settings(rtl)}")


@NEEDS_LITEX
def test_the_uart_bridge_of_the_test_is_litexs(rtl: RtlBoard) -> None:
    """LiteX's own client works with it, so the bridge speaks LiteX's protocol."""
    from litex.tools.remote.comm_uart import CommUART

    with uart_bridge(rtl) as path:
        client = CommUART(path)
        client.write(rtl.memory_base + 8, list(range(20)))
        assert client.read(rtl.memory_base + 8, 20) == list(range(20))
        client.close()


def test_a_session_runs_on_a_board(rtl: RtlBoard, tmp_path: Path) -> None:
    save(PROGRAM, tmp_path / "small.loom")
    simulated = intloom.Session(tmp_path / "small.loom", backend="isa")
    feeds = {name: np.full(shape, 0.5, np.float32) for name, shape in simulated.inputs.items()}
    expected = simulated.run(None, feeds)
    with uart_bridge(rtl) as path:
        session = intloom.Session(tmp_path / "small.loom", backend=f"board:uart:{path},{settings(rtl)}")
        for value, wanted in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_array_equal(value, wanted)
        assert "board" in repr(session)


def test_uio_with_its_interrupt(rtl: RtlBoard) -> None:
    with mapped_registers(rtl) as (path, interrupts):
        memory = f"memory_device={rtl.files.memory},{window(rtl)}"
        assert_runs(f"uio:{path},interrupt_device={interrupts},{memory}")


def test_mapped_memory_with_polling(rtl: RtlBoard) -> None:
    with mapped_registers(rtl) as (path, _):
        assert_runs(f"devmem:{path},registers=0,memory_device={rtl.files.memory},{window(rtl)}", times=1)


def test_pynq(rtl: RtlBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects with PYNQ's calls lead to the RTL; the buffer has a cache that only `flush` and `invalidate` pass."""

    class Buffer(np.ndarray):
        device_address = rtl.memory_base

        def flush(self) -> None:
            rtl._memory[: self.size] = self.tobytes()

        def invalidate(self) -> None:
            self[:] = np.frombuffer(rtl._memory[: self.size], np.uint8)

    def read(offset: int) -> int:
        assert offset < 1 << ADDRESS_BITS
        rtl.run_on()
        return rtl.read(REGISTERS_AT + offset)

    def write(offset: int, value: int) -> None:
        assert offset < 1 << ADDRESS_BITS
        rtl.write(REGISTERS_AT + offset, value)

    device = SimpleNamespace(read=read, write=write)
    fake = SimpleNamespace(
        Overlay=lambda name: SimpleNamespace(npu_0=device) if name == "design.bit" else None,
        allocate=lambda shape, dtype: np.zeros(shape, dtype).view(Buffer),
    )
    monkeypatch.setitem(sys.modules, "pynq", fake)
    assert_runs(f"pynq:design.bit,bytes={rtl.memory_bytes}")
    with pytest.raises(UsageError, match="has no IP 'other'"):
        open_board("pynq:design.bit,ip=other,bytes=64")


def test_wrong_uses_of_a_board_that_answers(rtl: RtlBoard) -> None:
    with uart_bridge(rtl) as path:
        at = f"uart:{path},memory={rtl.memory_base:#x}"
        with pytest.raises(BoardError, match="MAGIC must be 0x4d4f4f4c, but reads as 0x0"):
            open_board(f"{at},registers={REGISTERS_AT + BY_NAME['CONTROL'].offset:#x},bytes=65536").run(PROGRAM, INPUTS)
        with pytest.raises(CapacityError, match="but the window has 64: enlarge"):
            open_board(f"{at},registers={REGISTERS_AT:#x},bytes=64").run(PROGRAM, INPUTS)
        backend = open_board(f"{at},registers={REGISTERS_AT:#x},bytes=65536")
        other = replace(PROGRAM, params=PROGRAM.params.replace(queue_depth=2 * PROGRAM.params.queue_depth))
        with pytest.raises(HardwareMismatchError, match="but the board's is 0x"):
            backend.run(other, INPUTS)
        # Instructions at an address where the accelerator has no memory.
        backend._board = replace(backend._board, memory_base=0)
        with pytest.raises(SimulationError, match="cause FETCH_ERROR"):
            backend.run(PROGRAM, INPUTS)
        backend._board = replace(backend._board, memory_base=rtl.memory_base)
        assert backend.run(PROGRAM, INPUTS).cycles > 0


def test_after_a_run_that_did_not_end_everything_is_sent_again(rtl: RtlBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a board may have lost its memory."""

    async def give_up(_: PolledInterrupt) -> Ending:
        return "timeout"

    with uart_bridge(rtl) as path:
        backend = open_board(f"uart:{path},{settings(rtl)}")
        expected = backend.run(PROGRAM, INPUTS).outputs
        with monkeypatch.context() as patch:
            patch.setattr(PolledInterrupt, "wait", give_up)
            with pytest.raises(SimulationError, match="did not end within"):
                backend.run(PROGRAM, INPUTS)
        rtl.write(rtl.memory_base, [0] * (rtl.memory_bytes // 4))
        for name, value in backend.run(PROGRAM, INPUTS).outputs.items():
            np.testing.assert_array_equal(value, expected[name])


@contextlib.contextmanager
def silent_terminal() -> Iterator[str]:
    import os

    master, slave = os.openpty()
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


def test_a_board_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("intloom.sim.board.uart._SECONDS", 0.1)
    monkeypatch.setattr("intloom.sim.board.etherbone._SECONDS", 0.05)
    at = "registers=0,memory=0x1000,bytes=65536"
    with silent_terminal() as path, pytest.raises(BoardError, match="gave 0 of 4 bytes"):
        open_board(f"uart:{path},{at}").run(PROGRAM, INPUTS)
    with pytest.raises(BoardError, match="does not answer"):
        open_board(f"etherbone:127.0.0.1:9,{at}").run(PROGRAM, INPUTS)
    with pytest.raises(BoardError, match="start litex_server"):
        open_board(f"litex_server:127.0.0.1:9,{at}")
    with pytest.raises(BoardError, match="cannot map"):
        open_board(f"devmem:{tmp_path / 'none'},{at}")
    with pytest.raises(BoardError, match="as a serial port"):
        open_board(f"uart:{tmp_path / 'none'},{at}")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "must begin with devmem, uio"),
        ("serial:/dev/ttyUSB0", "not 'serial'"),
        ("uart", "write the device, file or host"),
        ("uart:/dev/null,speed=3", "settings of uart are baud, bytes"),
        ("uart:/dev/null,baud=7,memory=0,registers=0,bytes=4", "no rate of 7 baud"),
        ("etherbone:localhost:http,memory=0", "port of 'localhost:http' must be a number"),
        ("devmem:/dev/null,memory=0", "needs registers=NUMBER"),
        ("devmem:/dev/null,registers=here", "must be a number, not 'here'"),
    ],
)
def test_wrong_addresses_say_what_is_allowed(address: str, message: str) -> None:
    with pytest.raises((UsageError, BoardError), match=message):
        open_board(address)


def test_a_network_address_may_leave_out_the_port() -> None:
    settings = ",memory=0x40000000,registers=0x80000000,bytes=64"
    assert parse_address("etherbone:192.168.1.50" + settings).host() == ("192.168.1.50", PORT)
    assert parse_address("etherbone:board:99" + settings).host() == ("board", 99)


def test_only_boards_have_an_address() -> None:
    with pytest.raises(UsageError, match="a board is board:ADDRESS"):
        backend_kind("rtl:fast")
