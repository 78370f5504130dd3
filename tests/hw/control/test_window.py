"""The window: base and size of a program's memory as they were at its start, and their sum in every width."""

import random
from typing import Any

import pytest

from intloom.hw.control.window import Window
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.spec.isa import DRAM_BITS
from intloom.hw.spec.params import preset
from tests.hw.streams import made, run


@pytest.mark.parametrize("bits", [32, 40, 64])
def test_the_window_follows_the_registers_while_it_may(bits: int, rng: random.Random) -> None:
    """Random registers, and those whose sum is the size of the address space, one less and one more."""
    params = preset("base").replace(axi_addr_bits=bits)
    window = made(Window, params)
    space = 1 << word_address_bits(params)
    limits = [0, 1, (1 << DRAM_BITS) - 1, *(rng.getrandbits(DRAM_BITS) for _ in range(20))]
    registers = [(rng.randrange(space), limit) for limit in limits]
    registers += [((space - limit + more) % space, limit) for limit in limits for more in (-1, 0, 1)]
    # Beyond it by each bit alone.
    registers += [((space - limits[2] + (1 << bit)) % space, limits[2]) for bit in range(DRAM_BITS)]

    async def bench(ctx: Any) -> None:
        for base, limit in registers:
            ctx.set(window.update, 1)
            ctx.set(window.base, base)
            ctx.set(window.limit, limit)
            await ctx.tick().repeat(Window.LATENCY)
            ctx.set(window.update, 0)
            ctx.set(window.base, rng.randrange(space))
            ctx.set(window.limit, rng.getrandbits(DRAM_BITS))
            await ctx.tick().repeat(2)
            found = {name: ctx.get(getattr(window.latched, name)) for name in ("base", "end", "limit", "wraps")}
            assert found == Window.model(base, limit, params)

    run(window, bench)
