"""Norm: the results of lines of pixels whose bytes pass twice."""

import random
from typing import Any

import pytest

from intloom.hw.spec.norm import EPSILON_BITS, LARGEST_COUNT, LARGEST_LINE, pack_constants
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.vector.norm import Norm
from tests.hw.streams import made, run
from tests.hw.vector.slices import as_int8, idle_cycles, record, to_bytes, to_int, with_lanes

SHAPES = {
    "pairs_in_four_slices": with_lanes(2),
    "groups_of_one": preset("nano").replace(vector_lanes=1),
    "pairs_in_one_slice": preset("nano").replace(vector_lanes=4),
    "base": preset("base"),
    "large": preset("large"),
}
"""Accelerators with groups of 1, 2, 8 and 16 bytes, whose constants are one or two words."""


async def _pass(ctx: Any, norm: Norm, values: bytes, rng: random.Random, second: bool) -> None:
    word, group = 1 << len(norm.position), len(norm.group) // 8
    ctx.set(norm.applies, second)
    for at in range(0, len(values), group):
        await idle_cycles(ctx, rng, norm.valid)
        ctx.set(norm.group, to_int(values[at : at + group]))
        ctx.set(norm.position, at % word)
        ctx.set(norm.tap.first, at < word)
        ctx.set(norm.tap.last, at >= len(values) - word)
        ctx.set(norm.taken, second and at == len(values) - group)
        await ctx.tick()
        ctx.set(norm.taken, 0)
        ctx.set(norm.valid, 0)


async def _begin(ctx: Any, norm: Norm, fields: dict[str, int]) -> None:
    """An instruction with these fields begins."""
    for name, value in {**fields, "start": 1}.items():
        ctx.set(getattr(norm, name), value)
    await ctx.tick()
    ctx.set(norm.start, 0)


async def _load(ctx: Any, norm: Norm, packed: bytes, rng: random.Random) -> None:
    word = 1 << len(norm.position)
    for at in range(0, len(packed), word):
        await idle_cycles(ctx, rng, norm.constants_valid)
        ctx.set(norm.constants, to_int(packed[at : at + word]))
        assert not ctx.get(norm.ready), "constants are missing"
        await ctx.tick()
        ctx.set(norm.constants_valid, 0)
    await ctx.tick()


async def _line(ctx: Any, norm: Norm, pixels: list[bytes], rng: random.Random, late: int, packed: bytes) -> None:
    """Both passes, and the constants if they come between them.

    The second pass is `late` cycles after the first, when the factors of all pixels wait.
    """
    for values in pixels:
        await _pass(ctx, norm, values, rng, False)
    if late:
        await ctx.tick().repeat(late)
    await _load(ctx, norm, packed, rng)
    for values in pixels:
        if late:
            assert ctx.get(norm.ready)
        while not ctx.get(norm.ready):
            await ctx.tick()
        await _pass(ctx, norm, values, rng, True)


@pytest.mark.parametrize("shape", SHAPES)
def test_results_of_lines(shape: str, rng: random.Random) -> None:
    params: HardwareParams = SHAPES[shape].replace(vector_norm=True)
    norm, word = made(Norm, params), params.word_bytes
    found: list[int] = []
    expected: list[int] = []
    most = min(LARGEST_COUNT // word, (1 << len(norm.blocks)) - 1)

    async def bench(ctx: Any) -> None:
        sizes = [
            (b, n, w, {"last_bytes": rng.randint(1, word)}) for b, n, w in ((1, 2, 3), (2, 1, LARGEST_LINE), (3, 2, 1))
        ]
        sizes.append((most, 1, 2, {"last_bytes": word, "center": 1, "zp_in": 127, "epsilon": 0}))
        # The last channel is in each lane of a group.
        sizes += [
            (1, 1, 1, {"last_bytes": rng.randrange(lane, word, params.softmax_lanes) + 1})
            for lane in range(params.softmax_lanes)
        ]
        # The variance of two channels that differ by 1 is the least one, in which each bit of epsilon counts.
        sizes += [(1, 1, 4, {"last_bytes": 2, "center": 1, "epsilon": 1 << bit}) for bit in range(EPSILON_BITS)]
        for blocks, lines, width, fixed in sizes:
            largest = blocks == most
            fields = {"blocks": blocks, "center": rng.randrange(2), "zp_in": rng.choice((0, rng.randint(-128, 127)))}
            fields |= {"epsilon": rng.getrandbits(rng.randint(1, EPSILON_BITS)), **fixed}
            constants = [(rng.randint(-32768, 32767), rng.randint(-3000, 3000)) for _ in range(word * blocks)]
            packed = pack_constants(constants, params.softmax_lanes)
            await _begin(ctx, norm, fields)
            if lines > 1:
                await _load(ctx, norm, packed, rng)
            for line in range(lines):
                first, spread = (128, 9) if largest else (0, 1 if "epsilon" in fixed else rng.choice((1, 3, 255)))
                pixels = [bytes(first + rng.randint(0, spread) for _ in range(word * blocks)) for _ in range(width)]
                if largest:
                    # One value differs from the zero point, by 1: no factor is larger.
                    pixels[-1] = bytes([126] + [127] * (word * blocks - 1))
                late = Norm.statistics(params) * (line == lines - 1)
                await _line(ctx, norm, pixels, rng, late, packed if lines == 1 else b"")
                counted = word * (blocks - 1) + fields["last_bytes"]
                for values in pixels:
                    signed = [as_int8(byte) for byte in values]
                    center, zero, epsilon = bool(fields["center"]), fields["zp_in"], fields["epsilon"]
                    expected.extend(Norm.model(signed, constants, center, zero, epsilon, counted))
            await ctx.tick().repeat(Norm.LATENCY + 1)

    run(norm, bench, background=[record(norm.result_valid, norm.result, found)])
    assert [as_int8(byte) for number in found for byte in to_bytes(number, params.vector_lanes)] == expected
