"""The accelerator around its engine, whose part the bench plays: every bit between the registers, the engine, the bus.

Connections only: values are random, and models of the components say what follows.
"""

import random
from collections import Counter
from typing import Any

import pytest
from amaranth.hdl import Cat, Module, ResetSignal, Signal, Value

from intloom.hw import npu as npu_module
from intloom.hw.control.counters import UNIT_EVENTS_LAYOUT, Counters
from intloom.hw.control.dispatch import FAULT_LAYOUT
from intloom.hw.control.outstanding import CHANNELS, Outstanding
from intloom.hw.control.registers import writable_mask
from intloom.hw.control.run_control import HALT_LATENCY
from intloom.hw.control.window import Window
from intloom.hw.engine import Engine
from intloom.hw.spec import regs
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import COUNTERS, REGISTERS, Access, Stall
from tests.hw.npu.test_connections import Machine
from tests.hw.streams import run, set_together

PARAMS = preset("nano").replace(axi_addr_bits=40, trace=True, axi_user_bits=3, axi_user=5)
PROGRAMS, CYCLES, VALUES = 4, 150, 8
_OF_QUEUES = (Stall.WAIT, Stall.NO_INSTRUCTION)
"""Causes that no unit reports."""
_CLEARED = HALT_LATENCY + 6
"""Cycles in which an engine whose bus is idle is halted and cleared."""


class Stub(Engine):
    """The engine's ports, and whether it is in reset."""

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(params)
        self.in_reset = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.in_reset.eq(ResetSignal())
        return m


