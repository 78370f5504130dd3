"""Accumulator readout: items of finished strips retire in order, each with its residual operand."""

import random
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from intloom.hw.mac.issue.descriptors import READOUT_DESCRIPTOR
from intloom.hw.mac.output.readout import AccumulatorReadout
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.isa import BY_KIND, Kind, TableUse
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import NANO, OUTPUT_SHAPES, RATES, any_descriptor
from tests.hw.streams import made, run, source

Numbers = dict[str, int]


def _readout_descriptor(rng: random.Random) -> Numbers:
    size = {name: rng.randint(1, 6) for name in ("out_h", "out_w")} | {"out_blocks": rng.randint(1, 3)}
    table = rng.choice((TableUse.NONE, TableUse.LOAD, TableUse.KEEP))
    return any_descriptor(READOUT_DESCRIPTOR, rng) | size | {"table": table, "res_shift": rng.randrange(48)}


def _strips(descriptor: Numbers, params: HardwareParams, rng: random.Random) -> Iterator[int]:
    """Random strip lengths that fill each block of an output."""
    for _ in range(descriptor["out_blocks"]):
        left = descriptor["out_h"] * descriptor["out_w"]
        while left:
            length = rng.randint(1, min(left, params.strip))
            yield length
            left -= length


class Environment:
    """Drives strips and parameters at random, models the epilogue's occupancy and the residual's memory."""

    def __init__(
        self, params: HardwareParams, descriptors: list[Numbers], strips: list[int], rng: random.Random, rate: float
    ) -> None:
        self.readout, self.params, self.rng, self.rate = made(AccumulatorReadout, params), params, rng, rate
        self.seen: list[Numbers] = []
        self.switches = 0
        self._strips = strips.copy()
        self._blocks = sum(descriptor["out_blocks"] for descriptor in descriptors)
        self._waiting = self._loaded = 0
        self._credits = 0
        self._ran: list[bool] = []
        """`run` in each cycle, from the one before the last item retired on."""
        self._in_flight: deque[bool] = deque([False] * 9)
        self._residuals: deque[Numbers | None] = deque([None] * READ_LATENCY)
        self._words: deque[int | None] = deque([None] * (READ_LATENCY - 1))
        self._content: dict[int, int] = {}

    async def follow(self, ctx: Any, items: int) -> None:
        """Run until all items have retired and the last operand has arrived."""
        while len(self.seen) < items or any(self._residuals):
            self._give(ctx)
            item = self._look(ctx) if ctx.get(self.readout.item) else None
            names = ("groups", "corrected", "bank_released", "channels_released", "activate")
            assert item or not any(ctx.get(getattr(self.readout, name)) for name in names), "an event without an item"
            if ctx.get(self.readout.table_switched):
                self.switches += 1
            self._in_flight.popleft()
            self._in_flight.append(item is not None)
            self._check_operand(ctx, item)
            await ctx.tick()
            word = self._words.popleft()
            ctx.set(
                self.readout.residual.data, self.rng.getrandbits(8 * self.params.word_bytes) if word is None else word
            )

    def _give(self, ctx: Any) -> None:
        readout, rng = self.readout, self.rng
        strip = bool(self._strips) and self._waiting < 2 and rng.random() < self.rate / 4
        loaded = self._blocks > 0 and self._loaded < 2 and rng.random() < self.rate / 4
        ctx.set(readout.strip_ready, strip)
        ctx.set(readout.strip_ends, strip)
        ctx.set(readout.strip_length, self._strips.pop(0) if strip else rng.getrandbits(4))
        ctx.set(readout.channels_loaded, loaded)
        self._credits += rng.random() < (1 + self.rate) / 2
        ctx.set(readout.credit_available, self._credits >= 3)
        self._ran.append(rng.random() < (1 + self.rate) / 2)
        ctx.set(readout.run, self._ran[-1])
        ctx.set(readout.epilogue_idle, not any(self._in_flight))
        ctx.set(readout.residual.ready, rng.random() < self.rate)
        self._blocks -= loaded
        self._waiting += strip
        self._loaded += loaded

    def _look(self, ctx: Any) -> Numbers:
        readout, groups = self.readout, self.params.cols // self.params.lanes
        tag = ctx.get(readout.tag)
        names = ("address", "group", "channel_set", "bank_released", "channels_released", "activate")
        names = (*names, "corrected", "correction_set", "shift", "even", "fault_index")
        item = {name: ctx.get(getattr(readout, name)) for name in names}
        item |= {name: tag[name] for name in ("zp_out", "use_table", "table_set", "residual")}
        assert ctx.get(readout.groups) == 1 << item["group"] < 1 << groups
        assert ctx.get(readout.residual.valid) == tag.residual
        assert self._credits, "an item retires without a position for its result"
        if self.seen and self.seen[-1]["fault_index"] != item["fault_index"]:
            alone = item["residual"] or self.seen[-1]["residual"]
            assert not (alone and any(self._in_flight)), "an instruction with a residual shares the epilogue"
        assert any(self._ran[:-2]), "an item issues without `run`"
        self._ran = self._ran[-2:]
        self._credits -= 1
        assert ctx.get(readout.residual.ready) or not tag.residual
        assert self._waiting > 0 < self._loaded, "an item of no strip, or without its block's parameters"
        self._waiting -= item["bank_released"]
        self._loaded -= item["channels_released"]
        self.seen.append(item)
        return item

    def _check_operand(self, ctx: Any, item: Numbers | None) -> None:
        """Residual bytes arrive READ_LATENCY cycles after their item."""
        requested = item is not None and bool(item["residual"])
        address = ctx.get(self.readout.residual.addr)
        word = (
            self._content.setdefault(address, self.rng.getrandbits(8 * self.params.word_bytes)) if requested else None
        )
        self._words.append(word)
        due = self._residuals.popleft()
        self._residuals.append({"at": len(self.seen) - 1, "word": address} if requested else None)
        assert ctx.get(self.readout.residual_arrived) == (due is not None)
        if due is not None:
            lanes = range(self.params.lanes)
            found = bytes(ctx.get(self.readout.residual_bytes[lane]) for lane in lanes)
            self.seen[due["at"]] |= {"word": due["word"], "operand": int.from_bytes(found, "little")}

    def operand(self, item: Numbers) -> int:
        """The expected operand of an item."""
        return self._content[item["word"]] >> 8 * item["byte"] & (1 << 8 * self.params.lanes) - 1


