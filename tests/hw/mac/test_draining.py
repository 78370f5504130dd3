"""The MAC unit's way out: sums are drained in the writer's order, and every byte goes to its place."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from hw.mac.drain import Drain
from hw.mac.writer import Writer
from hw.ports import READ_LATENCY
from hw.spec.isa import COUNT_BITS, SCRATCH_BITS, TableUse
from hw.spec.params import HardwareParams, preset
from tests.hw.streams import run, source

NANO = preset("nano")
SHAPES = {
    "nano": NANO,
    "tall": NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64),
    "wide": NANO.replace(rows=4, cols=8, weight_kib=64),
    "whole": NANO.replace(lanes=4),
}
RATES = [1.0, 0.5]
ADDRESSES = 1 << SCRATCH_BITS
Numbers = dict[str, int]


def _size(rng: random.Random) -> Numbers:
    return {"out_h": rng.randint(1, 6), "out_w": rng.randint(1, 6), "out_blocks": rng.randint(1, 3)}


def _groups(job: Numbers, params: HardwareParams) -> Iterator[tuple[int, int, int, int]]:
    """Block, row, column and group in the order in which sums drain."""
    for block in range(job["out_blocks"]):
        for oy in range(job["out_h"]):
            for ox in range(job["out_w"]):
                yield from ((block, oy, ox, group) for group in range(params.cols // params.lanes))


def _write_job(rng: random.Random, params: HardwareParams) -> Numbers:
    return _size(rng) | {
        "out_base": rng.getrandbits(SCRATCH_BITS),
        "out_plane": rng.getrandbits(SCRATCH_BITS),
        "out_row": rng.getrandbits(16),
        "out_x": rng.randint(1, 15),
        "out_lane": rng.randrange(0, params.rows, params.lanes),
        "index": rng.getrandbits(COUNT_BITS),
    }


def _writes(job: Numbers, params: HardwareParams) -> Iterator[tuple[int, int]]:
    """Word and first byte of every group of results."""
    for block, oy, ox, group in _groups(job, params):
        place = job["out_lane"] + block * params.cols + group * params.lanes
        word = job["out_base"] + place // params.rows * job["out_plane"] + oy * job["out_row"] + ox * job["out_x"]
        yield word % ADDRESSES, place % params.rows


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_bytes_are_written_where_they_belong(name: str, rate: float, rng: random.Random) -> None:
    params = SHAPES[name]
    writer = Writer(params)
    jobs = [_write_job(rng, params) for _ in range(8)]
    places = [(place, job["index"]) for job in jobs for place in _writes(job, params)]
    results = [rng.randbytes(params.lanes) for _ in places]
    outside = {word for (word, _), _ in rng.sample(places, 3)}
    written: list[tuple[int, int, bytes]] = []
    done_after: list[int] = []
    faults: list[int] = []

    async def memory(ctx: Any) -> None:
        port = writer.drain
        while len(done_after) < len(jobs):
            running = rng.random() < (1 + rate) / 2
            ctx.set(writer.run, running)
            ctx.set(port.ready, rng.random() < rate)
            ctx.set(port.fault, ctx.get(port.valid) and ctx.get(port.addr) in outside)
            assert ctx.get(writer.pending) == ctx.get(port.valid)
            assert running or not ctx.get(writer.results.ready)
            if ctx.get(writer.fault):
                faults.append(ctx.get(writer.fault_index))
            if ctx.get(writer.done):
                done_after.append(len(written))
            if ctx.get(port.valid) and ctx.get(port.ready):
                first = (ctx.get(port.mask) & -ctx.get(port.mask)).bit_length() - 1
                assert ctx.get(port.mask) == (1 << params.lanes) - 1 << first
                word = ctx.get(port.data).to_bytes(params.word_bytes, "little")
                written.append((ctx.get(port.addr), first, word[first : first + params.lanes]))
            await ctx.tick()

    payloads = [list(result) for result in results]
    run(writer, source(writer.jobs, jobs, rng, rate), source(writer.results, payloads, rng, rate), memory)
    assert written == [(*place, result) for (place, _), result in zip(places, results, strict=True)]
    ends = [sum(1 for _ in _writes(job, params)) for job in jobs]
    assert done_after == [sum(ends[: k + 1]) for k in range(len(jobs))]
    assert faults == [index for (word, _), index in places if word in outside]


def _drain_job(rng: random.Random) -> Numbers:
    return _size(rng) | {
        "zp_out": rng.randint(-128, 127),
        "table": rng.choice((TableUse.NONE, TableUse.LOAD, TableUse.KEEP)),
        "residual": rng.randrange(2),
        "res_base": rng.getrandbits(SCRATCH_BITS),
        "res_plane": rng.getrandbits(SCRATCH_BITS),
        "res_row": rng.getrandbits(16),
        "res_shift": rng.randrange(48),
        "res_even": rng.randrange(2),
        "index": rng.getrandbits(COUNT_BITS),
    }


def _strip_lengths(job: Numbers, params: HardwareParams) -> list[int]:
    """Pixels of each strip of a block."""
    pixels = job["out_h"] * job["out_w"]
    count = -(-pixels // params.strip)
    return [pixels // count + (strip < pixels % count) for strip in range(count)]


def _items(jobs: list[Numbers], params: HardwareParams) -> Iterator[Numbers]:
    """Every item with what goes along with it."""
    bank = table_set = channel_set = 0
    for job in jobs:
        table_set ^= job["table"] == TableUse.LOAD
        strips: list[int] = []
        number, first = 0, True
        for block, oy, ox, group in _groups(job, params):
            strips = strips or _strip_lengths(job, params)
            ends = group == params.cols // params.lanes - 1
            released = ends and number == strips[0] - 1
            block_ends = released and len(strips) == 1
            place = block * params.cols + group * params.lanes
            word = job["res_base"] + place // params.rows * job["res_plane"] + oy * job["res_row"] + ox
            yield {
                **{name: job[name] for name in ("zp_out", "residual", "index")},
                "shift": job["res_shift"],
                "even": job["res_even"],
                "use_table": job["table"] != TableUse.NONE,
                "table_set": table_set,
                "channel_set": channel_set,
                "group": group,
                "bank": bank,
                "number": number,
                "bank_released": released,
                "channels_released": block_ends,
                "activate": first and job["residual"],
                "word": word % ADDRESSES,
                "byte": place % params.rows,
            }
            first = False
            number = 0 if released else number + ends
            bank ^= released
            channel_set ^= block_ends
            strips = strips[released:]


class Surroundings:
    """Strips and parameters that come at random, an epilogue that takes its time, and the residual's memory."""

    def __init__(self, params: HardwareParams, jobs: list[Numbers], rng: random.Random, rate: float) -> None:
        self.drain, self.params, self.rng, self.rate = Drain(params), params, rng, rate
        self.seen: list[Numbers] = []
        self.activations = self.switches = 0
        self._strips = [n for job in jobs for _ in range(job["out_blocks"]) for n in _strip_lengths(job, params)]
        self._blocks = sum(job["out_blocks"] for job in jobs)
        self._waiting = self._loaded = 0
        self._room = False
        self._under_way: deque[bool] = deque([False] * 9)
        self._residuals: deque[Numbers | None] = deque([None] * READ_LATENCY)
        self._words: deque[int | None] = deque([None] * (READ_LATENCY - 1))
        self._content: dict[int, int] = {}

    async def follow(self, ctx: Any, items: int) -> None:
        """Until all items have gone out and the last operand has come."""
        while len(self.seen) < items or any(self._residuals):
            self._give(ctx)
            item = self._look(ctx) if ctx.get(self.drain.item) else None
            if ctx.get(self.drain.table_switched):
                self.switches += 1
            self._under_way.popleft()
            self._under_way.append(item is not None)
            self._check_operand(ctx, item)
            await ctx.tick()
            word = self._words.popleft()
            ctx.set(
                self.drain.residual.data, self.rng.getrandbits(8 * self.params.word_bytes) if word is None else word
            )

    def _give(self, ctx: Any) -> None:
        drain, rng = self.drain, self.rng
        strip = bool(self._strips) and self._waiting < 2 and rng.random() < self.rate / 4
        loaded = self._blocks > 0 and self._loaded < 2 and rng.random() < self.rate / 4
        ctx.set(drain.strip_ready, strip)
        ctx.set(drain.strip_length, self._strips.pop(0) if strip else rng.getrandbits(4))
        ctx.set(drain.channels_loaded, loaded)
        # Room is taken away by items alone.
        self._room = self._room or rng.random() < (1 + self.rate) / 2
        ctx.set(drain.room, self._room)
        ctx.set(drain.run, rng.random() < (1 + self.rate) / 2)
        ctx.set(drain.empty, not any(self._under_way))
        ctx.set(drain.residual.ready, rng.random() < self.rate)
        self._blocks -= loaded
        self._waiting += strip
        self._loaded += loaded

    def _look(self, ctx: Any) -> Numbers:
        drain, groups = self.drain, self.params.cols // self.params.lanes
        bank, number = divmod(ctx.get(drain.address), self.params.strip)
        tag = ctx.get(drain.tag)
        names = ("channel_set", "group", "bank_released", "channels_released", "activate", "shift", "even")
        item = {name: ctx.get(getattr(drain, name)) for name in names}
        item |= {name: tag[name] for name in ("zp_out", "use_table", "table_set", "residual")}
        item |= {"index": ctx.get(drain.fault_index), "bank": bank, "number": number}
        assert ctx.get(drain.groups) == 1 << item["group"] < 1 << groups
        assert ctx.get(drain.residual.valid) == tag.residual
        assert self._room, "an item goes out without a place for its result"
        self._room = False
        assert ctx.get(drain.residual.ready) or not tag.residual
        self._waiting -= item["bank_released"]
        self._loaded -= item["channels_released"]
        self.seen.append(item)
        return item

    def _check_operand(self, ctx: Any, item: Numbers | None) -> None:
        """The residual's bytes come READ_LATENCY cycles after their item."""
        asked = item is not None and bool(item["residual"])
        address = ctx.get(self.drain.residual.addr)
        word = self._content.setdefault(address, self.rng.getrandbits(8 * self.params.word_bytes)) if asked else None
        self._words.append(word)
        due = self._residuals.popleft()
        self._residuals.append({"at": len(self.seen) - 1, "word": address} if asked else None)
        assert ctx.get(self.drain.residual_arrived) == (due is not None)
        if due is not None:
            lanes = range(self.params.lanes)
            found = bytes(ctx.get(self.drain.residual_bytes[lane]) for lane in lanes)
            self.seen[due["at"]] |= {"word": due["word"], "operand": int.from_bytes(found, "little")}

    def operand(self, item: Numbers) -> int:
        """What should have come for an item."""
        return self._content[item["word"]] >> 8 * item["byte"] & (1 << 8 * self.params.lanes) - 1


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_every_sum_is_drained_with_its_residual(name: str, rate: float, rng: random.Random) -> None:
    params = SHAPES[name]
    jobs = [_drain_job(rng) for _ in range(8)]
    world = Surroundings(params, jobs, rng, rate)
    expected = list(_items(jobs, params))

    async def follow(ctx: Any) -> None:
        await world.follow(ctx, len(expected))

    run(world.drain, source(world.drain.jobs, jobs, rng, rate), follow)
    assert world.switches == sum(job["table"] == TableUse.LOAD for job in jobs)
    for found, wanted in zip(world.seen, expected, strict=True):
        if wanted["residual"]:
            wanted["operand"] = world.operand(wanted)
        names = wanted.keys() - {"byte"} - (set() if wanted["residual"] else {"word"})
        assert found == {name: wanted[name] for name in names}
