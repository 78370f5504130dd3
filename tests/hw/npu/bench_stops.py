"""Cocotb tests: programs of all units, stopped at any moment; the next program runs right."""

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiResp

from intloom.hw.spec import isa
from intloom.hw.spec.isa import Instruction, Kind, Unit
from intloom.hw.spec.regs import Cause
from tests.hw.mac.cases import SCRATCH_WORDS
from tests.hw.npu.host import Host
from tests.hw.npu.work import IMAGE_WORD, compare, drain, fill, random_work, vector_kinds

ROUNDS = 2
ILLEGAL = bytes([0x7F]) + bytes(isa.INSTRUCTION_BYTES - 1)


def _tangle(host: Host) -> list[Instruction]:
    """Work for all units at once without waits, so that much is in flight at any time; results are not compared."""
    work = random_work(host, 3, vector_kinds(host.params))
    host.ram.write(0, work.image)
    body = [*fill(host), drain(host), *work.instructions]
    host.rng.shuffle(body)
    return [host.begin_instruction(), *body]


async def _recovers(host: Host) -> None:
    """The soft reset ends with the bus at rest, and a right program's results are right."""
    await host.reset()
    await host.rest()
    loads = {Kind.VTABLE, Kind.VEXP}
    kinds = vector_kinds(host.params)
    others = host.rng.sample([kind for kind in kinds if kind not in loads], 2)
    await compare(host, 0.2, 2, (*(kind for kind in kinds if kind in loads), *others))


@cocotb.test()
async def reset_in_the_midst(dut: Any) -> None:
    """The reset command comes at any moment of a program."""
    host = await Host(dut, "midst").begin(0.2)
    for _ in range(ROUNDS):
        await host.start([*_tangle(host), isa.make("END")])
        # A program that fills the scratchpad cannot be over so soon.
        await ClockCycles(dut.clk, host.rng.randrange(1, SCRATCH_WORDS))
        assert not int(dut.irq.value)
        await _recovers(host)


@cocotb.test()
async def halt_by_an_instruction(dut: Any) -> None:
    """An instruction that is none halts all units, whatever they are at."""
    host = await Host(dut, "instruction").begin(0.2)
    for _ in range(ROUNDS):
        program = _tangle(host)
        at = host.rng.randint(1, len(program))
        status = await host.run([*program[:at], ILLEGAL, *program[at:]])
        assert (status["error"], Cause(status["cause"])) == (1, Cause.BAD_OPCODE)
        assert await host.read("ERROR_INDEX") == at
        await host.rest()
        await _recovers(host)


@cocotb.test()
async def halt_by_the_bus(dut: Any) -> None:
    """A word that memory refuses, anywhere in what fills the scratchpad, halts all units."""
    host = await Host(dut, "bus").begin(0.2)
    for _ in range(ROUNDS):
        program = [*_tangle(host), isa.make("END")]
        at = host.word * (IMAGE_WORD + host.rng.randrange(SCRATCH_WORDS))
        host.ram.poison.set(at, at + host.word, AxiResp.SLVERR)
        status = await host.run(program)
        assert (Cause(status["cause"]), Unit(status["unit"])) == (Cause.READ_SLVERR, Unit.LOAD)
        assert await host.read("ERROR_INDEX") == program.index(fill(host)[0])
        await host.rest()
        host.ram.poison.set(0, 0, AxiResp.OKAY)
        await _recovers(host)
