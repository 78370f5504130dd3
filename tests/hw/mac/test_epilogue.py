"""The epilogue and its parts beside the requantisers, against their models, with gaps in what they are given."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.mac.accumulator import Accumulators
from hw.mac.channels import ChannelStore
from hw.mac.constants import Piece
from hw.mac.epilogue import Epilogue
from hw.mac.requantizer import RequantizerLane
from hw.mac.residual import QUEUE_DEPTH, ResidualAdder
from hw.mac.table import TableLookup
from hw.ports import READ_LATENCY
from hw.spec.arith import Affine, Match, Scale
from hw.spec.params import TABLE_BYTES, HardwareParams, preset
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


class Work:
    """What one instruction asks of an epilogue: constants, items, and the results that must come."""

    def __init__(self, params: HardwareParams, rng: random.Random) -> None:
        self.lanes, self.groups = params.lanes, params.cols // params.lanes
        self.zero_point, self.use_table, self.residual = rng.randint(-128, 127), rng.randrange(2), rng.randrange(2)
        self.biases = [rng.randint(-3000, 3000) for _ in range(params.cols)]
        self.scales = [Scale(rng.randrange(1 << 23, 1 << 24), rng.randint(28, 34)) for _ in range(params.cols)]
        self.table = rng.randbytes(TABLE_BYTES)
        shift = rng.randint(4, 20)
        self.law = Affine(rng.randint(0, 1 << shift), rng.randint(0, 1 << shift), rng.randint(0, 1 << shift), shift)
        limit = 1 << 13
        self.items = [
            (rng.randrange(self.groups), [rng.randint(-limit, limit) for _ in range(self.lanes)]) for _ in range(40)
        ]
        self.operands = [rng.randbytes(self.lanes) for _ in self.items]
        self.expected = [
            [self._result(params, group * self.lanes + lane, sums[lane], operands[lane]) for lane in range(self.lanes)]
            for (group, sums), operands in zip(self.items, self.operands, strict=True)
        ]

    def _result(self, params: HardwareParams, channel: int, total: int, operand: int) -> int:
        value = RequantizerLane.model(
            total, self.biases[channel], self.scales[channel], self.zero_point, Match(params.match)
        )
        value = TableLookup.model(value & 0xFF, self.table, bool(self.use_table))
        if self.residual:
            left, right = (byte - 256 if byte > 127 else byte for byte in (value, operand))
            value = ResidualAdder.model(left, right, self.law) & 0xFF
        return value

    async def prepare(self, ctx: Any, epilogue: Epilogue) -> None:
        """Write all constants; nothing is under way."""
        for index, byte in enumerate(self.table):
            await _write(ctx, epilogue, Piece.TABLE, index, byte)
        for index, word in enumerate((self.law.m1, self.law.m2, self.law.c, self.law.c >> 32)):
            await _write(ctx, epilogue, Piece.RESIDUAL, index, word & 0xFFFFFFFF)
        words = [*self.biases, *(scale.mantissa | scale.shift << 24 for scale in self.scales)]
        for index, word in enumerate(words):
            await _write(ctx, epilogue, Piece.CHANNEL, index, word & 0xFFFFFFFF)
        await ctx.tick().repeat(4)


async def _items(ctx: Any, epilogue: Epilogue, work: Work, rng: random.Random) -> None:
    """Items with gaps; sums and operands follow each of them by as many cycles as in the unit."""
    tag = {"zp_out": work.zero_point, "use_table": work.use_table, "table_set": 0, "residual": work.residual}
    ctx.set(epilogue.tag, tag)
    late = max(Accumulators.DRAIN_LATENCY, READ_LATENCY)
    gone: list[int | None] = [None] * late
    coming, first = list(range(len(work.items))), True
    while coming or any(number is not None for number in gone[-late:]):
        now = coming.pop(0) if coming and rng.random() < 0.7 else None
        ctx.set(epilogue.valid, now is not None)
        ctx.set(epilogue.activate, int(first and now is not None and bool(work.residual)))
        ctx.set(epilogue.shift, work.law.shift)
        ctx.set(epilogue.even, work.law.even)
        if now is not None:
            ctx.set(epilogue.group, work.items[now][0])
            first = False
        sums, arrived = gone[-Accumulators.DRAIN_LATENCY], gone[-READ_LATENCY]
        ctx.set(epilogue.residual_arrived, int(arrived is not None and bool(work.residual)))
        for lane in range(work.lanes):
            ctx.set(epilogue.sums[lane], rng.randint(-999, 999) if sums is None else work.items[sums][1][lane])
            ctx.set(epilogue.residual[lane], rng.randrange(256) if arrived is None else work.operands[arrived][lane])
        gone.append(now)
        await ctx.tick()
    for port in (epilogue.valid, epilogue.residual_arrived):
        ctx.set(port, 0)


@pytest.mark.parametrize("lanes", [1, 4])
def test_sums_become_bytes(lanes: int, rng: random.Random) -> None:
    params = _params(lanes)
    epilogue = Epilogue(params)
    found: list[list[int]] = []
    works = [Work(params, rng) for _ in range(5)]

    async def bench(ctx: Any) -> None:
        for work in works:
            await work.prepare(ctx, epilogue)
            await _items(ctx, epilogue, work, rng)
            await ctx.tick().repeat(Epilogue.RESIDUAL_LATENCY + 1)

    async def watch(ctx: Any) -> None:
        async for *_, valid, results in ctx.tick().sample(epilogue.result_valid, epilogue.results):
            if valid:
                found.append([results[lane] for lane in range(lanes)])

    run(epilogue, bench, background=[watch])
    expected = [result for work in works for result in work.expected]
    assert found == expected
    assert len({byte for result in expected for byte in result}) > 50
