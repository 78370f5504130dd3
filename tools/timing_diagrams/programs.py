"""Diagrams of a whole accelerator: several bursts outstanding, instruction issue, fault, soft reset."""

from functools import cache
from typing import Any

from intloom.hw.spec import isa, regs
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from tools.timing_diagrams.diagram import Diagram, Recording, Row
from tools.timing_diagrams.recording import record
from tools.timing_diagrams.system import DOMAINS, LATENCY, PARAMS, System

_WORDS = 12
_BROKEN_BEAT = 2
_REST = 60
_HOST_DELAY = 16
"""Cycles from the interrupt to the host's first register write."""


@cache
def load_then_store() -> Recording:
    """A STORE waits for a LOAD; both run without a fault."""
    system = System(
        [
            isa.make("LOAD", dram=512, local=0, n0=_WORDS),
            isa.make("STORE", dram=2048, local=0, n0=_WORDS, wait_load=1),
            isa.make("END", wait_load=1, wait_store=1),
        ]
    )

    async def bench(ctx: Any) -> None:
        await system.start(ctx)
        await ctx.tick().until(system.npu.irq)
        await ctx.tick().repeat(_REST)

    diagrams = SEVERAL_OUTSTANDING, ISSUE
    return record(system.npu, bench, diagrams, [system.read_memory, system.write_memory], DOMAINS)


@cache
def fault_then_reset() -> Recording:
    """A read beat of a LOAD is answered with SLVERR; after the interrupt the host resets the accelerator."""
    system = System(
        [isa.make("LOAD", dram=512, local=0, n0=_WORDS), isa.make("END", wait_load=1)], broken_beat=_BROKEN_BEAT
    )

    async def bench(ctx: Any) -> None:
        await system.start(ctx)
        await ctx.tick().until(system.npu.irq)
        await ctx.tick().repeat(_HOST_DELAY)
        await system.write(ctx, "IRQ_STATUS", regs.pack("IRQ_STATUS", error=1))
        await system.write(ctx, "CONTROL", regs.pack("CONTROL", reset=1))
        await ctx.tick().repeat(_REST)

    return record(system.npu, bench, (FAULT, RESET), [system.read_memory, system.write_memory], DOMAINS)


SEVERAL_OUTSTANDING = Diagram(
    title=f"LOAD of {_WORDS} words, bursts of {PARAMS.axi_burst}, memory latency {LATENCY}",
    start="engine.load.unit.started",
    lead=1,
    cycles=37,
    rows=[
        "unit",
        Row("unit.started", "engine.load.unit.started"),
        Row("unit.idle", "engine.load.unit.idle"),
        Row("unit.done", "engine.load.unit.done"),
        "AR",
        Row("bursts.valid", "engine.load.bursts.valid"),
        Row("bursts.addr", "engine.load.bursts.payload.addr", str, valid="engine.load.bursts.valid"),
        "R",
        Row("r.valid", "engine.load.r.valid"),
        Row("r.ready", "engine.load.r.ready"),
        Row("r.last", "engine.load.r.payload.last"),
        "write",
        Row("scratch.valid", "engine.load.scratch.valid"),
        Row("scratch.addr", "engine.load.scratch.addr", str, valid="engine.load.scratch.valid"),
    ],
)

ISSUE = Diagram(
    title="A STORE that waits for a LOAD",
    start="engine.load.unit.done",
    lead=3,
    cycles=20,
    rows=[
        "load",
        Row("scratch.valid", "engine.load.scratch.valid"),
        Row("unit.done", "engine.load.unit.done"),
        "waits",
        Row("selected row", "engine.waits.row", lambda v: (*(u.name.lower() for u in QUEUED_UNITS), "end")[v]),
        Row("met[store]", "engine.waits.met", bit=Unit.STORE),
        "store",
        Row("unit.valid", "engine.store.unit.valid"),
        Row("unit.ready", "engine.store.unit.ready"),
        Row("unit.started", "engine.store.unit.started"),
        "AXI",
        Row("awvalid", "m_axi_awvalid"),
        Row("wvalid", "m_axi_wvalid"),
    ],
)

FAULT = Diagram(
    title="A read error: halt, drain of the bus, interrupt",
    start="engine.load.unit.fault",
    lead=5,
    cycles=24,
    notes=("rresp 2 is SLVERR.",),
    rows=[
        "AXI",
        Row("rvalid", "m_axi_rvalid"),
        Row("rready", "m_axi_rready"),
        Row("rresp", "m_axi_rresp", str, valid="m_axi_rvalid"),
        "load",
        Row("unit.fault", "engine.load.unit.fault"),
        Row("unit.idle", "engine.load.unit.idle"),
        "run control",
        Row("fault", "run_control.fault"),
        Row("running", "run_control.running"),
        Row("halt", "run_control.halt"),
        Row("bus_idle", "run_control.bus_idle"),
        Row("busy", "run_control.busy"),
        Row("error", "run_control.error"),
        Row("irq", "irq"),
    ],
)

RESET = Diagram(
    title="Soft reset after an error",
    start="run_control.reset",
    lead=3,
    cycles=20,
    rows=[
        "host",
        Row("awvalid", "s_axi_awvalid"),
        Row("bvalid", "s_axi_bvalid"),
        "run control",
        Row("reset", "run_control.reset"),
        Row("busy", "run_control.busy"),
        Row("halt", "run_control.halt"),
        Row("bus_idle", "run_control.bus_idle"),
        Row("clear", "run_control.clear"),
        Row("error", "run_control.error"),
        "engine",
        Row("reset", "engine_rst"),
        Row("fault.valid", "engine.fault.valid"),
        Row("irq", "irq"),
    ],
)