class Bench:
    """The accelerator with a stub, and what follows from all that has passed the stub's ports and the bus."""

    def __init__(self, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng, self.engine, self.machine = rng, Stub(PARAMS), Machine([], PARAMS)
        monkeypatch.setattr(npu_module, "Engine", lambda _params: self.engine)
        self.registers: dict[str, int] = {}
        self.steps: list[dict[str, int]] = []
        self.counts: Counter[str] = Counter()
        self.window: list[int] | None = None
        """That of the program that runs."""
        self.launches = self.resets = 0

    async def write_all(self, ctx: Any) -> None:
        """Write random values into all registers that software owns, in any order."""
        known = [register for register in REGISTERS if register.access is Access.RW]
        for register in self.rng.sample(known, len(known)):
            value = self.rng.getrandbits(32)
            await self.machine.write(ctx, register.name, value)
            self.registers[register.name] = value & writable_mask(register, PARAMS)

    def check_configuration(self, ctx: Any) -> None:
        """The engine's configuration is that of the registers, while no program runs; that of the bus is fixed."""
        assert [ctx.get(getattr(self.machine.npu, f"m_axi_{name}user")) for name in ("aw", "ar")] == [
            PARAMS.axi_user
        ] * 2
        base = (self.registers["BASE_HIGH"] << 32 | self.registers["BASE_LOW"]) // PARAMS.word_bytes
        window = Window.model(base, self.registers["LIMIT"], PARAMS)
        assert {name: ctx.get(getattr(self.engine.window, name)) for name in window} == window
        for name in ("program", "length", "watchdog"):
            assert ctx.get(getattr(self.engine, name)) == self.registers[name.upper()], name

    async def traffic(self, ctx: Any, cycles: int) -> None:
        """Anything on the engine's outputs and on the bus, then nothing."""
        engine, npu = self.engine, self.machine.npu
        bus = [getattr(engine.bus, name) for name in ("ar", "aw", "w")]
        ours = [port.valid for port in bus] + [engine.bus.r.ready, engine.bus.b.ready, engine.started, engine.done]
        theirs = [
            getattr(npu, f"m_axi_{name}") for name in ("arready", "awready", "wready", "rvalid", "bvalid", "rlast")
        ]
        signals = Cat(Value.cast(engine.units), *ours, *theirs)
        for cycle in range(cycles + 1):
            values = [self._events(), *(self.rng.getrandbits(len(part)) for part in (*ours, *theirs))]
            set_together(ctx, signals, [value * (cycle < cycles) for value in values])
            await ctx.tick()

    def _events(self) -> int:
        """Events of all units, of which some exclude each other."""
        bits = 0
        for _ in QUEUED_UNITS:
            waiting, empty = self.rng.choice(((0, 0), (0, 1), (1, 0)))
            event = {name: self.rng.getrandbits(1) for name in ("busy", "done")} | {"waiting": waiting, "empty": empty}
            event["stall"] = self.rng.choice([0, *(1 << stall for stall in Stall if stall not in _OF_QUEUES)])
            bits = bits << UNIT_EVENTS_LAYOUT.size | UNIT_EVENTS_LAYOUT.const(event).as_value().value
        return bits

    async def watch(self, ctx: Any) -> None:
        """Follow counters, bursts, trace and window in every cycle."""
        engine, npu = self.engine, self.machine.npu
        bus = {
            f"{name}_{wire}": getattr(npu, f"m_axi_{name}{wire}") for name in CHANNELS for wire in ("valid", "ready")
        }
        ends = [npu.m_axi_rvalid, npu.m_axi_rready, npu.m_axi_rlast, npu.m_axi_bvalid & npu.m_axi_bready]
        state = [engine.launch, engine.running, engine.in_reset, Cat(map(Value.cast, self._window()))]
        trace, pulses = Cat(npu.trace_started, npu.trace_done), Cat(engine.started, engine.done)
        before = 0
        sampled = ctx.tick().sample(engine.units, trace, pulses, *state, *ends, *bus.values())
        async for _, _, units, traced, pulse, launch, running, reset, window, r, ready, last, b, *wires in sampled:
            assert traced == before
            before = pulse
            step = dict(zip(bus, wires, strict=True))
            self.steps.append(step | {"read_end": r & ready & last, "write_end": b})
            self.counts = Counter() if launch else self.counts
            self.counts["CYCLES"] += running
            self.counts["READ_BEATS"] += running & r & ready
            self.counts["WRITE_BEATS"] += running & step["w_valid"] & step["w_ready"]
            for unit in QUEUED_UNITS:
                event = {name: units[unit][name] for name in ("busy", "stall", "waiting", "empty", "done")}
                self.counts.update(Counters.model(unit, event) if running else [f"{unit.name}_DONE"] * event["done"])
            self.launches, self.resets = self.launches + launch, self.resets + reset
            self.window = window if launch else None if reset else self.window
            assert self.window in (None, window), "the window moves while a program runs"

    def _window(self) -> list[Any]:
        return [getattr(self.engine.window, name) for name in ("base", "end", "limit", "wraps")]

    async def check_counts(self, ctx: Any) -> None:
        """Counters and outstanding bursts, as read by software."""
        found = {register.name: await self.machine.read(ctx, register.name) for register in COUNTERS}
        assert found == {register.name: self.counts[register.name] for register in COUNTERS}
        *_, (reads, writes, offered) = Outstanding.model(self.steps)
        bursts = regs.unpack("OUTSTANDING", await self.machine.read(ctx, "OUTSTANDING"))
        assert bursts == {"reads": reads % 256, "writes": writes % 256, "offered": offered}

    async def end(self, ctx: Any, *, fault: bool) -> None:
        """End the program, while the bus is busy at first; status, flags and interrupt say how."""
        engine, machine = self.engine, self.machine
        ctx.set(Cat(engine.fault.valid, engine.ended), 1 if fault else 2)
        await ctx.tick().repeat(_CLEARED)
        assert ctx.get(engine.halt)
        for busy in (1, 0):
            ctx.set(engine.bus_idle, 1 - busy)
            await ctx.tick().repeat(_CLEARED)
            flags = {"error": int(fault), "done": int(not busy and not fault)}
            for _ in range(VALUES):
                ctx.set(engine.fault.fault, FAULT_LAYOUT.from_bits(self.rng.getrandbits(FAULT_LAYOUT.size)))
                shown = ctx.get(engine.fault.fault)
                status = {"busy": busy, "cause": shown.cause, "unit": shown.unit} | flags
                assert regs.unpack("STATUS", await machine.read(ctx, "STATUS")) == status
                assert await machine.read(ctx, "ERROR_INDEX") == shown.index
            assert regs.unpack("IRQ_STATUS", await machine.read(ctx, "IRQ_STATUS")) == flags
            for enabled in range(1 << len(flags)):
                await machine.write(ctx, "IRQ_ENABLE", enabled)
                assert ctx.get(machine.npu.irq) == bool(regs.pack("IRQ_STATUS", **flags) & enabled)


def test_every_bit_reaches_the_engine_and_comes_from_it(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(rng, monkeypatch)
    engine, machine = bench.engine, bench.machine

    async def program(ctx: Any, *, fault: bool) -> None:
        for _ in range(VALUES):
            await bench.write_all(ctx)
            bench.check_configuration(ctx)
        launches, resets = bench.launches, bench.resets
        await machine.write(ctx, "CONTROL", regs.pack("CONTROL", start=1))
        await bench.traffic(ctx, rng.randint(1, CYCLES))
        assert (ctx.get(engine.running), ctx.get(engine.halt)) == (1, 0)
        await bench.write_all(ctx)
        await bench.end(ctx, fault=fault)
        await bench.check_counts(ctx)
        await bench.write_all(ctx)
        if fault:
            assert bench.resets == resets
            await machine.write(ctx, "CONTROL", regs.pack("CONTROL", reset=1))
            await ctx.tick().repeat(_CLEARED)
            assert not regs.unpack("STATUS", await machine.read(ctx, "STATUS"))["error"]
        assert (bench.launches, bench.resets) == (launches + 1, resets + 1)
        ctx.set(Cat(engine.fault.valid, engine.ended, engine.bus_idle), 0)
        await machine.write(ctx, "IRQ_STATUS", ~0 & 0xFFFFFFFF)

    async def body(ctx: Any) -> None:
        for number in range(PROGRAMS):
            await program(ctx, fault=number % 2 == 0)

    run(machine.npu, body, background=[bench.watch])
