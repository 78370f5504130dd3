"""The host driver on a transport whose calls block, as a memory-mapped board has."""

import asyncio
from dataclasses import replace

import pytest

from intloom.hw.spec import regs
from intloom.hw.spec.isa import DRAM_BITS
from intloom.sim.host.run_program import RunSetup, run_blocking, run_program

BASE = 0x1_2000_0040
FINGERPRINT = 0xABCD


class Board:
    """Registers, memory and interrupt of an accelerator that ends every program at once."""

    def __init__(self, ending="interrupt"):
        self.registers = dict.fromkeys((r.name for r in regs.REGISTERS), 0) | {"FINGERPRINT": FINGERPRINT}
        self.image = bytearray(64)
        self.cycle = 0
        self.limit = None
        self.ending = ending
        self.writes = []

    async def read(self, name):
        return self.registers[name]

    async def write(self, name, value):
        self.writes.append(name)
        self.registers[name] = value
        if name == "CONTROL":
            self.registers |= {"STATUS": regs.pack("STATUS", done=1), "CYCLES": 17}
            self.cycle += 17

    def arm(self, limit):
        assert "CONTROL" not in self.writes
        self.limit = limit

    async def wait(self):
        return self.ending


class BoardMemory:
    def __init__(self, board):
        self.board = board

    def read(self, address, length):
        return bytes(self.board.image[address : address + length])

    def write(self, address, data):
        assert not self.board.writes, "the image is written before the registers"
        self.board.image[address : address + len(data)] = data


def setup(**changes):
    return RunSetup(memory_base=BASE, memory_words=64, program_word=2, instructions=3, watchdog=500, **changes)


def test_a_blocking_transport_runs_a_program():
    board = Board()
    report = run_blocking(run_program(board, BoardMemory(board), board, setup(image={8: b"abc"}), 1000))
    assert board.image[8:11] == b"abc"
    assert (report.ended, report.fingerprint, report.first_cycle, report.last_cycle) == (
        "interrupt",
        FINGERPRINT,
        0,
        17,
    )
    assert report.status["done"] == 1 and report.counters["CYCLES"] == 17
    assert board.limit == 1000
    assert board.registers["BASE_LOW"] == BASE & 0xFFFF_FFFF and board.registers["BASE_HIGH"] == BASE >> 32
    assert board.writes[-1] == "CONTROL" and board.registers["LENGTH"] == 3


@pytest.mark.parametrize("words", [1, (1 << DRAM_BITS) - 1, 1 << DRAM_BITS, 1 << 40])
def test_a_program_may_address_as_many_words_as_offsets_reach(words):
    board = Board()
    run_blocking(run_program(board, None, board, replace(setup(), memory_words=words), 10))
    written = {name: board.registers[name] for name in board.writes if name != "CONTROL"}
    assert written == {
        "PROGRAM": 2, "LENGTH": 3, "BASE_LOW": 0x2000_0040, "BASE_HIGH": 1, "WATCHDOG": 500, "IRQ_ENABLE": 3,
        "LIMIT": min(words, (1 << DRAM_BITS) - 1),
    }  # fmt: skip


def test_the_report_tells_a_timeout():
    board = Board("timeout")
    assert run_blocking(run_program(board, None, board, setup(), 10)).ended == "timeout"


def test_a_transport_that_suspends_is_refused():
    with pytest.raises(RuntimeError, match="only transports whose calls block"):
        run_blocking(asyncio.sleep(0))
