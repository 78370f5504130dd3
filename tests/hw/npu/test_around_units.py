"""The engine around its units, whose part the bench plays: programs reach them, and what they report comes out."""

import random
from collections import deque
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Cat, Module

from intloom.hw import engine as engine_module
from intloom.hw.control import waits as waits_module
from intloom.hw.control.dispatch import Dispatch
from intloom.hw.control.queue import InstructionQueues
from intloom.hw.control.waits import WaitChecker
from intloom.hw.engine import Engine
from intloom.hw.spec import isa
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Unit
from intloom.hw.spec.params import preset
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from tests.hw.control.test_dispatch import _begin, _work
from tests.hw.control.test_queue import _with_waits
from tests.hw.dma.moves import set_window
from tests.hw.memory.stored import stored_words
from tests.hw.streams import run, set_together

PARAMS = preset("nano").replace(memory_parity=True, clock_gating=True)
UNITS = {"LoadUnit": Unit.LOAD, "MacUnit": Unit.MAC, "VectorUnit": Unit.VEC, "StoreUnit": Unit.STORE}
MEMORIES = {"Scratchpad": Cause.SCRATCH_PARITY, "WeightMemory": Cause.WEIGHT_PARITY}
PARTS: list[type[Any]] = [getattr(engine_module, name) for name in (*UNITS, *MEMORIES)]
BASE, LIMIT = 0x1234, 1000


def _plain(unit: Unit) -> Instruction:
    return isa.make(next(spec.kind for spec in isa.INSTRUCTIONS if spec.unit is unit))


_PATIENCE = 500
"""Cycles without progress; more than a program spends before its first instruction issues."""


