"""Diagram of the load unit: several bursts outstanding."""

from collections import deque
from functools import cache
from typing import Any

from intloom.hw.dma.load import LoadUnit
from intloom.hw.spec import isa
from intloom.hw.spec.params import preset
from tools.timing_diagrams.diagram import Diagram, Row
from tools.timing_diagrams.recording import Recording, record

_LATENCY = 8
_PARAMS = preset("nano").replace(axi_burst=4)
_WORDS = 12


@cache
def several_outstanding() -> Recording:
    """A LOAD of three bursts from a memory with a latency longer than a burst."""
    unit: Any = LoadUnit(_PARAMS)

    async def memory(ctx: Any) -> None:
        beats: deque[tuple[int, bool]] = deque()
        cycle = 0
        ctx.set(unit.bursts.ready, 1)
        while True:
            *_, burst, last, taken = await ctx.tick().sample(
                unit.bursts.valid & unit.bursts.ready,
                unit.bursts.payload.beats_less_one,
                unit.r.valid & unit.r.ready,
            )
            cycle += 1
            if taken:
                beats.popleft()
            if burst:
                beats += [(cycle + _LATENCY, beat == last) for beat in range(last + 1)]
            offer = bool(beats) and beats[0][0] <= cycle
            ctx.set(unit.r.valid, offer)
            ctx.set(unit.r.payload.last, offer and beats[0][1])

    async def bench(ctx: Any) -> None:
        ctx.set(unit.window.end, 1 << 16)
        ctx.set(unit.scratch.ready, 1)
        await ctx.tick().repeat(4)
        move = isa.make("LOAD", dram=64, local=16, n0=_WORDS)
        ctx.set(unit.unit.instruction, int.from_bytes(isa.encode(move), "little"))
        ctx.set(unit.unit.valid, 1)
        await ctx.tick().until(unit.unit.ready)
        ctx.set(unit.unit.valid, 0)
        await ctx.tick().until(unit.unit.done)
        await ctx.tick().repeat(8)

    return record(unit, bench, [memory])


SEVERAL_OUTSTANDING = Diagram(
    title=f"LOAD of {_WORDS} words, bursts of 4, memory latency {_LATENCY}",
    start="unit__started",
    lead=1,
    cycles=32,
    rows=[
        "unit",
        Row("unit.started", "unit__started"),
        Row("unit.idle", "unit__idle"),
        Row("unit.done", "unit__done"),
        "AR",
        Row("bursts.valid", "bursts__valid"),
        Row("bursts.addr", "\\bursts__payload.addr", str, valid="bursts__valid"),
        "R",
        Row("r.valid", "r__valid"),
        Row("r.ready", "r__ready"),
        Row("r.last", "\\r__payload.last"),
        "write",
        Row("scratch.valid", "scratch__valid"),
        Row("scratch.addr", "scratch__addr", str, valid="scratch__valid"),
    ],
)
