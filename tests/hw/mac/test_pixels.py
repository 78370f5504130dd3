"""The MAC unit's way from a plan to input words: the sequencer's pixels, and what the feed makes of them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from hw.mac.feed import PIXEL_BYTES, InputFeed
from hw.mac.prepare import plan_layout
from hw.mac.sequencer import Sequencer
from hw.mac.sums import ColumnSums
from hw.mac.tiles import TilePlanner
from hw.ports import READ_LATENCY
from hw.spec.isa import COUNT_BITS, SCRATCH_BITS
from hw.spec.params import HardwareParams, preset
from tests.hw.streams import run, source

NANO = preset("nano")
TURNS = NANO.replace(cols=8)
"""A drain so slow that it begins behind a strip's last pixel."""
ADDRESSES = 1 << SCRATCH_BITS
BANKS = 2
RATES = [1.0, 0.4]
Numbers = dict[str, int]


def _plan(rng: random.Random, params: HardwareParams) -> Numbers:
    """A prepared job whose addresses and coordinates may be anything."""
    out_h, out_w = rng.randint(1, 7), rng.randint(1, 9)
    ring = rng.choice((0, rng.randrange(1, ADDRESSES)))
    strips = -(-out_h * out_w // params.strip)
    length, longer = divmod(out_h * out_w, strips)
    return {
        **{name: rng.randint(1, 3) for name in ("kernel_h", "kernel_w", "in_blocks", "out_blocks")},
        **{name: rng.getrandbits(SCRATCH_BITS) for name in ("in_base", "in_plane", "in_block_step")},
        **{name: rng.randrange(ring or ADDRESSES) for name in ("row_first", "row_stride", "row_tap")},
        **{name: rng.randint(1, 4) for name in ("stride_h", "stride_w")},
        **{name: rng.randint(1, 20) for name in ("in_h", "in_w")},
        **{name: rng.randrange(2) for name in ("two_planes", "packed")},
        "iy0": rng.randint(-9, 9),
        "ix0": rng.randint(-9, 9),
        "column_tap": rng.randint(1, 15),
        "in_ring": ring,
        "dilation_h": rng.randint(1, 15),
        "zp_in": rng.randint(-128, 127),
        "out_w": out_w,
        "strips": strips,
        "length": length,
        "longer": longer,
        "index": rng.getrandbits(COUNT_BITS),
    }


def _strips(plan: Numbers) -> Iterator[range]:
    """Pixels of each strip, in raster order."""
    start = 0
    for strip in range(plan["strips"]):
        stop = start + plan["length"] + (strip < plan["longer"])
        yield range(start, stop)
        start = stop


def _taps(plan: Numbers) -> Iterator[tuple[int, int, int]]:
    """Kernel row, kernel column and input block of each tile of a strip."""
    for _ in range(1 + plan["two_planes"]):
        for ky in range(plan["kernel_h"]):
            for kx in range(plan["kernel_w"]):
                yield from ((ky, kx, block) for block in range(plan["in_blocks"]))


def _position(plan: Numbers, tap: tuple[int, int, int], pixel: int) -> Numbers:
    """Where a pixel of a tile lies in the input."""
    (oy, ox), (ky, kx, _) = divmod(pixel, plan["out_w"]), tap
    return {
        "ix": plan["ix0"] + ox * plan["stride_w"] + kx * plan["column_tap"],
        "iy": plan["iy0"] + oy * plan["stride_h"] + ky * plan["dilation_h"],
        "row": (plan["row_first"] + oy * plan["row_stride"] + ky * plan["row_tap"]) % (plan["in_ring"] or ADDRESSES),
        "left": plan["out_w"] - 1 - ox,
    }


def _pixel(plan: Numbers, block: int, tap: tuple[int, int, int], pixel: int) -> Numbers:
    """What the feed is told of a pixel."""
    at = _position(plan, tap, pixel)
    base = plan["in_base"] + block * plan["in_block_step"] + tap[2] * plan["in_plane"]
    return {
        "row_inside": 0 <= at["iy"] < plan["in_h"],
        "ix": at["ix"],
        "address": (base + at["row"]) % ADDRESSES,
        **{name: plan[name] for name in ("in_w", "packed", "zp_in", "index")},
    }


def _expected(plans: list[Numbers], params: HardwareParams) -> Iterator[Numbers]:
    """All pixels in order, with their place in their strip's bank."""
    bank = 0
    for plan in plans:
        for block in range(plan["out_blocks"]):
            for strip in _strips(plan):
                taps = list(_taps(plan))
                for tile, tap in enumerate(taps):
                    for number, pixel in enumerate(strip):
                        begins, last = number == 0, tile == len(taps) - 1
                        tells = number == len(strip) - 1 if ColumnSums.takes_turns(params) else begins
                        yield {
                            **_pixel(plan, block, tap, pixel),
                            "swap": begins,
                            "first_tile": tile == 0,
                            "number": number,
                            "bank": bank,
                            "strip_ready": tells and last,
                            "strip_length": len(strip),
                        }
                bank ^= 1


class Consumer:
    """What surrounds the sequencer: weights that come at random, and a drain that gives banks back."""

    def __init__(self, sequencer: Sequencer, params: HardwareParams, rng: random.Random, rate: float) -> None:
        self.sequencer, self.params, self.rng, self.rate = sequencer, params, rng, rate
        self.seen: list[Numbers] = []
        self.started = 0
        self.waits = {"weights": 0, "bank": 0}
        self._weights = False
        self._finished_strips = self._used = 0

    async def follow(self, ctx: Any, pixels: int) -> None:
        """Until all pixels have gone out."""
        sequencer, within = self.sequencer, False
        while len(self.seen) < pixels:
            self._weights = self._weights or self.rng.random() < self.rate**3
            releases = self._finished_strips > 0 and self.rng.random() < self.rate / 20
            ctx.set(sequencer.weights_ready, self._weights)
            ctx.set(sequencer.bank_released, releases)
            ctx.set(sequencer.run, self.rng.random() < (1 + self.rate) / 2)
            self.started += ctx.get(sequencer.started)
            self.waits["weights"] += ctx.get(sequencer.waits_weights)
            self.waits["bank"] += ctx.get(sequencer.waits_bank)
            valid = bool(ctx.get(sequencer.pixel_valid))
            assert valid or not within, "a tile once begun never stops"
            assert ctx.get(sequencer.weights_taken) == (valid and not within)
            if valid:
                pixel = self._look(ctx)
                within = pixel["number"] != pixel["strip_length"] - 1
                self._use(pixel)
            self._used -= releases
            self._finished_strips -= releases
            await ctx.tick()

    def _use(self, pixel: Numbers) -> None:
        if pixel["swap"]:
            assert self._weights, "a tile begins without its weights"
            self._weights = False
            self._used += pixel["first_tile"]
            assert self._used <= BANKS, "a strip begins in a bank that the drain still reads"
        self._finished_strips += pixel["strip_ready"]

    def _look(self, ctx: Any) -> Numbers:
        sequencer = self.sequencer
        fed = ctx.get(sequencer.pixel)
        bank, number = divmod(ctx.get(sequencer.address), self.params.strip)
        pixel = {
            name: fed[name] for name in ("row_inside", "ix", "address", "in_w", "packed", "zp_in", "index", "swap")
        }
        pixel |= {name: ctx.get(getattr(sequencer, name)) for name in ("first_tile", "strip_ready", "strip_length")}
        self.seen.append(pixel | {"bank": bank, "number": number})
        return self.seen[-1]


@pytest.mark.parametrize("params", [NANO, TURNS], ids=["nano", "turns"])
@pytest.mark.parametrize("rate", RATES)
def test_every_pixel_of_every_tile_goes_out_in_order(params: HardwareParams, rate: float, rng: random.Random) -> None:
    sequencer = Sequencer(params)
    plans = [_plan(rng, params) for _ in range(6)]
    # Strips of one tile each come faster than the drain gives their banks back.
    plans[0] |= {"kernel_h": 1, "kernel_w": 1, "in_blocks": 1, "two_planes": 0, "out_blocks": 3}
    plans[0] |= {"strips": 4, "length": params.strip, "longer": 0}
    consumer = Consumer(sequencer, params, rng, rate)
    expected = list(_expected(plans, params))

    async def follow(ctx: Any) -> None:
        await consumer.follow(ctx, len(expected))

    assert set(plans[0]) == set(plan_layout(params).members)
    run(sequencer, source(sequencer.plans, plans, rng, rate), follow)
    assert consumer.seen == expected
    assert consumer.started == len(plans)
    assert consumer.waits["bank"] > 0
    assert (consumer.waits["weights"] > 0) == (rate < 1)


def _tiles(plan: Numbers) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Each tile, where it starts, and where the strip after its own does."""
    for block in range(plan["out_blocks"]):
        for strip_number, strip in enumerate(_strips(plan)):
            taps = list(_taps(plan))
            for number, tap in enumerate(taps):
                first, last = number == 0, number == len(taps) - 1
                tile = {
                    "line": plan["ix0"] + tap[1] * plan["column_tap"],
                    "base": (plan["in_base"] + block * plan["in_block_step"] + tap[2] * plan["in_plane"]) % ADDRESSES,
                    "length": len(strip),
                    "first": first,
                    "last": last,
                    "continues": first and last and strip_number > 0,
                }
                yield tile, _position(plan, tap, strip.start), _position(plan, taps[0], strip.stop)


def test_tiles_are_planned_ahead(rng: random.Random) -> None:
    planner = TilePlanner(NANO)
    plans = [_plan(rng, NANO) for _ in range(8)]
    plans[0] |= {"kernel_h": 1, "kernel_w": 1, "in_blocks": 1, "two_planes": 0, "strips": 3, "length": 5, "longer": 2}
    plans[0] |= {"out_w": 6}
    continued = 0

    async def pause(ctx: Any) -> None:
        while rng.random() < 0.5:
            await ctx.tick()

    async def ready(ctx: Any) -> None:
        cycles = 0
        while not ctx.get(planner.ready):
            await ctx.tick()
            cycles += 1
        assert cycles < planner.LATENCY
        await pause(ctx)

    async def bench(ctx: Any) -> None:
        nonlocal continued
        for plan in plans:
            ctx.set(planner.start, 1)
            await ctx.tick()
            ctx.set(planner.start, 0)
            ctx.set(planner.plan, plan)
            current, *following = _tiles(plan)
            for tile, start, after in following:
                await ready(ctx)
                assert not ctx.get(planner.finished)
                found = ctx.get(planner.tile)
                assert {name: found[name] for name in tile} == tile
                # A tile that continues starts where the current one ends, which is not known yet.
                assert tile["continues"] or {name: found.start[name] for name in start} == start
                continued += tile["continues"]
                ctx.set(planner.step, 1)
                ctx.set(planner.capture, current[0]["first"])
                ctx.set(planner.captured, current[2])
                await ctx.tick()
                ctx.set(planner.step, 0)
                ctx.set(planner.capture, 0)
                current = tile, start, after
            await ready(ctx)
            assert ctx.get(planner.finished)

    run(planner, bench)
    assert continued > 0


WORDS = 64


def _pixel_to_feed(rng: random.Random, params: HardwareParams) -> Numbers:
    packed = rng.randrange(2)
    in_w = rng.randint(1, 12 * (params.pixels_per_word if packed else 1))
    return {
        "swap": rng.randrange(2),
        "row_inside": rng.random() < 0.9,
        "ix": rng.randint(-2 * params.pixels_per_word, in_w + params.pixels_per_word),
        "in_w": in_w,
        "address": rng.randrange(WORDS - 8),
        "packed": packed,
        "zp_in": rng.randint(-128, 127),
        "index": rng.getrandbits(16),
    }


def _fed(pixel: Numbers, words: list[bytes], params: HardwareParams) -> bytes | None:
    """The word that the array is given; None when a word outside the memory is needed for it."""
    padding = bytes([pixel["zp_in"] & 0xFF])
    if not pixel["packed"]:
        at = pixel["address"] + pixel["ix"]
        if not (pixel["row_inside"] and 0 <= pixel["ix"] < pixel["in_w"]):
            return padding * params.word_bytes
        return words[at] if at < WORDS else None
    parts = []
    for x in range(pixel["ix"], pixel["ix"] + params.pixels_per_word):
        word, place = divmod(x, params.pixels_per_word)
        if not (pixel["row_inside"] and 0 <= x < pixel["in_w"]):
            parts.append(padding * PIXEL_BYTES)
        elif pixel["address"] + word >= WORDS:
            return None
        else:
            parts.append(words[pixel["address"] + word][PIXEL_BYTES * place : PIXEL_BYTES * (place + 1)])
    return b"".join(parts)


@pytest.mark.parametrize("name", ["nano", "small", "base"])
@pytest.mark.parametrize("rate", RATES)
def test_words_are_fetched_shifted_and_padded(name: str, rate: float, rng: random.Random) -> None:
    params = preset(name)
    feed = InputFeed(params)
    words = [rng.randbytes(params.word_bytes) for _ in range(WORDS)]
    pixels = [_pixel_to_feed(rng, params) if rng.random() < rate else None for _ in range(200)]
    outside: set[int] = set()

    async def bench(ctx: Any) -> None:
        due = {port: deque([b""] * (READ_LATENCY - 1)) for port in ("act0", "act1")}
        for cycle, now in enumerate([*pixels, *[None] * InputFeed.LATENCY]):
            ctx.set(feed.valid, now is not None)
            if now is not None:
                ctx.set(feed.pixel, now)
            for port, waiting in due.items():
                waiting.append(_answer(ctx, getattr(feed, port), words, rng))
            if ctx.get(feed.fault):
                outside.add(ctx.get(feed.fault_index))
            earlier = pixels[cycle - InputFeed.LATENCY] if cycle >= InputFeed.LATENCY else None
            assert ctx.get(feed.word_valid) == (earlier is not None)
            assert ctx.get(feed.swap) == (earlier is not None and earlier["swap"])
            if earlier is not None and (wanted := _fed(earlier, words, params)) is not None:
                assert ctx.get(feed.word) == int.from_bytes(wanted, "little"), earlier
            await ctx.tick()
            for port, waiting in due.items():
                noise = rng.randbytes(params.word_bytes)
                ctx.set(getattr(feed, port).data, int.from_bytes(waiting.popleft() or noise, "little"))

    run(feed, bench)
    missing = {pixel["index"] for pixel in pixels if pixel is not None and _fed(pixel, words, params) is None}
    assert outside == missing


def _answer(ctx: Any, port: Any, words: list[bytes], rng: random.Random) -> bytes:
    """Serve a port that is never refused; nothing comes of a read outside the memory."""
    valid, at = ctx.get(port.valid), ctx.get(port.addr)
    ctx.set(port.ready, 1)
    ctx.set(port.fault, valid and at >= WORDS)
    return words[at] if valid and at < WORDS else b""
