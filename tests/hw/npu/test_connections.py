"""The connections of accelerator, engine and MAC unit: short programs in Amaranth's simulator.

`tools.mutate` plants its faults at elaboration, where the other benches would build a simulator for each. Results are
those of the instruction simulator; counters, status and interrupts follow from the program and from the bus.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from amaranth.hdl import Fragment
from amaranth.sim import Simulator

from intloom.hw.spec import regs
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind, Unit, decode, encode, make
from intloom.hw.spec.regs import COUNTERS, Cause
from intloom.sim.rtl.counter_checks import BenchCounts, contradictions
from tests.hw.npu.short_programs import MEMORY_WORDS, Program, random_short_program
from tests.sim.random_programs.short_runs import DONE, Ending, altered, checked
from tests.support.shapes import SHAPES
from tools.timing_diagrams.system import DOMAINS, System

pytestmark = pytest.mark.slow
PARAMS = SHAPES["nano"].replace(scratch_kib=4)
_BASE = 0x4000_0000
_LIMIT = 6000
"""Cycles after which a program has not ended."""
_WATCHDOG = 400
_BEFORE = 0b101010
"""Instructions before one with a higher index."""
_FLAGS = regs.pack("IRQ_STATUS", done=1, error=1)
_RESET, _START = (regs.pack("CONTROL", **{name: 1}) for name in ("reset", "start"))


@dataclass
class Machine(System):
    """The accelerator with a memory that it changes."""

    memory: bytearray = field(default_factory=bytearray)
    beats: dict[str, int] = field(default_factory=lambda: {"read_beats": 0, "write_beats": 0})
    """Beats that the memory saw."""
    cycles: int = 0
    """From the start to the interrupt."""

    def _word(self, address: int) -> int:
        size = self.params.word_bytes
        assert _BASE <= address < _BASE + len(self.memory), f"a read of {address:x}"
        self.beats["read_beats"] += 1
        return int.from_bytes(self.memory[address - _BASE : address - _BASE + size], "little")

    async def read(self, ctx: Any, register: str) -> int:
        """Read a register."""
        npu: Any = self.npu
        ctx.set(npu.s_axi_araddr, regs.register(register).offset)
        ctx.set(npu.s_axi_arvalid, 1)
        ctx.set(npu.s_axi_rready, 1)
        while True:
            *_, address, response, value = await ctx.tick().sample(npu.s_axi_arready, npu.s_axi_rvalid, npu.s_axi_rdata)
            if address:
                ctx.set(npu.s_axi_arvalid, 0)
            if response:
                ctx.set(npu.s_axi_rready, 0)
                return int(value)

    async def write_memory(self, ctx: Any) -> None:
        """Accept write bursts of whole words and answer them."""
        npu, size, owed = self.npu, self.params.word_bytes, 0
        bursts: list[int] = []
        ctx.set(npu.m_axi_awready, 1)
        ctx.set(npu.m_axi_wready, 1)
        while True:
            *_, aw, address, w, data, strobes, last, b = await ctx.tick().sample(
                npu.m_axi_awvalid,
                npu.m_axi_awaddr,
                npu.m_axi_wvalid,
                npu.m_axi_wdata,
                npu.m_axi_wstrb,
                npu.m_axi_wlast,
                npu.m_axi_bvalid & npu.m_axi_bready,
            )
            bursts += [address - _BASE] * aw
            if w:
                # Words that a store could not read write nothing.
                assert strobes in (0, (1 << size) - 1)
                if strobes:
                    self.memory[bursts[0] : bursts[0] + size] = int(data).to_bytes(size, "little")
                self.beats["write_beats"] += 1
                bursts[0] += size
            if w and last:
                bursts.pop(0)
            owed += (w and last) - b
            ctx.set(npu.m_axi_bvalid, owed > 0)

    async def run(self, ctx: Any, memory: bytes, first_word: int, instructions: int, limit: int = MEMORY_WORDS) -> None:
        """Reset the engine, run a program to its interrupt, and read its status."""
        self.memory[:] = memory
        self.beats = dict.fromkeys(self.beats, 0)
        settings = {"CONTROL": _RESET, "BASE_LOW": _BASE, "LIMIT": limit, "PROGRAM": first_word, "LENGTH": instructions}
        settings |= {"IRQ_STATUS": _FLAGS, "IRQ_ENABLE": _FLAGS, "WATCHDOG": _WATCHDOG}
        for name, value in settings.items():
            await self.write(ctx, name, value)
        assert not ctx.get(self.npu.irq)
        await self.write(ctx, "CONTROL", _START)
        for self.cycles in range(_LIMIT):
            *_, interrupt = await ctx.tick().sample(self.npu.irq)
            if interrupt:
                return
        pytest.fail(f"no interrupt within {_LIMIT} cycles")

    async def end(self, ctx: Any) -> Ending:
        """How the program ended; flags of the interrupt agree."""
        status = regs.unpack("STATUS", await self.read(ctx, "STATUS"))
        flags = regs.unpack("IRQ_STATUS", await self.read(ctx, "IRQ_STATUS"))
        assert flags == {name: status[name] for name in flags}
        index = await self.read(ctx, "ERROR_INDEX")
        return Ending(Cause(status["cause"]), Unit(status["unit"]), index) if status["error"] else DONE


def _instructions(program: Program) -> list[Instruction]:
    first = program.first_word * PARAMS.word_bytes
    code = program.before[first : first + program.instructions * INSTRUCTION_BYTES]
    return [decode(code[at : at + INSTRUCTION_BYTES]) for at in range(0, len(code), INSTRUCTION_BYTES)]


def _connects_all(program: Program) -> bool:
    """Whether a program has all units work between its first loads and last store, and CONVs use every option."""
    instructions = _instructions(program)
    convs = [i for i in instructions if i.kind is Kind.CONV]
    options = ("weight_zero_points", "subtract_zp_in", "residual", "table")
    units = {i.unit for i in instructions[3:-2]}
    has_options = all(len({i[name] for i in convs}) == 2 for name in options)
    return has_options and units == {*QUEUED_UNITS}


async def _check_results(machine: Machine, ctx: Any) -> None:
    """A program leaves what the instruction simulator leaves, and counters agree."""
    programs = (random_short_program(random.Random(seed), PARAMS, 0) for seed in count())
    program = next(filter(_connects_all, programs))
    await machine.run(ctx, program.before, program.first_word, program.instructions)
    assert await machine.end(ctx) == DONE
    assert machine.memory == program.after
    counters = {c.name: await machine.read(ctx, c.name) for c in COUNTERS}
    seen = BenchCounts(cycles=machine.cycles, **machine.beats)
    assert not [*contradictions(counters, _instructions(program), seen)]


_FAULTY = {
    **{
        f"{kind} outside": (encode(make(kind, **{name: PARAMS.scratch_words})), Ending(Cause.SCRATCH_RANGE, unit, 1))
        for kind, name, unit in (
            (Kind.LOAD, "local", Unit.LOAD),
            (Kind.STORE, "local", Unit.STORE),
            (Kind.CONV, "out_base", Unit.MAC),
            (Kind.VCOPY, "a_base", Unit.VEC),
        )
    },
    "opcode": (altered(make(Kind.LOAD), "opcode", 7), Ending(Cause.BAD_OPCODE, Unit.CONTROL, 1)),
    "wait": (encode(make(Kind.CONV, wait_vec=5)), Ending(Cause.WATCHDOG, Unit.MAC, 1)),
    "a high index": (
        encode(begin(PARAMS)) * _BEFORE + encode(make(Kind.LOAD, local=PARAMS.scratch_words)),
        Ending(Cause.SCRATCH_RANGE, Unit.LOAD, 1 + _BEFORE),
    ),
}


async def _check_faults(machine: Machine, ctx: Any) -> None:
    """Faults have their cause, unit and index."""
    for code, expected in _FAULTY.values():
        codes = (code[at : at + INSTRUCTION_BYTES] for at in range(0, len(code), INSTRUCTION_BYTES))
        program = checked(PARAMS, *codes)
        memory = program.ljust(MEMORY_WORDS * PARAMS.word_bytes, b"\0")
        await machine.run(ctx, memory, 0, len(program) // INSTRUCTION_BYTES)
        assert await machine.end(ctx) == expected
    await machine.run(ctx, memory, 0, len(program) // INSTRUCTION_BYTES, limit=2)
    assert (await machine.end(ctx)).cause is Cause.OUTSIDE_WINDOW


def test_results_counters_and_faults_of_short_programs() -> None:
    """One test, since the simulator takes as long to build as to run."""
    machine = Machine([], PARAMS, memory=bytearray())
    simulator = Simulator(Fragment.get(machine.npu, None))
    for domain in DOMAINS:
        simulator.add_clock(1e-6, domain=domain)

    async def bench(ctx: Any) -> None:
        await _check_results(machine, ctx)
        await _check_faults(machine, ctx)

    simulator.add_testbench(bench)
    for process in (machine.read_memory, machine.write_memory):
        simulator.add_testbench(process, background=True)
    simulator.run()
