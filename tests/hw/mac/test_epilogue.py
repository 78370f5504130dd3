"""The epilogue's parts beside the requantisers, each against its model, with gaps in what they are given."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.mac.channels import ChannelStore
from hw.mac.constants import Piece
from hw.mac.residual import QUEUE_DEPTH, ResidualAdder
from hw.mac.table import TableLookup
from hw.spec.arith import Affine
from hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

NANO = preset("nano")


def _params(lanes: int) -> HardwareParams:
    return NANO.replace(lanes=lanes)


async def _write(ctx: Any, part: Any, piece: Piece, index: int, value: int) -> None:
    """A piece of the constants, for one cycle."""
    ctx.set(part.write.piece, piece)
    ctx.set(part.write.index, index)
    ctx.set(part.write.byte if piece is Piece.TABLE else part.write.word, value)
    await ctx.tick()
    ctx.set(part.write.piece, Piece.NONE)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_bytes_are_looked_up_in_either_set_or_passed(lanes: int, rng: random.Random) -> None:
    lookup = TableLookup(_params(lanes))
    tables = [rng.randbytes(256) for _ in range(2)]
    items: list[tuple[bytes, bool, int] | None] = [
        (rng.randbytes(lanes), rng.random() < 0.6, rng.randrange(2)) if rng.random() < 0.8 else None for _ in range(200)
    ]

    async def bench(ctx: Any) -> None:
        for number, table in enumerate(tables):
            ctx.set(lookup.write_set, number)
            for index, byte in enumerate(table):
                await _write(ctx, lookup, Piece.TABLE, index, byte)
        for cycle, item in enumerate([*items, *[None] * lookup.LATENCY]):
            before = items[cycle - lookup.LATENCY] if cycle >= lookup.LATENCY else None
            if before is not None:
                values, use, number = before
                found = [ctx.get(lookup.results[lane]) for lane in range(lanes)]
                assert found == [TableLookup.model(value, tables[number], use) for value in values]
            ctx.set(lookup.valid, item is not None)
            if item is not None:
                for lane in range(lanes):
                    ctx.set(lookup.values[lane], item[0][lane])
                ctx.set(lookup.use, item[1])
                ctx.set(lookup.read_set, item[2])
            await ctx.tick()

    run(lookup, bench)


Channels = list[tuple[int, int, int]]


async def _write_block(ctx: Any, store: ChannelStore, words: list[int], rng: random.Random) -> None:
    """Biases, then scales, with gaps; then wait until the last scale has been stored."""
    for index, word in enumerate(words):
        while rng.random() < 0.3:
            await ctx.tick()
        await _write(ctx, store, Piece.CHANNEL, index, word & 0xFFFFFFFF)
    await ctx.tick().repeat(4)


async def _read_block(ctx: Any, store: ChannelStore, expected: Channels, lanes: int, rng: random.Random) -> None:
    """Groups in any order, with gaps; biases come first, scales when requantisers want them."""
    late, count = store.SCALE_LATENCY, len(expected) // lanes
    groups = [rng.randrange(count) if rng.random() < 0.8 else None for _ in range(40)]
    for cycle in range(len(groups) + late):
        for latency, names in ((store.BIAS_LATENCY, ("bias",)), (late, ("mantissa", "exponent"))):
            group = groups[cycle - latency] if 0 <= cycle - latency < len(groups) else None
            for lane in range(lanes) if group is not None else ():
                found = tuple(ctx.get(getattr(store, name)[lane]) for name in names)
                channel = expected[group * lanes + lane]
                assert found == (channel[:1] if names == ("bias",) else channel[1:])
        now = groups[cycle] if cycle < len(groups) else None
        ctx.set(store.read, now is not None)
        ctx.set(store.group, now or 0)
        await ctx.tick()


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_channels_are_read_while_others_are_written(lanes: int, rng: random.Random) -> None:
    params = _params(lanes)
    store = ChannelStore(params)
    biases = [[rng.randrange(-(1 << 31), 1 << 31) for _ in range(params.cols)] for _ in range(4)]
    scales = [[rng.getrandbits(rng.randint(1, 24)) | rng.getrandbits(6) << 24 for _ in block] for block in biases]
    written = done = 0

    async def writer(ctx: Any) -> None:
        nonlocal written
        for block in range(len(biases)):
            # A block's set is free once the block two before it has been read.
            while done < block - 1:
                await ctx.tick()
            ctx.set(store.write_set, block % 2)
            await _write_block(ctx, store, biases[block] + scales[block], rng)
            written += 1

    async def reader(ctx: Any) -> None:
        nonlocal done
        for block in range(len(biases)):
            while written <= block:
                await ctx.tick()
            ctx.set(store.read_set, block % 2)
            channels = zip(biases[block], scales[block], strict=True)
            expected = [ChannelStore.model(*channel, params.mantissa_bits) for channel in channels]
            await _read_block(ctx, store, expected, lanes, rng)
            done += 1

    run(store, writer, reader)
    assert done == len(biases)


@pytest.mark.parametrize("lanes", [1, 4])
def test_residuals_meet_their_results(lanes: int, rng: random.Random) -> None:
    adder = ResidualAdder(_params(lanes))

    async def batch(ctx: Any, law: Affine, pairs: list[tuple[bytes, bytes]]) -> None:
        for index, word in enumerate((law.m1, law.m2, law.c, law.c >> 32)):
            await _write(ctx, adder, Piece.RESIDUAL, index, word & 0xFFFFFFFF)
        ctx.set(adder.activate, 1)
        ctx.set(adder.shift, law.shift)
        ctx.set(adder.even, law.even)
        await ctx.tick()
        ctx.set(adder.activate, 0)
        arrived = met = left = 0
        soon = False
        while left < len(pairs):
            arrives = arrived < len(pairs) and arrived - met < QUEUE_DEPTH - 1 and rng.random() < 0.7
            ctx.set(adder.valid, soon)
            for lane in range(lanes):
                ctx.set(adder.results[lane], pairs[met - 1][0][lane] if soon else rng.randrange(256))
                ctx.set(adder.operands[lane], pairs[arrived][1][lane] if arrives else rng.randrange(256))
            soon = met < arrived and rng.random() < 0.7
            ctx.set(adder.arrived, arrives)
            ctx.set(adder.soon, soon)
            met, arrived = met + soon, arrived + arrives
            if ctx.get(adder.sums_valid):
                found = [ctx.get(adder.sums[lane]) for lane in range(lanes)]
                values = (memoryview(data).cast("b") for data in pairs[left])
                expected = [ResidualAdder.model(*pair, law) & 0xFF for pair in zip(*values, strict=True)]
                assert found == expected
                left += 1
            await ctx.tick()

    async def bench(ctx: Any) -> None:
        for _ in range(4):
            shift = rng.randint(0, 30)
            m1, m2 = (rng.randint(-(1 << shift), 1 << shift) for _ in range(2))
            law = Affine(m1, m2, rng.randint(-(1 << shift), 1 << shift) << 5, shift, bool(rng.randrange(2)))
            await batch(ctx, law, [(rng.randbytes(lanes), rng.randbytes(lanes)) for _ in range(60)])

    run(adder, bench)