class Bench:
    """An engine whose units and memories are ports alone, a program in memory, and how far it has come."""

    def __init__(self, rng: random.Random, monkeypatch: pytest.MonkeyPatch, works: Sequence[Instruction] = ()) -> None:
        self.rng, self.engine, self.parts = rng, Engine(PARAMS), dict[str, Any]()
        for kind in PARTS:
            monkeypatch.setattr(engine_module, kind.__name__, self._stub(kind))
        self.waits = stored_words(monkeypatch, waits_module)
        counts = [0] * len(QUEUED_UNITS)
        self.program: list[Instruction] = [_begin(PARAMS)]
        for number in range(len(works) or 40):
            self.program.append(works[number] if works else _with_waits(rng, _work(rng, PARAMS), counts))
            counts[self.program[-1].unit] += 1
        # The program ends after all of its instructions, whether END waits for them or not.
        waits = {f"wait_{u.name.lower()}": rng.randint(0, n) for u, n in zip(QUEUED_UNITS, counts, strict=True)}
        self.end = isa.make("END", **waits)
        self.queued = {u: [(i, k) for k, i in enumerate(self.program) if i.unit is u] for u in QUEUED_UNITS}
        self.taken, self.finished = list[int](), list[int]()
        self.pauses = 0.4
        """Chance that the memory pauses in a cycle."""

    def _stub(self, kind: type[Any]) -> Any:
        def make(params: Any) -> Any:
            part = type(kind.__name__, (kind,), {"elaborate": lambda _self, _platform: Module()})(params)
            return self.parts.setdefault(kind.__name__, part)

        return make

    def ports(self) -> list[Any]:
        """Those of the units."""
        return [self.parts[name].unit for name in UNITS]

    async def launch(self, ctx: Any, program: int = 0) -> None:
        """Start; all units are idle, and the waits of a program before this one are met by none of its counts."""
        self.taken, self.finished = [0] * len(QUEUED_UNITS), [0] * len(QUEUED_UNITS)
        set_window(ctx, self.engine.window, BASE, LIMIT)
        ctx.set(Cat(port.idle for port in self.ports()), ~0)
        for word in (word for words in self.waits for word in words):
            ctx.set(word, ~0)
        ctx.set(self.engine.program, program)
        ctx.set(self.engine.length, len(self.program) + 1)
        ctx.set(self.engine.launch, 1)
        await ctx.tick()
        ctx.set(self.engine.launch, 0)
        await ctx.tick()
        ctx.set(self.engine.running, 1)

    async def memory(self, ctx: Any) -> None:
        """Holds the program."""
        bus, size = self.engine.bus, PARAMS.word_bytes
        image = add_check(map(isa.encode, (*self.program, self.end)))
        beats: deque[tuple[int, bool]] = deque()
        while True:
            ctx.set(bus.ar.ready, self.rng.random() >= self.pauses)
            ctx.set(bus.r.valid, bool(beats) and (ctx.get(bus.r.valid) or self.rng.random() >= self.pauses))
            if beats:
                at, last = beats[0]
                word = int.from_bytes(image[at : at + size], "little")
                ctx.set(bus.r.payload, {"id": 0, "data": word, "resp": 0, "last": last})
            *_, asked, burst, fires = await ctx.tick().sample(
                bus.ar.valid & bus.ar.ready, bus.ar.payload, bus.r.valid & bus.r.ready
            )
            for _ in range(fires):
                beats.popleft()
                ctx.set(bus.r.valid, 0)
            if asked:
                first = burst.addr - BASE * size
                beats += [(first + beat * size, beat == burst.len) for beat in range(burst.len + 1)]
            assert not (beats and ctx.get(self.engine.bus_idle)), "data is outstanding"

    async def work(self, ctx: Any, take: float, finish: float, stop: float = 0.0) -> None:
        """Take instructions and finish them at random, each after its waits.

        With `stop`, up to a cycle of that probability, and no longer than the watchdog allows.
        """
        quiet = 0
        while sum(self.finished) < len(self.program) - 1 and (
            not stop or (quiet < _PATIENCE // 2 and self.rng.random() >= stop)
        ):
            quiet += 1
            idle = self._idles(Unit.LOAD, Unit.STORE)
            for unit, port in zip(QUEUED_UNITS, self.ports(), strict=True):
                ready, done = (
                    self.rng.random() < take,
                    self.rng.random() < finish * (self.finished[unit] < self.taken[unit]),
                )
                ctx.set(Cat(port.ready, port.done, port.idle), ready | done << 1 | self._idles(unit) << 2)
                assert ctx.get(self.engine.done[unit]) == done == ctx.get(self.engine.units[unit].done)
                if ctx.get(port.valid):
                    self._check(unit, (ctx.get(port.instruction), ctx.get(port.index)))
                    self.taken[unit] += ready
                self.finished[unit] += done
                quiet *= not done
            assert ctx.get(self.engine.bus_idle) <= idle
            assert not ctx.get(self.engine.ended)
            assert not ctx.get(self.engine.fault.valid)
            await ctx.tick()
        for unit, port in zip(QUEUED_UNITS, self.ports(), strict=True):
            ctx.set(Cat(port.ready, port.done, port.idle), self._idles(unit) << 2)

    def _idles(self, *units: Unit) -> bool:
        return all(self.finished[unit] == self.taken[unit] for unit in units)

    def _check(self, unit: Unit, offered: tuple[int, int]) -> None:
        """The unit's next instruction is offered, and its waits are met."""
        instruction, index = self.queued[unit][self.taken[unit]]
        assert WaitChecker.model(self.finished, [instruction[f"wait_{u.name.lower()}"] for u in QUEUED_UNITS])
        found = int.from_bytes(isa.encode(instruction), "little")
        size = 8 * PARAMS.word_bytes
        words = [found >> at & (1 << size) - 1 for at in range(0, 8 * isa.INSTRUCTION_BYTES, size)]
        wanted, _ = InstructionQueues.model(unit, [0] * len(QUEUED_UNITS) + words, size)
        assert offered == (wanted, index)

    async def check_suspect(self, ctx: Any) -> None:
        """The watchdog stops the program."""
        await ctx.tick().until(self.engine.fault.valid)
        fault = ctx.get(self.engine.fault.fault)
        assert (fault.cause, (fault.index, fault.unit)) == (Cause.WATCHDOG, self._suspect(ctx))

    def _suspect(self, ctx: Any) -> tuple[int, Unit]:
        """The instruction that the watchdog names: the oldest of those issued last, and of those on offer."""
        issued = [(self.queued[u][self.taken[u] - 1][1], u) for u in QUEUED_UNITS if not self._idles(u)]
        on_offer = [u for u, port in zip(QUEUED_UNITS, self.ports(), strict=True) if ctx.get(port.valid)]
        left = [u for u in QUEUED_UNITS if self.taken[u] < len(self.queued[u])]
        return min([*issued, *((self.queued[u][self.taken[u]][1], u) for u in (on_offer if issued else left))])


def test_a_program_reaches_its_units_and_ends_after_them(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instructions wait in units, or in queues while all units are idle."""
    bench = Bench(rng, monkeypatch)
    for rates in ((0.5, 0.1), (0.03, 0.9)):

        async def body(ctx: Any, rates: tuple[float, float] = rates) -> None:
            await bench.launch(ctx)
            await bench.work(ctx, *rates)
            await ctx.tick().until(bench.engine.ended)

        run(bench.engine, body, background=[bench.memory])


def test_the_end_has_its_waits_whenever_a_queue_writes_others(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit takes its first instruction around the cycle in which END is dispatched: its second one's waits follow."""
    bench = Bench(rng, monkeypatch, [_plain(rng.choice(QUEUED_UNITS))] * 2)
    bench.pauses = 0.0
    instruction = isa.INSTRUCTION_BYTES // PARAMS.word_bytes + Dispatch.GAP
    for late in range(3 * instruction, 4 * instruction, len(QUEUED_UNITS)):

        async def body(ctx: Any, late: int = late) -> None:
            ctx.set(bench.engine.watchdog, _PATIENCE)
            await bench.launch(ctx)
            await ctx.tick().repeat(late)
            await bench.work(ctx, 1, 1)
            await ctx.tick().until(bench.engine.ended | bench.engine.fault.valid)
            assert ctx.get(bench.engine.ended)

        run(bench.engine, body, background=[bench.memory])


def test_the_watchdog_names_an_instruction_that_is_stuck(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """All units stop in one cycle: most of them at work, or most of them idle before an instruction on offer."""
    bench = Bench(rng, monkeypatch)
    for rates in ((0.5, 0.003, 0.1), *[(0.5, 0.003, 0.004), (0.02, 0.1, 0.004)] * 4):

        async def body(ctx: Any, rates: tuple[float, float, float] = rates) -> None:
            ctx.set(bench.engine.watchdog, _PATIENCE)
            await bench.launch(ctx)
            await bench.work(ctx, *rates)
            if sum(bench.finished) < len(bench.program) - 1:
                await bench.check_suspect(ctx)

        run(bench.engine, body, background=[bench.memory])


def test_an_instruction_is_not_stuck_while_it_waits(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a unit that works on a later instruction, too."""
    works, waits = rng.sample(QUEUED_UNITS, 2)
    program = [_plain(works), _plain(waits).with_fields(**{f"wait_{works.name.lower()}": 1}), _plain(works)]
    bench = Bench(rng, monkeypatch, program)

    async def body(ctx: Any) -> None:
        ctx.set(bench.engine.watchdog, _PATIENCE)
        await bench.launch(ctx)
        await bench.work(ctx, 1, 0, 1e-9)
        assert bench.taken[works] == 2
        await bench.check_suspect(ctx)

    run(bench.engine, body, background=[bench.memory])


def test_words_that_are_written_are_progress(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory takes no address, so that nothing else happens."""
    bench = Bench(rng, monkeypatch)

    async def body(ctx: Any) -> None:
        ctx.set(bench.engine.watchdog, _PATIENCE)
        ctx.set(Cat(bench.parts["StoreUnit"].w.valid, bench.engine.bus.w.ready), ~0)
        await bench.launch(ctx)
        await ctx.tick().repeat(2 * _PATIENCE)
        assert not ctx.get(bench.engine.fault.valid)
        ctx.set(bench.engine.bus.w.ready, 0)
        await ctx.tick().until(bench.engine.fault.valid)

    run(bench.engine, body)


def test_every_part_reports_its_fault(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of units cause and index, of memories the unit that reads and the address, of a program outside the window."""
    bench = Bench(rng, monkeypatch)
    for name, ones in product((*UNITS, *MEMORIES, "outside"), (0b01, 0b10)):
        bits = [ones >> bit % 2 & 1 for bit in range(isa.COUNT_BITS)]

        async def body(ctx: Any, name: str = name, bits: list[int] = bits) -> None:
            await bench.launch(ctx, LIMIT * (name == "outside"))
            expected = Cause.OUTSIDE_WINDOW, Unit.CONTROL, 0
            if name in UNITS:
                port = bench.parts[name].unit
                set_together(ctx, Cat(port.fault, *port.cause, *port.fault_index), [1, *bits[:5], *bits])
                expected = ctx.get(port.cause), UNITS[name], ctx.get(port.fault_index)
            elif name in MEMORIES:
                error = bench.parts[name].error
                set_together(
                    ctx, Cat(error.valid, *error.unit, *error.address), [1, *(bits * 2)[: error.shape().size - 1]]
                )
                expected = MEMORIES[name], ctx.get(error.unit), ctx.get(error.address)
            await ctx.tick().until(bench.engine.fault.valid)
            fault = ctx.get(bench.engine.fault.fault)
            assert (fault.cause, fault.unit, fault.index) == expected, name

        run(bench.engine, body)
