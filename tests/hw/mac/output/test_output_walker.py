"""Output walker, with back-pressure, against plain loops."""

import random
from itertools import islice
from typing import Any

import pytest
from amaranth.hdl import ResetInserter, Shape, Signal

from intloom.hw.mac.output.output_walker import WALK, OutputWalker
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import preset
from tests.hw.streams import made, run

_NANO = preset("nano")
_SHAPES = {
    "square": _NANO,
    "tall": _NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16),
    "wide": _NANO.replace(rows=4, cols=8, lanes=1, weight_kib=64),
}


async def _begin(ctx: Any, walker: OutputWalker, walk: dict[str, int]) -> None:
    """Start a walk that is valid in the cycle before and in that of the pulse, and in no other cycle."""
    ctx.set(walker.walk, walk)
    await ctx.tick()
    ctx.set(walker.start, 1)
    await ctx.tick()
    ctx.set(walker.start, 0)
    ctx.set(walker.walk, WALK.from_bits((1 << WALK.size) - 1))


@pytest.mark.parametrize("name", _SHAPES)
def test_walk_visits_every_group_in_order(name: str, rng: random.Random) -> None:
    p = _SHAPES[name]
    walker = made(OutputWalker, p)
    walks = [
        {
            "out_h": rng.randint(1, 3), "out_w": rng.randint(1, 3), "blocks": rng.randint(1, 3),
            "base": rng.getrandbits(SCRATCH_BITS), "plane": rng.getrandbits(SCRATCH_BITS),
            "row": rng.getrandbits(16), "x": rng.randint(1, 15),
            "byte": rng.randrange(0, p.rows, p.lanes),
        }
        for _ in range(6)
    ]  # fmt: skip
    ends = 0

    async def bench(ctx: Any) -> None:
        nonlocal ends
        for walk in walks:
            await _begin(ctx, walker, walk)
            for _ in range(1, OutputWalker.LATENCY):
                assert not ctx.get(walker.o.valid)
                await ctx.tick()
            for position in OutputWalker.model(walk, p):
                ctx.set(walker.o.ready, 0)
                while rng.random() < 0.3:
                    await ctx.tick()
                assert ctx.get(walker.o.valid)
                assert ctx.get(walker.active)
                payload = ctx.get(walker.o.payload)
                assert {name: payload[name] for name in position} == position
                ends += position["last"]
                ctx.set(walker.o.ready, 1)
                await ctx.tick()
            ctx.set(walker.o.ready, 0)
            assert not ctx.get(walker.active)

    run(walker, bench)
    assert ends == len(walks)


SMALL = {"out_h": 2, "out_w": 2, "blocks": 2, "base": 3, "plane": 100, "row": 10, "x": 1, "byte": 0}


COUNTS = ("out_h", "out_w", "blocks")
PREFIX = 100


def _large(name: str) -> list[dict[str, int]]:
    """Walks in which only this member is large: with its top bit; a count also with every bit, other counts being 1.

    A count of 2^n + 1 or 2^n + 2 that lost bit n ends after one step or two: where it is loaded, or where it steps.
    """
    width = Shape.cast(WALK.members[name]).width
    found = [SMALL | {name: SMALL[name] | 1 << width - 1}]
    if name == "row":
        # The last rows are so far from the first one that the offset needs all of its bits.
        found.append(SMALL | dict.fromkeys(COUNTS, 1) | {"out_h": 12, "row": (1 << width) - 1})
    if name in COUNTS:
        found += [SMALL | dict.fromkeys(COUNTS, 1) | {name: 1 << bit | n} for bit in range(2, width) for n in (1, 2)]
    return found


LARGE = [pytest.param(w, id=f"{name}-{n}") for name in SMALL if name != "byte" for n, w in enumerate(_large(name))]


@pytest.mark.parametrize("walk", LARGE)
def test_every_member_of_a_walk_has_its_whole_width(walk: dict[str, int]) -> None:
    """The first positions of a walk with one large member."""
    assert set(SMALL) == set(WALK.members)
    walker = made(OutputWalker, _SHAPES["wide"])

    async def bench(ctx: Any) -> None:
        ctx.set(walker.o.ready, 1)
        await _begin(ctx, walker, walk)
        await ctx.tick().repeat(OutputWalker.LATENCY - 1)
        for position in islice(OutputWalker.model(walk, _SHAPES["wide"]), PREFIX):
            assert ctx.get(walker.o.valid)
            payload = ctx.get(walker.o.payload)
            assert {member: payload[member] for member in position} == position
            await ctx.tick()

    run(walker, bench)


@pytest.mark.parametrize("size", [0x1555, 0xAAA])
@pytest.mark.parametrize("name", ["out_h", "out_w"])
def test_the_second_round_of_a_long_loop_has_as_many_steps(name: str, size: int) -> None:
    """A count is loaded again for each round."""
    walker = made(OutputWalker, _NANO.replace(lanes=_NANO.cols))
    walk = SMALL | {"out_h": 1, "out_w": 1, "blocks": 1} | {name: size, {"out_h": "blocks", "out_w": "out_h"}[name]: 2}
    addresses: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(walker.o.ready, 1)
        await _begin(ctx, walker, walk)
        payload, last = walker.o.payload, 0
        while not last:
            *_, valid, address, last = await ctx.tick().sample(
                walker.o.valid, payload.address, walker.o.valid & payload.last
            )
            addresses.extend([address] * valid)
            assert len(addresses) <= 2 * size

    run(walker, bench)
    assert addresses == [item["address"] for item in OutputWalker.model(walk, _NANO.replace(lanes=_NANO.cols))]


def test_a_walk_begins_at_its_base_after_a_reset_within_another_one() -> None:
    walker, reset = made(OutputWalker, _NANO), Signal()

    async def bench(ctx: Any) -> None:
        ctx.set(walker.o.ready, 1)
        for steps in (7, 13, 1):
            await _begin(ctx, walker, SMALL | {"out_h": 5, "out_w": 5})
            await ctx.tick().repeat(OutputWalker.LATENCY - 1)
            assert ctx.get(walker.o.valid)
            assert ctx.get(walker.o.payload.address) == SMALL["base"]
            await ctx.tick().repeat(steps * (_NANO.cols // _NANO.lanes))
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            assert not ctx.get(walker.active)

    run(ResetInserter(reset)(walker), bench)
