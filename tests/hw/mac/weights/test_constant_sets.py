"""Constant sets: a set is free until it is loaded, and again when it is released."""

import random
from typing import Any

from intloom.hw.mac.weights.constant_sets import ConstantSets
from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.spec.formats import TABLE_BYTES
from tests.hw.streams import made, run

CYCLES = 300


def test_channel_sets_alternate_and_are_counted(rng: random.Random) -> None:
    sets = made(ConstantSets)
    loaded = released = 0

    async def bench(ctx: Any) -> None:
        nonlocal loaded, released
        for _ in range(CYCLES):
            free = ConstantSets.model(loaded, released)
            assert ctx.get(sets.channels_free) == free
            assert ctx.get(sets.channel_set) == loaded % 2
            loads = free and rng.random() < 0.5
            releases = loaded > released and rng.random() < 0.4
            ctx.set(sets.channels_loaded, loads)
            ctx.set(sets.channels_released, releases)
            loaded, released = loaded + loads, released + releases
            await ctx.tick()

    run(sets, bench)
    assert released > CYCLES // 8


async def _store(ctx: Any, sets: ConstantSets, kind: ConstantKind, index: int) -> None:
    ctx.set(sets.write.kind, kind)
    ctx.set(sets.write.index, index)
    await ctx.tick()
    ctx.set(sets.write.kind, ConstantKind.NONE)


async def _pulse(ctx: Any, port: Any) -> None:
    ctx.set(port, 1)
    await ctx.tick()
    ctx.set(port, 0)


def test_a_loaded_table_blocks_the_next_until_readout_switches() -> None:
    sets = made(ConstantSets)

    async def bench(ctx: Any) -> None:
        for number in range(1, 5):
            assert ctx.get(sets.table_free)
            assert ctx.get(sets.table_set) == number % 2
            await _store(ctx, sets, ConstantKind.TABLE, TABLE_BYTES - 2)
            assert ctx.get(sets.table_free)
            await _store(ctx, sets, ConstantKind.TABLE, TABLE_BYTES - 1)
            assert not ctx.get(sets.table_free)
            await _pulse(ctx, sets.table_switched)

    run(sets, bench)


def test_residual_constants_are_free_once_activated() -> None:
    sets = made(ConstantSets)

    async def bench(ctx: Any) -> None:
        for _ in range(2):
            for index in range(4):
                assert ctx.get(sets.residual_free)
                await _store(ctx, sets, ConstantKind.RESIDUAL, index)
            for _ in range(3):
                assert not ctx.get(sets.residual_free)
                await ctx.tick()
            await _pulse(ctx, sets.residual_activated)

    run(sets, bench)


def test_a_switch_before_the_last_byte_of_its_table_counts() -> None:
    """The other set is free meanwhile, and after the last byte."""
    sets = made(ConstantSets)

    async def bench(ctx: Any) -> None:
        for _ in range(3):
            await _pulse(ctx, sets.table_switched)
            for _ in range(2):
                assert ctx.get(sets.table_free)
                await ctx.tick()
            await _store(ctx, sets, ConstantKind.TABLE, TABLE_BYTES - 1)
            assert ctx.get(sets.table_free)
        await _store(ctx, sets, ConstantKind.TABLE, TABLE_BYTES - 1)
        for _ in range(2):
            assert not ctx.get(sets.table_free)
            await ctx.tick()

    run(sets, bench)


def test_a_switch_with_the_last_byte_of_a_table_counts_with_it() -> None:
    """The table is loaded and in use in one cycle: the next one may be loaded, and only that one."""
    sets = made(ConstantSets)

    async def bench(ctx: Any) -> None:
        for _ in range(2):
            assert ctx.get(sets.table_free)
            ctx.set(sets.table_switched, 1)
            await _store(ctx, sets, ConstantKind.TABLE, TABLE_BYTES - 1)
            ctx.set(sets.table_switched, 0)
            assert ctx.get(sets.table_free)
        await _store(ctx, sets, ConstantKind.TABLE, TABLE_BYTES - 1)
        assert not ctx.get(sets.table_free)
        await _pulse(ctx, sets.table_switched)
        assert ctx.get(sets.table_free)

    run(sets, bench)


def test_residual_constants_that_arrive_with_an_activation_are_kept() -> None:
    sets = made(ConstantSets)

    async def bench(ctx: Any) -> None:
        ctx.set(sets.residual_activated, 1)
        await _store(ctx, sets, ConstantKind.RESIDUAL, 3)
        ctx.set(sets.residual_activated, 0)
        assert not ctx.get(sets.residual_free)
        await _pulse(ctx, sets.residual_activated)
        assert ctx.get(sets.residual_free)

    run(sets, bench)
