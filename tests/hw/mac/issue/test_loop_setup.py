"""Loop setup against plain division and modulo."""

import random
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Shape

from intloom.hw.mac.issue.descriptors import LOW_PIXELS_BITS, PIXEL_DESCRIPTOR, PIXELS_BITS, STRIPS_BITS
from intloom.hw.mac.issue.loop_setup import LoopSetup, strips
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import POWERS, HardwareParams, preset
from tests.hw.streams import made, run

_NANO = preset("nano")
_SHAPES = {
    "nano": _NANO,
    "tall": _NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16),
    "base": preset("base"),
}
_BLOCKS = {name: (1 << Shape.cast(PIXEL_DESCRIPTOR.members[name]).width) - 1 for name in ("in_blocks", "out_blocks")}
_ROWS = ("in_row_off", "in_row")
_EXTREMES = {
    "in_ring": 5,
    "in_row_off": (1 << SCRATCH_BITS) - 1,
    "in_row": 0xFFFF,
    "stride_h": 4,
    "dilation_h": 15,
}


def _descriptor(rng: random.Random, params: HardwareParams) -> dict[str, int]:
    """A descriptor whose rows may lie outside their ring; members that are only copied are arbitrary."""
    descriptor = {name: _anything(rng, Shape.cast(shape)) for name, shape in PIXEL_DESCRIPTOR.members.items()}
    pixels = rng.choice(
        (1, params.strip, params.strip + 1, rng.randrange(1, 1 << 20), (1 << PIXELS_BITS) - params.strip)
    )
    ring = rng.choice((0, rng.randrange(1, 1 << SCRATCH_BITS), 5))
    # Just inside the ring or just outside, so that every bit of the comparison counts.
    near = {name: (ring - rng.randrange(2)) % (1 << Shape.cast(PIXEL_DESCRIPTOR.members[name]).width) for name in _ROWS}
    return descriptor | {
        **{name: value for name, value in near.items() if rng.getrandbits(1)},
        **{name: rng.randint(1, 15) for name in ("kernel_h", "kernel_w")},
        **{name: rng.choice((1, 2, rng.randint(1, 15), rng.randint(1, most))) for name, most in _BLOCKS.items()},
        "low_pixels": pixels % (1 << LOW_PIXELS_BITS),
        "strips": -(-pixels // params.strip),
        "in_ring": ring,
        "stride_h": rng.randint(1, 4),
        "dilation_h": rng.randint(1, 15),
        "dilation_w": rng.randint(1, 15),
    }


def _anything(rng: random.Random, shape: Shape) -> int:
    return rng.getrandbits(shape.width) - ((1 << shape.width - 1) if shape.signed else 0)


def _cycles(descriptor: dict[str, int], params: HardwareParams) -> int:
    """From a descriptor offered to its plan: the division, or the ring arithmetic in parallel with it."""
    outside = 0 < descriptor["in_ring"] <= max(descriptor["in_row_off"], descriptor["in_row"])
    ring = 4 + outside * (SCRATCH_BITS + 1) + max(descriptor["stride_h"], descriptor["dilation_h"])
    return max(2 + params.strip.bit_length(), ring)


@pytest.mark.parametrize("name", _SHAPES)
def test_plans_match_the_model_within_the_cycle_limit(name: str, rng: random.Random) -> None:
    params = _SHAPES[name]
    setup = made(LoopSetup, params)
    descriptors = [_descriptor(rng, params) for _ in range(20)]
    # Rings, blocks and strips with one bit more; the rows wrap in each ring.
    for bit in range(STRIPS_BITS):
        size = 1 << bit % SCRATCH_BITS
        ring = {"in_ring": size, "in_row": min(size - 1, _EXTREMES["in_row"]), "dilation_h": 15}
        more = {"out_blocks": 1 | 1 << bit & _BLOCKS["out_blocks"], "strips": 1 | 1 << bit}
        descriptors.append(_descriptor(rng, params) | ring | more)
    descriptors.append(descriptors[-1] | _EXTREMES)
    cycles = []

    async def bench(ctx: Any) -> None:
        for descriptor in descriptors:
            while rng.random() < 0.5:
                await ctx.tick()
            ctx.set(setup.descriptors.payload, descriptor)
            ctx.set(setup.descriptors.valid, 1)
            await ctx.tick()
            cycles.append(1)
            while not ctx.get(setup.plans.valid):
                await ctx.tick()
                cycles[-1] += 1
            assert cycles[-1] == _cycles(descriptor, params)
            # A plan that waits stays as it is.
            for _ in range(rng.choice((0, 0, 1, 2, LoopSetup.MAX_CYCLES))):
                await ctx.tick()
            expected = LoopSetup.model(descriptor, params)
            plan = ctx.get(setup.plans.payload)
            assert {name: plan[name] for name in expected} == expected
            assert not ctx.get(setup.descriptors.ready), "the plan has fields of its descriptor"
            ctx.set(setup.plans.ready, 1)
            assert ctx.get(setup.descriptors.ready)
            await ctx.tick()
            ctx.set(setup.plans.ready, 0)
            ctx.set(setup.descriptors.valid, 0)

    run(setup, bench)
    assert max(cycles) == cycles[-1] == LoopSetup.MAX_CYCLES


def _divisions(size: int, rng: random.Random) -> list[tuple[int, int]]:
    """Strips, and pixels that they lack."""
    every = list(product((*range(1, size + 2), 1 << STRIPS_BITS - 1), range(size)))
    single = [(1, 1 << bit) for bit in range(size.bit_length() - 1)]
    return rng.sample(every, min(len(every), 300)) + single


@pytest.mark.parametrize("size", POWERS["strip"])
def test_all_divisions_of_pixels_into_strips(size: int, rng: random.Random) -> None:
    """Strips differ by at most a pixel, the longer ones come first, and no pixel is left; of long strips a sample."""
    params = _NANO.replace(strip=size)
    setup = made(LoopSetup, params)
    fixed = _descriptor(rng, params) | {"in_ring": 0, "stride_h": 1, "dilation_h": 1}

    async def bench(ctx: Any) -> None:
        ctx.set(setup.descriptors.valid, 1)
        ctx.set(setup.plans.ready, 1)
        for number, lacking in _divisions(size, rng):
            pixels = number * size - lacking
            ctx.set(setup.descriptors.payload, fixed | {"low_pixels": pixels % 256, "strips": number})
            await ctx.tick().until(setup.plans.valid)
            plan = ctx.get(setup.plans.payload)
            length, longer = divmod(pixels, number)
            assert (plan.length, plan.shorter) == (length + (longer > 0), (number - longer) % number)
            if number <= size + 1:
                found = [len(strip) for strip in strips({name: plan[name] for name in ("strips", "length", "shorter")})]
                assert found == [length + 1] * longer + [length] * (number - longer)
            assert plan.one_longer == (number - plan.shorter == 1)

    run(setup, bench)
