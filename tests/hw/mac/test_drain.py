"""The drain: the items of finished strips go out in the writer's order, each with its residual operand."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from intloom.hw.mac.drain import Drain
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS, TableUse
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import NANO, OUTPUT_SHAPES, RATES
from tests.hw.streams import run, source

Numbers = dict[str, int]


def _drain_job(rng: random.Random) -> Numbers:
    return {
        **{name: rng.randint(1, 6) for name in ("out_h", "out_w")},
        "out_blocks": rng.randint(1, 3),
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


def _strips(job: Numbers, params: HardwareParams, rng: random.Random) -> Iterator[int]:
    """Lengths of strips that fill each block of an output, long and short ones."""
    for _ in range(job["out_blocks"]):
        left = job["out_h"] * job["out_w"]
        while left:
            length = rng.randint(1, min(left, params.strip))
            yield length
            left -= length


class Surroundings:
    """Strips and parameters that come at random, an epilogue that takes its time, and the residual's memory."""

    def __init__(
        self, params: HardwareParams, jobs: list[Numbers], strips: list[int], rng: random.Random, rate: float
    ) -> None:
        self.drain, self.params, self.rng, self.rate = Drain(params), params, rng, rate
        self.seen: list[Numbers] = []
        self.switches = 0
        self._strips = strips.copy()
        self._blocks = sum(job["out_blocks"] for job in jobs)
        self._waiting = self._loaded = 0
        self._places = 0
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
        self._places += rng.random() < (1 + self.rate) / 2
        ctx.set(drain.room, self._places >= 3)
        ctx.set(drain.run, rng.random() < (1 + self.rate) / 2)
        ctx.set(drain.empty, not any(self._under_way))
        ctx.set(drain.residual.ready, rng.random() < self.rate)
        self._blocks -= loaded
        self._waiting += strip
        self._loaded += loaded

    def _look(self, ctx: Any) -> Numbers:
        drain, groups = self.drain, self.params.cols // self.params.lanes
        tag = ctx.get(drain.tag)
        names = ("address", "group", "channel_set", "bank_released", "channels_released", "activate")
        names = (*names, "shift", "even", "fault_index")
        item = {name: ctx.get(getattr(drain, name)) for name in names}
        item |= {name: tag[name] for name in ("zp_out", "use_table", "table_set", "residual")}
        assert ctx.get(drain.groups) == 1 << item["group"] < 1 << groups
        assert ctx.get(drain.residual.valid) == tag.residual
        assert self._places, "an item goes out without a place for its result"
        self._places -= 1
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


def test_the_first_item_goes_out_at_once(rng: random.Random) -> None:
    drain = Drain(NANO)

    async def bench(ctx: Any) -> None:
        for port in (
            drain.run,
            drain.room,
            drain.empty,
            drain.residual.ready,
            drain.strip_ready,
            drain.channels_loaded,
        ):
            ctx.set(port, 1)
        ctx.set(drain.strip_length, 1)
        await ctx.tick()
        for port in (drain.strip_ready, drain.channels_loaded):
            ctx.set(port, 0)
        ctx.set(drain.jobs.payload, _drain_job(rng))
        ctx.set(drain.jobs.valid, 1)
        for _ in range(Drain.LATENCY):
            assert not ctx.get(drain.item)
            taken = ctx.get(drain.jobs.ready)
            await ctx.tick()
            if taken:
                ctx.set(drain.jobs.valid, 0)
        assert ctx.get(drain.item)

    run(drain, bench)


@pytest.mark.parametrize("name", OUTPUT_SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_every_sum_is_drained_with_its_residual(name: str, rate: float, rng: random.Random) -> None:
    params = OUTPUT_SHAPES[name]
    jobs = [_drain_job(rng) for _ in range(8)]
    strips = [length for job in jobs for length in _strips(job, params, rng)]
    world = Surroundings(params, jobs, strips, rng, rate)
    expected = list(Drain.model(jobs, strips, params))

    async def follow(ctx: Any) -> None:
        await world.follow(ctx, len(expected))

    run(world.drain, source(world.drain.jobs, jobs, rng, rate), follow)
    assert world.switches == sum(job["table"] == TableUse.LOAD for job in jobs)
    for found, wanted in zip(world.seen, expected, strict=True):
        if wanted["residual"]:
            wanted["operand"] = world.operand(wanted)
        names = wanted.keys() - {"byte"} - (set() if wanted["residual"] else {"word"})
        assert found == {name: wanted[name] for name in names}
