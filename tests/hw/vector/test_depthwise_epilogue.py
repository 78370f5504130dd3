"""Depthwise epilogue: the slices of requantized sums."""

import random
import struct
from typing import Any

import pytest

from intloom.hw.spec.arith import Scale
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import GROUPS, constant_words, unpack_depthwise_scale
from intloom.hw.vector.depthwise_columns import SUM_BITS
from intloom.hw.vector.depthwise_epilogue import DepthwiseEpilogue
from tests.hw.idle import check_idle
from tests.hw.streams import made, run
from tests.hw.vector.depthwise import SHAPES, store
from tests.hw.vector.slices import as_int8

_LOW, _HIGH = -(1 << SUM_BITS - 1), (1 << SUM_BITS - 1) - 1


def _scale(rng: random.Random, bits: int) -> int:
    """Scale words with any bits: most turn sums into bytes, some have a top bit that is clear, or a wide shift."""
    mantissa = rng.choice(
        (1 << bits - 1, (1 << bits) - 1, rng.getrandbits(bits) | 1 << bits - 1, rng.getrandbits(bits))
    )
    shift = rng.choice((rng.randint(bits, bits + 24), rng.randint(bits + 8, bits + 16), rng.randrange(128)))
    return rng.getrandbits(32) >> bits << bits & 0xFFFFFF | mantissa | shift << 24 | rng.getrandbits(1) << 31


def _sum(rng: random.Random, bias: int, scale: Scale) -> int:
    """The ends, and sums whose results are next to a tie."""
    target = (rng.randrange(-140, 140) + 0.5) * 2.0**scale.shift / max(1, scale.mantissa)
    near = round(min(max(target, -(2.0**40)), 2.0**40)) - bias + rng.randint(-1, 1)
    return rng.choice((_LOW, _HIGH, rng.randint(_LOW, _HIGH), max(_LOW, min(_HIGH, near))))


def _check(params: HardwareParams, rng: random.Random, pause: float) -> None:
    epilogue, channels = made(DepthwiseEpilogue, params), params.word_bytes
    found: list[list[int]] = []
    expected: list[list[int]] = []
    due: list[int] = []
    came: list[int] = []
    cycle = 0

    async def tick(ctx: Any) -> None:
        nonlocal cycle
        await ctx.tick()
        cycle += 1
        if ctx.get(epilogue.result_valid):
            found.append([as_int8(b) for b in ctx.get(epilogue.result).to_bytes(params.vector_lanes, "little")])
            came.append(cycle)

    async def window(ctx: Any, sums: list[int]) -> None:
        ctx.set(epilogue.valid, 1)
        ctx.set(epilogue.sums, sums)
        due.append(cycle + DepthwiseEpilogue.LATENCY)
        await tick(ctx)
        ctx.set(epilogue.valid, 0)
        pauses = 0
        while pauses < GROUPS - 1 or rng.random() < pause:
            # The next windows' sums are in work meanwhile.
            ctx.set(epilogue.sums, [rng.randint(_LOW, _HIGH) for _ in range(channels)])
            await tick(ctx)
            pauses += 1

    async def bench(ctx: Any) -> None:
        for _ in range(max(3, 96 // channels)):
            zero = rng.choice((-128, 127, rng.randint(-128, 127)))
            ctx.set(epilogue.zp_out, zero)
            wide = (rng.randint(-(1 << 31), (1 << 31) - 1), (1 << 31) - 1, -(1 << 31))
            biases = [rng.choice((*wide, *[rng.randint(-9999, 9999)] * 6)) for _ in range(channels)]
            scales = [_scale(rng, params.mantissa_bits) for _ in range(channels)]
            data = struct.pack(f"<{channels}i{channels}I", *biases, *scales)
            words = [rng.randbytes(channels) for _ in range(constant_words(3, 2) - 8)]
            words += [data[at : at + channels] for at in range(0, len(data), channels)]
            await store(ctx, epilogue.write, (3, 2), words, rng)
            unpacked = [unpack_depthwise_scale(scale, params.mantissa_bits) for scale in scales]
            for _ in range(25):
                sums = [_sum(rng, bias, scale) for bias, scale in zip(biases, unpacked, strict=True)]
                await window(ctx, sums)
                given = zip(sums, biases, unpacked, strict=True)
                results = [DepthwiseEpilogue.model(*values, zero, params.match) for values in given]
                lanes = params.vector_lanes
                expected.extend(results[at : at + lanes] for at in range(0, channels, lanes))
            for _ in range(DepthwiseEpilogue.LATENCY):
                await tick(ctx)

    run(epilogue, bench)
    assert found == expected
    assert came[params.vector_slices - 1 :: params.vector_slices] == due
    assert len({value for part in expected for value in part}) > 60


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_results_of_windows(shape: str, pause: float, rng: random.Random) -> None:
    _check(SHAPES[shape], rng, pause)


@pytest.mark.parametrize("bits", [8, 11, 17, 24])
def test_scales_of_every_width(bits: int, rng: random.Random) -> None:
    _check(SHAPES["nano"].replace(match="exact", mantissa_bits=bits), rng, 0.0)


def test_registers_keep_their_values_without_work(rng: random.Random) -> None:
    check_idle(DepthwiseEpilogue(SHAPES["nano"]), rng, "valid", "write")
