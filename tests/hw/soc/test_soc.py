"""The system's address decoder: the bench plays core and accelerator."""

import random
from collections import defaultdict
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus import axi4
from intloom.hw.bus.axi4 import Resp
from intloom.hw.npu import TOP_NAME
from intloom.hw.soc import soc as soc_module
from intloom.hw.soc.axi_arbiter import memory_layouts
from intloom.hw.soc.soc import (
    CACHE_BASE,
    CPU_MODULE,
    ERRORS_BASE,
    NEXT_REGISTERS,
    REGISTERS_BASE,
    RESET_VECTOR,
    TIMER_BASE,
    Soc,
)
from intloom.hw.soc.wishbone import LINE_BYTES
from intloom.hw.soc.write_back_cache import WriteBackCache
from intloom.hw.spec.params import preset
from tests.hw.soc.axi_memory import AxiMemory
from tests.hw.soc.wishbone_master import read, write
from tests.hw.streams import run, set_together

PARAMS = preset("nano")
_REVERSED = {name: In if flow is Out else Out for name, flow in axi4.CHANNELS.items()}
_LINES = 4
_NOWHERE = 0xF0FF_0000
_BUS = {"adr": "ADR", "we": "WE", "dat_w": "DAT_MOSI", "sel": "SEL", "cti": "CTI", "cyc": "CYC", "stb": "STB"}


class Bench(wiring.Component):
    """A system without core and accelerator, with a small cache; and its memory port."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, accelerators: int = 1) -> None:
        self.accelerators, self.response = accelerators, Resp.OKAY
        self.instances: dict[str, list[dict[str, Any]]] = defaultdict(list)
        monkeypatch.setattr(soc_module, "Instance", self._instance)
        # Each command walks over all lines.
        monkeypatch.setattr(soc_module, "WriteBackCache", lambda: WriteBackCache(_LINES))
        self._layouts = memory_layouts(PARAMS, accelerators + 1)
        ports = {name: flow(stream.Signature(self._layouts[name])) for name, flow in axi4.CHANNELS.items()}
        super().__init__({"memory": Out(wiring.Signature(ports))})

    def _instance(self, name: str, **ports: Any) -> Module:
        self.instances[name].append(ports)
        return Module()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.soc = soc = Soc(PARAMS, self.accelerators)
        m.d.comb += [a.eq(b) for a, b in axi4.flat_pairs(soc, "m_axi", self.memory, self._layouts, _REVERSED)]
        return m

    def cpu(self, bus: str = "dBus") -> Any:
        """A bus of the core, that of data or that of instructions."""
        (ports,) = self.instances[CPU_MODULE]
        outputs = {name: ports[f"o_{bus}Wishbone_{port}"] for name, port in _BUS.items()}
        return SimpleNamespace(**outputs, ack=ports[f"i_{bus}Wishbone_ACK"], dat_r=ports[f"i_{bus}Wishbone_DAT_MISO"])

    async def registers(self, ctx: Any) -> None:
        """Accelerators answer reads with `response`; they come when memory has all that was written before."""
        npus, memory = self.instances[TOP_NAME], self.memory
        ctx.set(Cat(npu["o_s_axi_arready"] for npu in npus), ~0)
        outstanding = 0
        reads = Cat(npu["i_s_axi_arvalid"] for npu in npus)
        signals = (memory.aw.valid & memory.aw.ready, memory.b.valid & memory.b.ready, reads)
        async for *_, sent, answered, asked in ctx.tick().sample(*signals):
            assert not (asked and outstanding)
            outstanding += sent - answered
            ctx.set(Cat(npu["o_s_axi_rvalid"] for npu in npus), asked)
            for npu in npus:
                ctx.set(npu["o_s_axi_rresp"], self.response)


def test_an_access_sees_all_writes_before_it(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of accelerators, and of the record of errors, which has those of a write after its acknowledgment."""
    bench = Bench(monkeypatch, 2)
    memory = AxiMemory(bench.memory, PARAMS.word_bytes, rng, 0.2)
    # The last one that the walk over the cache reaches, so that it ends with the writes of the line.
    line = RESET_VECTOR + (_LINES - 1) * LINE_BYTES
    # Lines at this distance take the same place.
    bad = line + _LINES * LINE_BYTES
    memory.bad = {bad // PARAMS.word_bytes + LINE_BYTES // PARAMS.word_bytes - 1}
    accelerators = (REGISTERS_BASE, REGISTERS_BASE + NEXT_REGISTERS)

    async def body(ctx: Any) -> None:
        cpu = bench.cpu()
        for at, wrong in ((line, 0), (bad, 1)) * 4:
            await write(ctx, cpu, at // 4, rng.getrandbits(32))
            assert await read(ctx, cpu, ERRORS_BASE // 4) == wrong, "the line is read first"
            for register in (WriteBackCache.FIRST, WriteBackCache.CLEAN):
                await write(ctx, cpu, CACHE_BASE // 4 + register, at)
            bench.response = rng.choice((Resp.OKAY, Resp.SLVERR))
            device = rng.choice((*accelerators, TIMER_BASE, ERRORS_BASE))
            value = await read(ctx, cpu, device // 4)
            if device != ERRORS_BASE:
                value = await read(ctx, cpu, ERRORS_BASE // 4)
            refused = device in accelerators and bench.response != Resp.OKAY
            assert [value, await read(ctx, cpu, ERRORS_BASE // 4)] == [wrong | refused, 0]
        for at, (cyc, stb) in product((bad, *accelerators, ERRORS_BASE, _NOWHERE), ((0, 1), (1, 0))):
            set_together(ctx, Cat(cpu.adr, cpu.cyc, cpu.stb), (at // 4, cyc, stb))
            assert not ctx.get(cpu.ack), "half of an access"
            await ctx.tick()
        set_together(ctx, Cat(cpu.cyc, cpu.stb), (0, 0))
        assert await read(ctx, cpu, ERRORS_BASE // 4) == 0
        assert await read(ctx, cpu, _NOWHERE // 4) == 0xFFFF_FFFF
        await read(ctx, bench.cpu("iBus"), _NOWHERE // 4)
        assert [await read(ctx, cpu, ERRORS_BASE // 4) for _ in range(2)] == [1, 0]

    run(bench, body, background=[bench.registers, *memory.processes()])


def test_each_accelerator_has_its_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 2)

    async def body(ctx: Any) -> None:
        (cpu,) = bench.instances[CPU_MODULE]
        for pending in range(4):
            for number, npu in enumerate(bench.instances[TOP_NAME]):
                ctx.set(npu["o_irq"], pending >> number & 1)
            assert ctx.get(cpu["i_externalInterruptArray"]) == pending

    run(bench, body)
