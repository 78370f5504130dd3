"""The connections of accelerator, engine and MAC unit: short programs in Amaranth's simulator.

`tools.mutate` plants its faults at elaboration, where the other benches would build a simulator for each. Results are
those of the instruction simulator; counters, status and interrupts follow from the program and from the bus.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import pytest
from amaranth.hdl import Cat, Fragment, Signal
from amaranth.sim import Simulator

from intloom.hw.bus.axi4 import Resp
from intloom.hw.control import counters as counters_module
from intloom.hw.control.counters import Counters
from intloom.hw.control.dispatch import Dispatch
from intloom.hw.control.fetch import Fetch
from intloom.hw.control.run_control import HALT_LATENCY
from intloom.hw.control.watchdog import Watchdog
from intloom.hw.control.window import Window
from intloom.hw.dma.load import LoadUnit
from intloom.hw.dma.store import StoreUnit
from intloom.hw.mac.unit import MacUnit
from intloom.hw.memory.scratchpad import READERS, WRITERS, Scratchpad
from intloom.hw.memory.weights import WeightMemory
from intloom.hw.spec import regs
from intloom.hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind, TableUse, Unit, decode, encode, make
from intloom.hw.spec.regs import COUNTER_BITS, COUNTERS, SHORT_COUNTER_BITS, Cause
from intloom.sim.rtl.counter_checks import BenchCounts, contradictions
from tests.hw.memory.stored import stored_words
from tests.hw.npu.short_programs import (
    MEMORY_WORDS,
    Program,
    program_of_different_convs,
    random_short_program,
)
from tests.sim.random_programs.short_runs import DONE, Ending, altered, checked
from tests.support.shapes import SHAPES
from tools.timing_diagrams.system import DOMAINS, System

pytestmark = pytest.mark.slow
PARAMS = SHAPES["nano"].replace(scratch_kib=4)
_BASE = 0x4000_0000
_LIMIT = 6000
"""Cycles after which a program has not ended."""
_WATCHDOG = 220
"""The programs whose results are checked are 207 cycles without progress at most, but 257 without a beat, and 441
without the end of an instruction: both must count."""
_PAUSES = 0.2
"""Chance that a side of the bus pauses in a cycle."""
_INDICES = (0x55555, 0xAAAAA)
"""Of faulty instructions: bits with both values for each unit."""
_FAULT_WATCHDOG = 100
"""More cycles than such a program is without progress before the fault."""
_FAR = MEMORY_WORDS // 2 + 3
"""Word in memory of data that a channel refuses."""
_PATIENCE = 50
"""Cycles in which a soft reset does not end while the bus is busy."""
_LONG_ROW, _LONG_ROWS = 16, 12
"""Of a result that takes more cycles than the watchdog allows."""
_FLAGS = regs.pack("IRQ_STATUS", done=1, error=1)
_BUSY = regs.pack("STATUS", busy=1)
_REGISTER_BITS = 8 * regs.REGISTER_BYTES
_RESET, _START = (regs.pack("CONTROL", **{name: 1}) for name in ("reset", "start"))


@dataclass
class Machine(System):
    """The accelerator with a memory that it changes; each side of the bus pauses at random."""

    memory: bytearray = field(default_factory=bytearray)
    responses: dict[int, Resp] = field(default_factory=dict)
    """Of words that do not respond with OKAY."""
    refused: str = ""
    """Channel that transfers nothing of the upper half of the memory."""
    reading: deque[tuple[int, bool]] = field(default_factory=deque)
    """Address of each beat that has been requested, and whether it is a burst's last."""
    writing: deque[int] = field(default_factory=deque)
    """Offset of the next beat of each burst."""
    written: deque[int] = field(default_factory=deque)
    """Offset of the last beat of each burst without a response."""
    next_window: dict[str, int] = field(default_factory=dict)
    """Registers that are written while a program runs, which keeps its window."""
    beats: dict[str, int] = field(default_factory=lambda: {"read_beats": 0, "write_beats": 0})
    """Beats that the memory saw."""
    cycles: int = 0
    """From the start to the interrupt."""
    started: Counter[Unit] = field(default_factory=Counter)
    done: Counter[Unit] = field(default_factory=Counter)
    """Pulses of the trace port."""
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    next_index: int | None = None
    """Index of the instruction after BEGIN, which counts from there on: no short program reaches the upper bits."""

    def _pauses(self) -> bool:
        return self.rng.random() < _PAUSES

    def _takes(self, channel: str, offset: int) -> bool:
        return not (self.refused == channel and offset >= len(self.memory) // 2)

    def _takes_address(self, ctx: Any, channel: str) -> bool:
        offer, address = (getattr(self.npu, f"m_axi_{channel}{wire}") for wire in ("valid", "addr"))
        return not ctx.get(offer) or self._takes(channel, ctx.get(address) - _BASE)

    def _word(self, address: int) -> int:
        size = self.params.word_bytes
        assert _BASE <= address < _BASE + len(self.memory), f"a read of {address:x}"
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

    async def read_memory(self, ctx: Any) -> None:
        """Answer read bursts in order."""
        npu: Any = self.npu
        addresses = self.reading
        offered = False
        while True:
            offered = bool(addresses) and self._takes("r", addresses[0][0] - _BASE) and (offered or not self._pauses())
            ctx.set(npu.m_axi_rvalid, offered)
            if offered:
                address, last = addresses[0]
                ctx.set(npu.m_axi_rdata, self._word(address))
                ctx.set(npu.m_axi_rresp, self.responses.get((address - _BASE) // self.params.word_bytes, Resp.OKAY))
                ctx.set(npu.m_axi_rlast, last)
            ctx.set(npu.m_axi_arready, self._takes_address(ctx, "ar") and not self._pauses())
            *_, ar, address, length, r = await ctx.tick().sample(
                npu.m_axi_arvalid & npu.m_axi_arready, npu.m_axi_araddr, npu.m_axi_arlen, npu.m_axi_rready
            )
            if offered and r:
                addresses.popleft()
                offered = False
                self.beats["read_beats"] += 1
            if ar:
                beats = range(length + 1)
                addresses += [(address + beat * self.params.word_bytes, beat == length) for beat in beats]

    async def write_memory(self, ctx: Any) -> None:
        """Accept write bursts of whole words and answer them."""
        npu: Any = self.npu
        size = self.params.word_bytes
        bursts, written = self.writing, self.written
        offered = False
        while True:
            offered = bool(written) and self._takes("b", written[0]) and (offered or not self._pauses())
            ctx.set(npu.m_axi_bvalid, offered)
            if offered:
                ctx.set(npu.m_axi_bresp, self.responses.get(written[0] // size, Resp.OKAY))
            ctx.set(npu.m_axi_awready, self._takes_address(ctx, "aw") and not self._pauses())
            ctx.set(npu.m_axi_wready, bool(bursts) and self._takes("w", bursts[0]) and not self._pauses())
            *_, aw, address, w, data, strobes, last, b = await ctx.tick().sample(
                npu.m_axi_awvalid & npu.m_axi_awready,
                npu.m_axi_awaddr,
                npu.m_axi_wvalid & npu.m_axi_wready,
                npu.m_axi_wdata,
                npu.m_axi_wstrb,
                npu.m_axi_wlast,
                npu.m_axi_bready,
            )
            if offered and b:
                written.popleft()
                offered = False
            if w:
                # Words that a store could not read write nothing.
                assert strobes in (0, (1 << size) - 1)
                if strobes:
                    self.memory[bursts[0] : bursts[0] + size] = int(data).to_bytes(size, "little")
                self.beats["write_beats"] += 1
                bursts[0] += size
            if w and last:
                written.append(bursts.popleft() - size)
            if aw:
                bursts.append(address - _BASE)

    async def watch_trace(self, ctx: Any) -> None:
        """Count the instructions that issue and those that finish."""
        npu: Any = self.npu
        async for *_, started, done in ctx.tick().sample(npu.trace_started, npu.trace_done):
            self.started.update(unit for unit in QUEUED_UNITS if started >> unit & 1)
            self.done.update(unit for unit in QUEUED_UNITS if done >> unit & 1)
            assert self.done <= self.started

    async def write_next_window(self, ctx: Any) -> None:
        """Write the registers of a window while a program runs."""
        while True:
            await ctx.tick()
            while self.next_window:
                await self.write(ctx, *self.next_window.popitem())

    async def watch_halt(self, ctx: Any, mac: MacUnit) -> None:
        """In a halt, the MAC unit has no requests but those that wait for their grant."""
        ports = (mac.residual, mac.results)
        halted = waiting = 0
        state = (mac.unit.halt, Cat(port.valid for port in ports), Cat(port.ready for port in ports))
        async for *_, halt, valid, ready in ctx.tick().sample(*state):
            halted = halted + 1 if halt else 0
            assert halted <= HALT_LATENCY or not valid & ~waiting
            waiting = valid & ~ready

    async def skip_indices(self, ctx: Any, index: Any) -> None:
        """After BEGIN, set the index of the instruction in dispatch."""
        async for *_, now in ctx.tick().sample(index):
            if now == 1 and self.next_index is not None:
                ctx.set(index, self.next_index)

    async def read_counters(self, ctx: Any, upper: Any) -> dict[str, int]:
        """Read all counters while other upper bits, which no short program reaches, are in their memory."""
        await ctx.tick().repeat(Counters.SCAN_PERIOD + Counters.LATENCY)
        entries = [ctx.get(upper[row]) for row in range(len(COUNTERS))]
        changes = [self.rng.getrandbits(COUNTER_BITS - SHORT_COUNTER_BITS) for _ in entries]
        # So often that the scan has read what it writes back.
        for _ in range(Counters.LATENCY + 1):
            for row, (entry, change) in enumerate(zip(entries, changes, strict=True)):
                ctx.set(upper[row], {"high": entry.high ^ change, "top": entry.top})
            await ctx.tick()
        rows = zip(COUNTERS, changes, strict=True)
        return {c.name: await self.read(ctx, c.name) ^ change << SHORT_COUNTER_BITS for c, change in rows}

    async def reset(self, ctx: Any) -> None:
        """Soft reset; it waits for the memory, which answers in the end."""
        await self.write(ctx, "CONTROL", _RESET)
        if self.refused:
            await ctx.tick().repeat(_PATIENCE)
            assert await self.read(ctx, "STATUS") & _BUSY
            offers = (self.npu.m_axi_arvalid, self.npu.m_axi_awvalid, self.npu.m_axi_wvalid)
            outstanding = {
                "reads": sum(last for _, last in self.reading),
                "writes": len(self.writing) + len(self.written),
                "offered": sum(ctx.get(offer) << bit for bit, offer in enumerate(offers)),
            }
            assert any(outstanding.values())
            assert regs.unpack("OUTSTANDING", await self.read(ctx, "OUTSTANDING")) == outstanding
            self.refused = ""
        for _ in range(_LIMIT):
            if not await self.read(ctx, "STATUS") & _BUSY:
                break
        assert not await self.read(ctx, "STATUS") and not await self.read(ctx, "OUTSTANDING")

    async def run(
        self,
        ctx: Any,
        memory: bytes,
        first_word: int,
        instructions: int,
        limit: int = MEMORY_WORDS,
        watchdog: int = _WATCHDOG,
    ) -> None:
        """Run a program to its interrupt."""
        self.memory[:] = memory
        self.beats = dict.fromkeys(self.beats, 0)
        self.started.clear()
        self.done.clear()
        settings = {"BASE_LOW": _BASE, "LIMIT": limit, "PROGRAM": first_word, "LENGTH": instructions}
        settings |= {"IRQ_STATUS": _FLAGS, "IRQ_ENABLE": _FLAGS, "WATCHDOG": watchdog}
        for name, value in settings.items():
            await self.write(ctx, name, value)
        assert not ctx.get(self.npu.irq)
        await self.write(ctx, "CONTROL", _START)
        self.next_window = {"BASE_LOW": ~_BASE & (1 << _REGISTER_BITS) - 1, "LIMIT": 0}
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


def _finds_old_data(program: Program) -> bool:
    """Whether CONVs load both tables, and the first one has no correction where the last program has stored one."""
    convs = [i for i in _instructions(program) if i.kind is Kind.CONV]
    return [i["table"] for i in convs].count(TableUse.LOAD) > 1 and not convs[0]["subtract_zp_in"]


def _clock_enables(fragment: Fragment) -> Iterator[Signal]:
    """The enables of gated clocks."""
    for statement in fragment.statements.get("comb", ()):
        driven = (signal for signal in statement._lhs_signals() if isinstance(signal, Signal))
        yield from (signal for signal in driven if signal.name.endswith("_clock_enable"))
    for inner, _name, _location in fragment.subfragments:
        yield from _clock_enables(inner)


def _first_program(fits: Callable[[Program], bool]) -> Program:
    programs = (random_short_program(random.Random(seed), PARAMS, 0) for seed in count())
    return replace(next(filter(fits, programs)), watchdog=_WATCHDOG)


def _parts(fragment: Fragment) -> Iterator[tuple[type[Any], Any]]:
    """All components inside a design, by class."""
    for inner, _name, _location in fragment.subfragments:
        yield from ((type(origin), origin) for origin in inner.origins or ())
        yield from _parts(inner)


def _requests(parts: dict[type[Any], Any]) -> list[Signal]:
    """Requests of all units to the memories."""
    weights = parts[WeightMemory]
    ports = [getattr(parts[Scratchpad], name) for name in (*READERS, *WRITERS)]
    return [port.valid for port in (*ports, weights.read, weights.write)]


async def _check_configuration(machine: Machine, ctx: Any, parts: dict[type[Any], Any]) -> None:
    """Every bit of the registers reaches the components that use it."""
    fetch = parts[Fetch]
    names = ("BASE_LOW", "LIMIT", "PROGRAM", "LENGTH", "WATCHDOG")
    values = {name: machine.rng.getrandbits(_REGISTER_BITS) for name in names}
    for inverted in (0, (1 << _REGISTER_BITS) - 1):
        for name, value in values.items():
            await machine.write(ctx, name, value ^ inverted)
        await ctx.tick().repeat(Window.LATENCY)
        base, limit, program, length, watchdog = (value ^ inverted for value in values.values())
        assert ctx.get(fetch.program) == program % (1 << len(fetch.program))
        assert ctx.get(fetch.length) == length
        assert ctx.get(parts[Watchdog].limit) == watchdog
        window = Window.model(base // PARAMS.word_bytes, limit % (1 << len(fetch.window.limit)), PARAMS)
        for unit in (fetch, parts[LoadUnit], parts[StoreUnit]):
            assert {name: ctx.get(getattr(unit.window, name)) for name in window} == window


async def _check_results(
    machine: Machine, ctx: Any, program: Program, upper: Any, enables: Sequence[Signal], requests: Sequence[Signal]
) -> None:
    """A program leaves what the instruction simulator leaves, counters and trace agree, clocks and requests stop."""
    # The program is the last that is read: with a smaller limit it does not run.
    limit = program.first_word + program.instructions * INSTRUCTION_BYTES // PARAMS.word_bytes
    await machine.run(ctx, program.before, program.first_word, program.instructions, limit, program.watchdog)
    assert await machine.end(ctx) == DONE
    assert machine.memory == program.after
    instructions = _instructions(program)
    assert machine.started == machine.done == Counter(i.unit for i in instructions if i.unit in QUEUED_UNITS)
    counters = await machine.read_counters(ctx, upper)
    seen = BenchCounts(cycles=machine.cycles, **machine.beats)
    assert not [*contradictions(counters, instructions, seen)]
    assert enables and not any(ctx.get(enable) for enable in enables)
    assert not any(ctx.get(request) for request in requests)


@dataclass(frozen=True)
class Faulty:
    """An instruction that ends in a fault."""

    code: bytes
    cause: Cause
    unit: Unit
    responses: dict[int, Resp] = field(default_factory=dict)
    refused: str = ""


def _faulty() -> Iterator[Faulty]:
    outside = {Kind.LOAD: "local", Kind.STORE: "local", Kind.CONV: "out_base", Kind.VCOPY: "a_base"}
    size = {"out_w": _LONG_ROW, "out_h": _LONG_ROWS, "out_row": _LONG_ROW}
    conv = {"in_w": _LONG_ROW, "in_h": _LONG_ROWS, "in_row": _LONG_ROW, "residual": 1}
    for kind, inputs in ((Kind.CONV, conv), (Kind.VCOPY, {})):
        i = make(kind, **size, **inputs)
        yield from [Faulty(encode(i), Cause.WATCHDOG, i.unit)] * len(_INDICES)
    for kind, name in outside.items():
        i = make(kind, **{name: PARAMS.scratch_words})
        yield Faulty(encode(i), Cause.SCRATCH_RANGE, i.unit)
        other = Unit.VEC if i.unit is Unit.LOAD else Unit.LOAD
        yield Faulty(encode(make(kind, **{f"wait_{other.name.lower()}": 5})), Cause.WATCHDOG, i.unit)
    errors = {Kind.LOAD: (Cause.READ_SLVERR, Cause.READ_DECERR), Kind.STORE: (Cause.WRITE_SLVERR, Cause.WRITE_DECERR)}
    for kind, causes in errors.items():
        i = make(kind, dram=_FAR, n0=3)
        for cause, response in zip(causes, (Resp.SLVERR, Resp.DECERR), strict=True):
            yield Faulty(encode(i), cause, i.unit, responses={_FAR + 2: response})
        for channel in ("ar", "r") if kind is Kind.LOAD else ("aw", "w", "b"):
            yield Faulty(encode(i), Cause.WATCHDOG, i.unit, refused=channel)
    yield Faulty(altered(make(Kind.LOAD), "opcode", 7), Cause.BAD_OPCODE, Unit.CONTROL)


async def _check_faults(machine: Machine, ctx: Any) -> None:
    """Faults have their cause, unit and index."""
    for number, faulty in enumerate(_faulty()):
        index = machine.next_index = _INDICES[number % len(_INDICES)]
        program = checked(PARAMS, faulty.code)
        memory = program.ljust(MEMORY_WORDS * PARAMS.word_bytes, b"\0")
        machine.responses, machine.refused = faulty.responses, faulty.refused
        await machine.run(ctx, memory, 0, len(program) // INSTRUCTION_BYTES, watchdog=_FAULT_WATCHDOG)
        assert await machine.end(ctx) == Ending(faulty.cause, faulty.unit, index)
        await machine.reset(ctx)
    await machine.run(ctx, memory, 0, len(program) // INSTRUCTION_BYTES, limit=2)
    assert (await machine.end(ctx)).cause is Cause.OUTSIDE_WINDOW


def test_results_counters_and_faults_of_short_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, since the simulator takes as long to build as to run."""
    machine, created = Machine([], PARAMS), stored_words(monkeypatch, counters_module)
    fragment = Fragment.get(machine.npu, None)
    enables, parts = [*_clock_enables(fragment)], dict(_parts(fragment))
    programs = [*map(_first_program, (_connects_all, _finds_old_data))]
    programs.append(program_of_different_convs(random.Random(1), PARAMS))
    simulator = Simulator(fragment)
    for domain in DOMAINS:
        simulator.add_clock(1e-6, domain=domain)

    async def bench(ctx: Any) -> None:
        await _check_configuration(machine, ctx, parts)
        for program in programs:
            await _check_results(machine, ctx, program, created[0], enables, _requests(parts))
        await _check_faults(machine, ctx)

    simulator.add_testbench(bench)
    skip_indices = partial(machine.skip_indices, index=parts[Dispatch].index)
    memory = (machine.read_memory, machine.write_memory)
    watch_halt = partial(machine.watch_halt, mac=parts[MacUnit])
    for process in (*memory, machine.watch_trace, machine.write_next_window, skip_indices, watch_halt):
        simulator.add_testbench(process, background=True)
    simulator.run()
