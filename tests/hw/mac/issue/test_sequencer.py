"""Sequencer: pixels of every tile issue in order, with weights and a bank, and without gaps."""

import random
from typing import Any

import pytest

from intloom.hw.mac.array.pixel_fetcher import PIXEL_INSTRUCTION, PIXEL_REQUEST
from intloom.hw.mac.issue.loop_setup import plan_layout
from intloom.hw.mac.issue.sequencer import Sequencer
from intloom.hw.mac.issue.tile_planner import TilePlanner
from intloom.hw.spec.isa import COORDINATE_BITS
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.mac.plans import random_plan
from tests.hw.streams import made, run, source

NANO = preset("nano")
SINGLE_PORTED = NANO.replace(cols=8, strip=32)
"""Readout so slow that it starts after a strip's last pixel."""
BANKS = 2
Pixel = tuple[dict[str, int], dict[str, int]]


class Consumer:
    """Neighbors of the sequencer: weights at random times, and readout that releases banks."""

    def __init__(self, sequencer: Sequencer, params: HardwareParams, rng: random.Random, rate: float) -> None:
        self.sequencer, self.params, self.rng, self.rate = sequencer, params, rng, rate
        self.seen: list[Pixel] = []
        self.started = self.met = 0
        self.waits = {"weights": 0, "planner": 0, "bank": 0}
        self._weights = False
        self._finished_strips = self._used = 0

    async def follow(self, ctx: Any, expected: list[Pixel]) -> None:
        """Run until all pixels have issued."""
        sequencer, within, run = self.sequencer, False, False
        while len(self.seen) < len(expected):
            self._weights = self._weights or self.rng.random() < self.rate**3
            # None before the sequencer has had to wait for one: strips are more than banks.
            releases = self._finished_strips > 0 < self.waits["bank"] and self.rng.random() < self.rate / 20
            ctx.set(sequencer.weights_ready, self._weights)
            ran, run = run, self.rng.random() < (1 + self.rate) / 2
            ctx.set(sequencer.run, run)
            # Half of the others in the very cycle in which a tile takes its weights, and with them a bank.
            meets = self._finished_strips > 0 and ctx.get(sequencer.weights_taken) and self.rng.random() < 0.5
            self.met += bool(meets)
            releases = releases or bool(meets)
            ctx.set(sequencer.bank_released, releases)
            self.started += ctx.get(sequencer.started)
            waits, waits_bank = ctx.get(sequencer.waits_weights), ctx.get(sequencer.waits_bank)
            self.waits["planner" if self._weights else "weights"] += waits
            self.waits["bank"] += waits_bank
            assert not waits_bank or (self._weights and self._used > 0), "no bank is in use, or the weights are missing"
            valid = bool(ctx.get(sequencer.pixel_valid))
            if waits and self._weights:
                shown = expected[len(self.seen)][1]["strip_length"]
                assert shown < TilePlanner.LATENCY, "a tile that hides the planner does not wait for it"
            if ran or valid:
                assert valid + waits + waits_bank == ctx.get(sequencer.active), "a cycle is counted once"
            assert valid or not within, "a tile once begun never stops"
            assert ran or within or not valid, "no tile begins without `run`"
            assert ctx.get(sequencer.weights_taken) == (valid and not within)
            if valid:
                pixel = self._look(ctx)
                within = len(self.seen) < len(expected) and not expected[len(self.seen)][1]["weights_taken"]
                self._use(pixel)
            self._used -= releases
            self._finished_strips -= releases
            await ctx.tick()
            if valid:
                held = ctx.get(sequencer.instruction)
                assert all(held[name] == self.seen[-1][0][name] for name in PIXEL_INSTRUCTION.members)

    def _use(self, pixel: Pixel) -> None:
        fed, beside = pixel
        if fed["swap"]:
            assert self._weights, "a tile tile_start without its weights"
            self._weights = False
            self._used += beside["first_tile"] | beside["continued"]
            # Sums that are continued are read from the bank that the readout has left.
            assert self._used <= (1 if beside["continued"] else BANKS), "a strip in a bank that the readout still reads"
        self._finished_strips += beside["strip_ready"]

    def _look(self, ctx: Any) -> Pixel:
        sequencer = self.sequencer
        pixel, instruction = ctx.get(sequencer.pixel), ctx.get(sequencer.instruction)
        fed = {name: pixel[name] for name in PIXEL_REQUEST.members}
        fed |= {name: instruction[name] for name in PIXEL_INSTRUCTION.members}
        names = "weights_taken", "first_tile", "continued", "address", "strip_ready", "strip_length"
        beside = {name: ctx.get(getattr(sequencer, name)) for name in names}
        self.seen.append((fed, beside))
        return self.seen[-1]


