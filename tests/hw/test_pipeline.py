"""Pipeline stages delay a value by N cycles; an output register has no reset."""

from typing import Any

import pytest
from amaranth.hdl import Module, ResetInserter, Signal

from intloom.hw.pipeline import output_register, pipeline_stages
from tests.hw.streams import run


@pytest.mark.parametrize("reset_less", [False, True])
@pytest.mark.parametrize("cycles", [0, 1, 3])
def test_values_come_out_in_order(cycles: int, reset_less: bool) -> None:
    """Before them come zeros or, without a reset, values from before the start and that of the reset's cycle."""
    m = Module()
    value = Signal(64)
    after = pipeline_stages(m, "late", value, cycles, reset_less=reset_less)
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for number in range(1, 9):
            ctx.set(value, number)
            seen.append(ctx.get(after))
            await ctx.tick()

    m.d.sync += Signal().eq(1)
    run(m, bench)
    assert seen[cycles:] == list(range(1, 9 - cycles))
    assert all(seen[: cycles - 1]) if reset_less and cycles else not any(seen[:cycles])


def test_an_output_register_keeps_its_value_in_reset() -> None:
    m = Module()
    reset, value = Signal(), Signal(8)
    ports = [Signal(8, name=name) for name in ("kept", "cleared")]
    m.submodules.part = part = ResetInserter(reset)(Module())
    part.d.sync += [output_register(part, ports[0]).eq(value), ports[1].eq(value)]

    async def bench(ctx: Any) -> None:
        ctx.set(value, 7)
        await ctx.tick()
        assert [ctx.get(port) for port in ports] == [7, 7]
        ctx.set(reset, 1)
        ctx.set(value, 9)
        await ctx.tick()
        assert [ctx.get(port) for port in ports] == [9, 0]

    run(m, bench)
