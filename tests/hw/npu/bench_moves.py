"""Cocotb tests: programs of LOAD and STORE against a model, under random latency and backpressure."""

from typing import Any

import cocotb

from intloom.hw.spec import isa, regs
from tests.hw.npu.host import Host
from tests.hw.npu.programs import MoveModel, random_round_trip


async def _moves(dut: Any, name: str, stalls: float, pairs: int) -> None:
    host = await Host(dut, name).begin(stalls)
    words = host.memory_bytes // host.word
    image = host.rng.randbytes(host.memory_bytes)
    host.ram.write(0, image)
    half = words // 2
    done = {"LOAD": 0, "STORE": 0}
    moves = []
    for _ in range(pairs):
        moves += random_round_trip(host.rng, host.params, range(half // 2, half), range(half, words), done)
    program = [host.begin_instruction(), *moves, isa.make("END")]
    host.put(program)
    before = host.ram.read(0, host.memory_bytes)
    model = MoveModel([before[i : i + host.word] for i in range(0, host.memory_bytes, host.word)])
    for move in moves:
        model.run(move)
    status = await host.run(program)
    assert status == {"busy": 0, "done": 1, "error": 0, "cause": 0, "unit": 0}
    assert host.ram.read(0, host.memory_bytes) == b"".join(model.memory)
    loaded = sum(m["n0"] * m["n1"] * m["n2"] for m in moves[::2])
    assert await host.read("LOAD_BUSY") == await host.read("WRITE_BEATS") == await host.read("STORE_BUSY") == loaded
    assert await host.read("READ_BEATS") == loaded + len(program) * isa.INSTRUCTION_BYTES // host.word
    assert await host.read("LOAD_DONE") == await host.read("STORE_DONE") == pairs
    assert await host.read("CYCLES") >= loaded


@cocotb.test()
async def empty_program(dut: Any) -> None:
    """BEGIN and END alone end well, twice."""
    host = await Host(dut, "empty").begin()
    for _ in range(2):
        status = await host.run([host.begin_instruction(), isa.make("END")])
        assert status == regs.unpack("STATUS", regs.pack("STATUS", done=1))


@cocotb.test()
async def moves_at_full_speed(dut: Any) -> None:
    """A memory that never refuses."""
    await _moves(dut, "fast", 0.0, 12)


@cocotb.test()
async def moves_with_stalls(dut: Any) -> None:
    """A memory that refuses on every channel."""
    await _moves(dut, "stalls", 0.5, 12)