async def _offer(ctx: Any, readout: AccumulatorReadout, strips: int) -> None:
    """Strips of one pixel with the parameters of their blocks; from then on all that an item waits for is there."""
    once = (readout.strip_ready, readout.strip_ends, readout.channels_loaded)
    ever = (readout.run, readout.credit_available, readout.epilogue_idle, readout.residual.ready)
    for port in (*ever, *once):
        ctx.set(port, 1)
    ctx.set(readout.strip_length, 1)
    await ctx.tick().repeat(strips)
    for port in once:
        ctx.set(port, 0)


def test_the_first_item_has_the_stated_latency(rng: random.Random) -> None:
    readout = made(AccumulatorReadout, NANO)

    async def bench(ctx: Any) -> None:
        await _offer(ctx, readout, 1)
        ctx.set(readout.descriptors.payload, _readout_descriptor(rng))
        ctx.set(readout.descriptors.valid, 1)
        for _ in range(AccumulatorReadout.LATENCY):
            assert not ctx.get(readout.item)
            taken = ctx.get(readout.descriptors.ready)
            await ctx.tick()
            if taken:
                ctx.set(readout.descriptors.valid, 0)
        assert ctx.get(readout.item)

    run(readout, bench)


@pytest.mark.parametrize("residuals", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_only_around_a_residual_an_instruction_waits_for_the_epilogue(
    residuals: tuple[int, int], rng: random.Random
) -> None:
    readout = made(AccumulatorReadout, NANO)
    one = {"out_h": 1, "out_w": 1, "out_blocks": 1}

    async def taken(ctx: Any, cycles: int) -> bool:
        for _ in range(cycles):
            *_, ready = await ctx.tick().sample(readout.descriptors.ready)
            if ready:
                ctx.set(readout.descriptors.valid, 0)
                return True
        return False

    async def offer(ctx: Any, residual: int) -> None:
        ctx.set(readout.descriptors.payload, _readout_descriptor(rng) | one | {"residual": residual})
        ctx.set(readout.descriptors.valid, 1)

    async def bench(ctx: Any) -> None:
        await _offer(ctx, readout, 2)
        await offer(ctx, residuals[0])
        assert await taken(ctx, AccumulatorReadout.LATENCY)
        await offer(ctx, residuals[1])
        items = NANO.cols // NANO.lanes
        cycles = items + 2 * AccumulatorReadout.LATENCY
        for _ in range(items if residuals[0] else 0):
            # An item that waits for its operand keeps its instruction, even if the epilogue has finished the others.
            ctx.set(readout.residual.ready, 0)
            ctx.set(readout.epilogue_idle, 1)
            assert not await taken(ctx, cycles)
            ctx.set(readout.residual.ready, 1)
            ctx.set(readout.epilogue_idle, 0)
            assert not await taken(ctx, 1)
        # The first instruction's items are in the epilogue for as long as it takes.
        ctx.set(readout.epilogue_idle, 0)
        assert await taken(ctx, cycles) != any(residuals)
        ctx.set(readout.epilogue_idle, 1)
        assert not any(residuals) or await taken(ctx, AccumulatorReadout.LATENCY)

    run(readout, bench)


def _check(
    params: HardwareParams, descriptors: list[Numbers], strips: list[int], rng: random.Random, rate: float
) -> None:
    """Every sum of these strips, with its residual."""
    bench = Environment(params, descriptors, strips, rng, rate)
    items = sum(strips) * params.cols // params.lanes
    expected = list(islice(AccumulatorReadout.model(descriptors, strips, params), items))

    async def follow(ctx: Any) -> None:
        await bench.follow(ctx, len(expected))

    run(bench.readout, source(bench.readout.descriptors, descriptors, rng, rate), follow)
    assert bench.switches == sum(descriptor["table"] == TableUse.LOAD for descriptor in descriptors)
    for found, wanted in zip(bench.seen, expected, strict=True):
        if wanted["residual"]:
            wanted["operand"] = bench.operand(wanted)
        names = wanted.keys() - {"byte"} - (set() if wanted["residual"] else {"word"})
        assert found == {name: wanted[name] for name in names}


@pytest.mark.parametrize("name", OUTPUT_SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_every_sum_retires_with_its_residual(name: str, rate: float, rng: random.Random) -> None:
    params = OUTPUT_SHAPES[name]
    # Each pixel of 64 columns has as many items as 16 pixels of `nano`.
    count = 8 if params.cols < 64 else 2
    descriptors = [_readout_descriptor(rng) for _ in range(count)]
    _check(params, descriptors, [n for descriptor in descriptors for n in _strips(descriptor, params, rng)], rng, rate)


def test_a_descriptor_may_have_the_most_blocks(rng: random.Random) -> None:
    most = (1 << BY_KIND[Kind.CONV].field("out_blocks").width) - 1
    descriptor = _readout_descriptor(rng) | {"out_h": 1, "out_w": 1, "out_blocks": most}
    _check(OUTPUT_SHAPES["whole"], [descriptor], [1] * most, rng, 1.0)


@pytest.mark.parametrize("name", ["out_h", "out_w"])
def test_sizes_have_all_their_bits(name: str, rng: random.Random) -> None:
    """A line, or a block, would end after two pixels if one of two bits were lost."""
    for bit in range(3, BY_KIND[Kind.CONV].field(name).width):
        size = {"out_h": 1, "out_w": 1, "out_blocks": 1, name: 1 << bit | 2}
        _check(OUTPUT_SHAPES["whole"], [_readout_descriptor(rng) | size | {"residual": 1}], [4], rng, 1.0)
