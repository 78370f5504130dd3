"""Epilogue: items become bytes in order and with the stated latency, with gaps between items."""

import random
from itertools import product
from typing import Any

import pytest

from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.epilogue.channel_store import ChannelStore
from intloom.hw.mac.epilogue.epilogue import TAG, Epilogue
from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.arith import Affine, RoundingMode, Scale, wrap
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.idle import check_idle
from tests.hw.mac.constants import write_affine, write_constant
from tests.hw.streams import made, run

NANO = preset("nano")
SIZES = {"wide": (1 << 30, 1 << 30, 44), "narrow": (3000, 1 << 13, 28), "unit": (60, 60, 23)}
"""Largest bias, largest sum, least shift. Sums and biases of 31 bits with shifts of 44 to 50 saturate as few results as
14 bits with 28 to 34. Sums below 128 with a scale of 1 show their lowest bit."""


class Work:
    """One instruction's stimulus: constants, items, and the expected results."""

    def __init__(
        self,
        params: HardwareParams,
        use_table: int,
        residual: int,
        size: str,
        rng: random.Random,
        tie: int | None = None,
    ) -> None:
        self.lanes, self.groups = params.lanes, params.cols // params.lanes
        self.use_table, self.residual = use_table, residual
        reach, limit, least = SIZES[size]
        self.biases = [rng.randint(-reach, reach) for _ in range(params.cols)]
        self.scales = [
            Scale(1 << 23, 23)
            if size == "unit"
            else Scale(rng.randrange(1 << 23, 1 << 24), rng.randint(least, least + 6))
            for _ in range(params.cols)
        ]
        self.table = rng.randbytes(TABLE_BYTES)
        # With a small shift, many sums are halfway between integers.
        shift = rng.choice((1, rng.randint(4, 24)))
        factors = (rng.choice((-1, 1)) * rng.randint(0, (1 << shift) - 1) for _ in range(3))
        self.affine = Affine(*factors, shift, bool(rng.getrandbits(1)))
        self.items = [
            (rng.randrange(self.groups), [rng.randint(-limit, limit) for _ in range(self.lanes)]) for _ in range(30)
        ]
        # Items of several instructions may follow each other: each has its zero point, and may use the table.
        self.zero_points = [rng.randint(-128, 127) for _ in self.items]
        self.looked_up = [use_table & rng.getrandbits(1) for _ in self.items]
        self.corrections = [[rng.randint(-reach, reach) for _ in range(self.lanes)] for _ in self.items]
        self.operands = [rng.randbytes(self.lanes) for _ in self.items]
        if tie is not None:
            self._tie(tie, rng)
        self.channel_set, self.table_set = rng.sample((0, 1), 2)
        self.expected = [
            [self._result(params, number, group * self.lanes + lane, lane) for lane in range(self.lanes)]
            for number, (group, _) in enumerate(self.items)
        ]

    def _tie(self, first: int, rng: random.Random) -> None:
        """One low bit of each mantissa decides: with it, the value is more than halfway to the next integer.

        Without it, ties go down, to the even integer. Each channel has a bit of its own, or none.
        """
        total = 1 << 30
        self.zero_points = [rng.randint(-128, -1) for _ in self.items]
        self.scales = [
            Scale(129 + 4 * rng.randrange(32) << 16 | (1 << (first + channel) % 17) & 0xFFFF, 47)
            for channel in range(len(self.scales))
        ]
        self.biases = [rng.randint(-99, 99) for _ in self.scales]
        self.corrections = [[rng.randint(-99, 99) for _ in range(self.lanes)] for _ in self.items]
        self.items = [
            (
                group,
                [total + corrections[lane] - self.biases[group * self.lanes + lane] for lane in range(self.lanes)],
            )
            for (group, _), corrections in zip(self.items, self.corrections, strict=True)
        ]

    def _result(self, params: HardwareParams, number: int, channel: int, lane: int) -> int:
        """The byte of an item's lane."""
        _, sums = self.items[number]
        return Epilogue.model(
            wrap(sums[lane] - self.corrections[number][lane], 32),
            (self.biases[channel], self.scales[channel]),
            self.zero_points[number],
            RoundingMode(params.match),
            self.table if self.looked_up[number] else None,
            (self.operands[number][lane], self.affine) if self.residual else None,
        )

    def tag(self, number: int) -> dict[str, int]:
        """What comes with an item."""
        zero_point, use_table = self.zero_points[number], self.looked_up[number]
        return {"zp_out": zero_point, "use_table": use_table, "table_set": self.table_set, "residual": self.residual}

    async def prepare(self, ctx: Any, epilogue: Epilogue) -> None:
        """Write all constants while no item is in flight, and others into the other sets."""
        for last in (0, 1):
            ctx.set(epilogue.write_channel_set, self.channel_set ^ last ^ 1)
            ctx.set(epilogue.write_table_set, self.table_set ^ last ^ 1)
            await self._write(ctx, epilogue, 0 if last else 0xFF)

    async def _write(self, ctx: Any, epilogue: Epilogue, change: int) -> None:
        for index, byte in enumerate(self.table if self.use_table else ()):
            await write_constant(ctx, epilogue, ConstantKind.TABLE, index, byte ^ change)
        await write_affine(ctx, epilogue, self.affine)
        words = [*self.biases, *(scale.mantissa | scale.shift << 24 for scale in self.scales)]
        for index, word in enumerate(words):
            await write_constant(ctx, epilogue, ConstantKind.CHANNEL, index, (word ^ change) & 0xFFFFFFFF)
        await ctx.tick().repeat(4)