@pytest.mark.parametrize("params", [NANO, SINGLE_PORTED], ids=["nano", "turns"])
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_every_pixel_of_every_tile_issues_in_order(params: HardwareParams, rate: float, rng: random.Random) -> None:
    sequencer = made(Sequencer, params)
    # Strips of one tile each come faster than the readout releases their banks.
    fast = {"kernel_h": 1, "kernel_w": 1, "in_blocks": 1, "out_blocks": 3, "strips": 4}
    plans = [random_plan(rng, params, **fast, length=params.strip, shorter=0)]
    # Instructions of one tile end while no bank is free.
    short = fast | {"out_blocks": 1, "strips": 1}
    plans += [random_plan(rng, params, **short, length=params.strip, shorter=0) for _ in range(6)]
    plans += [random_plan(rng, params) for _ in range(5)]
    one = {"out_w": params.strip, "out_blocks": 1, "strips": 1, "length": params.strip, "shorter": 0}
    plans += [random_plan(rng, params, **one, continue_sums=1) for _ in range(2)]
    # About the planner's latency, and one more than each power of two.
    lengths = {*range(TilePlanner.LATENCY - 1, TilePlanner.LATENCY + 2), 1}
    lengths |= {(1 << bit) + 1 for bit in range((params.strip - 1).bit_length())}
    plans += [random_plan(rng, params, kernel_h=2, strips=1, length=length, shorter=0) for length in sorted(lengths)]
    # The pixels of a row that remain are counted in as many bits as a coordinate has. From a few pixels after a power
    # of two on, the row would end if the count lacked that bit.
    row = {"kernel_h": 1, "kernel_w": 1, "in_blocks": 1, "out_blocks": 1, "shorter": 0}
    plans += [
        random_plan(rng, params, **row, out_w=1 << bit | 4, strips=1, length=6) for bit in range(3, COORDINATE_BITS - 1)
    ]
    plans.append(random_plan(rng, params, **row, out_w=1 << COORDINATE_BITS - 1 | 2, strips=2, length=params.strip))
    consumer = Consumer(sequencer, params, rng, rate)
    expected = list(Sequencer.model(plans, params))

    async def follow(ctx: Any) -> None:
        await consumer.follow(ctx, expected)

    assert set(plans[0]) == set(plan_layout(params).members)
    run(sequencer, source(sequencer.plans, plans, rng, rate), follow)
    assert consumer.seen == expected
    assert consumer.started == len(plans)
    assert consumer.waits["bank"] > 0
    assert consumer.met > BANKS, "a release that is lost because a bank is taken must show"
    assert (consumer.waits["weights"] > 0) == (rate < 1)
    # At the lower rate the weights are the last to come.
    assert rate < 1 or consumer.waits["planner"] > 0


@pytest.mark.parametrize("shorter", [False, True])
def test_the_first_pixel_has_the_stated_latency(shorter: bool, rng: random.Random) -> None:
    sequencer = made(Sequencer, NANO)
    length = TilePlanner.LATENCY - shorter
    plan = random_plan(rng, NANO, strips=1, length=length, shorter=0)

    async def bench(ctx: Any) -> None:
        ctx.set(sequencer.run, 1)
        ctx.set(sequencer.weights_ready, 1)
        ctx.set(sequencer.plans.payload, plan)
        ctx.set(sequencer.plans.valid, 1)
        assert ctx.get(sequencer.plans.ready)
        for _ in range(TilePlanner.LATENCY if shorter else Sequencer.LATENCY):
            assert not ctx.get(sequencer.pixel_valid)
            assert ctx.get(sequencer.waits_weights) == ctx.get(sequencer.active)
            await ctx.tick()
        assert ctx.get(sequencer.pixel_valid)

    run(sequencer, bench)
