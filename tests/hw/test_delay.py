"""What goes in comes out so many cycles later."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import Module, Signal

from hw.delay import delayed
from tests.hw.streams import run


@pytest.mark.parametrize("reset_less", [False, True])
@pytest.mark.parametrize("cycles", [0, 1, 3])
def test_values_come_out_in_order(cycles: int, reset_less: bool) -> None:
    m = Module()
    value = Signal(8)
    after = delayed(m, "late", value, cycles, reset_less=reset_less)
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for number in range(1, 9):
            ctx.set(value, number)
            seen.append(ctx.get(after))
            await ctx.tick()

    m.d.sync += Signal().eq(1)
    run(m, bench)
    assert seen == [0] * cycles + list(range(1, 9 - cycles))