async def _items(ctx: Any, epilogue: Epilogue, work: Work, rng: random.Random) -> None:
    """Drive items with gaps; sums and operands follow with the unit's latencies. What has no item is random."""
    late = max(Accumulators.READOUT_LATENCY, READ_LATENCY)
    gone: list[int | None] = [None] * late
    coming, first = list(range(len(work.items))), True
    while coming or any(number is not None for number in gone[-late:]):
        now = coming.pop(0) if coming and rng.random() < 0.7 else None
        ctx.set(epilogue.valid, now is not None)
        activate = first and now is not None and bool(work.residual)
        ctx.set(epilogue.activate, activate)
        ctx.set(epilogue.shift, work.affine.shift if activate else rng.randrange(64))
        ctx.set(epilogue.even, work.affine.even if activate else rng.getrandbits(1))
        if now is not None:
            ctx.set(epilogue.tag, work.tag(now))
            ctx.set(epilogue.channel_set, work.channel_set)
            ctx.set(epilogue.group, work.items[now][0])
            first = False
        else:
            ctx.set(epilogue.tag, TAG.from_bits(rng.getrandbits(TAG.size)))
            ctx.set(epilogue.channel_set, rng.getrandbits(1))
            ctx.set(epilogue.group, rng.randrange(work.groups))
            if not first:
                # The next instruction's constants.
                noise = {"kind": ConstantKind.RESIDUAL, "index": rng.randrange(4), "word": rng.getrandbits(32)}
                ctx.set(epilogue.write, noise)
        sums, arrived = gone[-Accumulators.READOUT_LATENCY], gone[-READ_LATENCY]
        corrected = gone[-ChannelStore.CORRECTION_STAGE]
        ctx.set(epilogue.residual_arrived, int(arrived is not None and bool(work.residual)))
        for lane in range(work.lanes):
            ctx.set(epilogue.sums[lane], rng.randint(-999, 999) if sums is None else work.items[sums][1][lane])
            correction = rng.randint(-999, 999) if corrected is None else work.corrections[corrected][lane]
            ctx.set(epilogue.corrections[lane], correction)
            ctx.set(epilogue.residual[lane], rng.randrange(256) if arrived is None else work.operands[arrived][lane])
        gone.append(now)
        await ctx.tick()
    ctx.set(epilogue.write.kind, ConstantKind.NONE)
    for port in (epilogue.valid, epilogue.residual_arrived):
        ctx.set(port, 0)


_SHAPES = pytest.mark.parametrize(
    ("lanes", "cols"), [(1, 8), (4, 4)], ids=["clocked channel store", "small channel store"]
)


@_SHAPES
def test_sums_become_bytes(lanes: int, cols: int, rng: random.Random) -> None:
    params = NANO.replace(lanes=lanes, cols=cols)
    epilogue = made(Epilogue, params)
    found: list[list[int]] = []
    due: list[int] = []
    came: list[int] = []
    works = [Work(params, *rest, rng) for rest in product((0, 1), (0, 1), SIZES)]
    works += [Work(params, 0, 0, "unit", rng, tie) for tie in range(0, 17, cols // lanes)]
    rng.shuffle(works)

    async def bench(ctx: Any) -> None:
        for work in works:
            await work.prepare(ctx, epilogue)
            await _items(ctx, epilogue, work, rng)
            await ctx.tick().repeat(Epilogue.RESIDUAL_LATENCY + 1)

    async def watch(ctx: Any) -> None:
        cycle = 0
        ports = (epilogue.valid, epilogue.tag, epilogue.result_valid, epilogue.results)
        async for *_, item, tag, valid, results in ctx.tick().sample(*ports):
            cycle += 1
            if item:
                due.append(cycle + (Epilogue.RESIDUAL_LATENCY if tag.residual else Epilogue.LATENCY))
            if valid:
                came.append(cycle)
                found.append([results[lane] for lane in range(lanes)])

    run(epilogue, bench, background=[watch])
    expected = [result for work in works for result in work.expected]
    assert found == expected
    assert came == due
    assert len({byte for result in expected for byte in result}) > 50


@_SHAPES
def test_registers_keep_their_values_without_work(lanes: int, cols: int, rng: random.Random) -> None:
    check_idle(Epilogue(NANO.replace(lanes=lanes, cols=cols)), rng, "valid", "residual_arrived", "activate", "write")
