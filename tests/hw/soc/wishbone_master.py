"""A Wishbone master for benches: single accesses and line reads, with checks of the slave."""

import random
from typing import Any

from intloom.hw.soc.wishbone import LINE_BYTES, CycleType

LINE_WORDS = LINE_BYTES // 4
LONGEST = 500
"""Cycles after which an access that has no end is an error."""


async def _access(ctx: Any, bus: Any, adr: int, we: int = 0, data: int = 0, sel: int = 15, cti: int = 0) -> int:
    for member, value in (("adr", adr), ("we", we), ("dat_w", data), ("sel", sel), ("cti", cti), ("cyc", 1)):
        ctx.set(getattr(bus, member), value)
    ctx.set(bus.stb, 1)
    for _ in range(LONGEST):
        *_, ack, read = await ctx.tick().sample(bus.ack, bus.dat_r)
        if ack:
            return int(read)
    raise AssertionError("the access has no end")


async def _release(ctx: Any, bus: Any) -> None:
    ctx.set(bus.cyc, 0)
    ctx.set(bus.stb, 0)


async def pause(ctx: Any, bus: Any, rng: random.Random) -> None:
    """Cycles in which the bus belongs to another device, or pauses: of `cyc` and `stb`, one is high at most."""
    for cyc, stb in rng.sample([(0, 0), (0, 1), (1, 0)], 3):
        for member in (bus.adr, bus.we, bus.dat_w, bus.sel, bus.cti):
            ctx.set(member, rng.getrandbits(len(member)))
        ctx.set(bus.cyc, cyc)
        ctx.set(bus.stb, stb)
        *_, ack = await ctx.tick().sample(bus.ack)
        assert not ack
    await _release(ctx, bus)


async def read(ctx: Any, bus: Any, adr: int) -> int:
    """Read one word."""
    value = await _access(ctx, bus, adr)
    await _release(ctx, bus)
    return value


async def write(ctx: Any, bus: Any, adr: int, data: int, sel: int = 15) -> None:
    """Write one word."""
    await _access(ctx, bus, adr, 1, data, sel)
    await _release(ctx, bus)


async def read_line(ctx: Any, bus: Any, adr: int) -> list[int]:
    """Read a cache line as a burst."""
    kinds = [CycleType.INCREMENTING] * (LINE_WORDS - 1) + [CycleType.END_OF_BURST]
    words = [await _access(ctx, bus, adr + i, cti=kind) for i, kind in enumerate(kinds)]
    await _release(ctx, bus)
    return words
