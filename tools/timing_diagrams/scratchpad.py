"""Diagram of the scratchpad: arbitration among readers of one bank, read latency, a fault."""

from functools import cache
from typing import Any

from intloom.hw.memory.scratchpad import Scratchpad
from intloom.hw.spec.params import preset
from tools.timing_diagrams.diagram import Diagram, Recording, Row
from tools.timing_diagrams.recording import record

_PARAMS = preset("nano").replace(scratch_kib=4, vector_lanes=4)
_SHARED, _OTHER = 8, 9
"""Two words in different banks."""


@cache
def arbitration() -> Recording:
    """Three readers ask for words of one bank in the same cycle, a fourth for a word of another bank."""
    pad: Any = Scratchpad(_PARAMS)

    async def hold(ctx: Any, port: Any) -> None:
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def write(ctx: Any) -> None:
        for word in (_SHARED, _OTHER):
            ctx.set(pad.load.addr, word)
            ctx.set(pad.load.data, word)
            ctx.set(pad.load.mask, ~0)
            ctx.set(pad.load.valid, 1)
            await ctx.tick().until(pad.load.ready)
        ctx.set(pad.load.valid, 0)
        await ctx.tick().repeat(4)
        for port, word in ((pad.act0, _SHARED), (pad.vec_a, _SHARED), (pad.vec_b, _OTHER), (pad.store, _SHARED)):
            ctx.set(port.addr, word)
        await hold(ctx, pad.act0)
        await ctx.tick().repeat(10)

    def reader(name: str) -> Any:
        async def process(ctx: Any) -> None:
            await ctx.tick().until(pad.load.valid & (pad.load.addr == _OTHER))
            await ctx.tick().repeat(4)
            await hold(ctx, getattr(pad, name))

        return process

    return record(pad, write, [ARBITRATION], [reader(name) for name in ("vec_a", "vec_b", "store")])


def _reader(name: str) -> list[Row | str]:
    return [
        name,
        Row("valid", f"{name}.valid"),
        Row("ready", f"{name}.ready"),
        Row("data", f"{name}.data", str),
    ]


ARBITRATION = Diagram(
    title="act0, vec_a and store read bank 0; vec_b reads bank 1",
    start="act0.valid",
    lead=2,
    cycles=13,
    rows=[row for name in ("act0", "vec_a", "vec_b", "store") for row in _reader(name)],
)
