"""Requantizer lane against the requantization rule of the specification."""

import random
import struct
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.scale_normalizer import ScaleNormalizer
from intloom.hw.spec.arith import RoundingMode, Scale
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.idle import check_idle
from tests.hw.mac.bench import build_bench
from tests.hw.streams import made, run

Vector = tuple[int, int, Scale, int]
_FORMS = {
    "ort": preset("nano"),
    "ort, wide multipliers": preset("nano").replace(multiplier_bits=25),
    "exact": preset("nano").replace(match="exact"),
}


def _run(params: HardwareParams, vectors: list[Vector | None]) -> list[int]:
    """Results of a lane with at most one vector a cycle."""
    lane = made(RequantizerLane, params)
    results: list[int] = []

    async def bench(ctx: Any) -> None:
        def earlier(cycle: int, stage: int) -> Vector | None:
            return vectors[cycle - stage] if 0 <= cycle - stage < len(vectors) else None

        for cycle in range(len(vectors) + lane.LATENCY):
            if earlier(cycle, lane.LATENCY):
                results.append(ctx.get(lane.result))
            ctx.set(lane.enable, sum((earlier(cycle, i) is not None) << i for i in range(lane.LATENCY)))
            if now := earlier(cycle, 0):
                ctx.set(lane.acc, now[0])
                ctx.set(lane.bias, now[1])
            if scaled := earlier(cycle, lane.SCALE_STAGE):
                scale = scaled[2]
                mantissa, exponent = ScaleNormalizer.model(scale.mantissa, scale.shift, params.mantissa_bits)
                ctx.set(lane.mantissa, mantissa)
                ctx.set(lane.exponent, exponent)
            if last := earlier(cycle, lane.ZERO_POINT_STAGE):
                ctx.set(lane.zero_point, last[3])
            await ctx.tick()

    run(lane, bench)
    return results


def _scale(rng: random.Random, bits: int) -> Scale:
    mantissa = rng.choice(
        (0, 1, 1 << (bits - 1), (1 << bits) - 1, rng.getrandbits(bits), rng.getrandbits(bits) | 1 << (bits - 1))
    )
    return Scale(mantissa, rng.choice((0, 1, 63, rng.randrange(64), bits + 6, bits + 8)))


def _near_tie(rng: random.Random, scale: Scale) -> int:
    """A sum whose scaled value is next to a half, or at a distance of a power of two from it, if the scale has one.

    A tie is told from its neighbors by runs of equal bits: at such a distance one bit of a run differs.
    """
    distance = rng.choice((0, 1, -1)) * 2.0 ** -rng.randint(2, 30)
    target = (rng.randrange(-300, 300) + 0.5 + distance) * 2.0**scale.shift
    return max(-(1 << 31), min((1 << 31) - 1, round(target / max(1, scale.mantissa)) + rng.randint(-1, 1)))


def _vector(rng: random.Random, params: HardwareParams) -> Vector:
    scale = _scale(rng, params.mantissa_bits)
    acc_low, acc_high = -(1 << (params.acc_bits - 1)), (1 << (params.acc_bits - 1)) - 1
    total = rng.choice(
        (_near_tie(rng, scale), rng.randrange(-(1 << 31), 1 << 31), rng.randint(-300, 300), -(1 << 31), (1 << 31) - 1)
    )
    acc = rng.choice((max(acc_low, min(acc_high, total)), rng.randint(acc_low, acc_high)))
    bias = max(-(1 << 31), min((1 << 31) - 1, total - acc))
    return acc, bias, scale, rng.randint(-128, 127)


@pytest.mark.parametrize("match", list(RoundingMode))
@pytest.mark.parametrize("seed", range(4))
def test_random_vectors_match_the_specification(match: RoundingMode, seed: int) -> None:
    rng = random.Random(seed)
    exact = match is RoundingMode.EXACT
    params = preset("nano").replace(
        match=str(match),
        mantissa_bits=(24, 8, 17, 24)[seed] if exact else 24,
        acc_bits=(32, 20, 24, 32)[seed],
        multiplier_bits=(18, 25)[seed % 2],
    )
    vectors = [None if rng.random() < 0.15 else _vector(rng, params) for _ in range(700)]
    present = [v for v in vectors if v]
    expected = [RequantizerLane.model(*v, match) for v in present]
    results = _run(params, vectors)
    wrong = [(v, e, r) for v, e, r in zip(present, expected, results, strict=True) if e != r]
    assert not wrong, wrong[:3]
    assert len({e for e in expected if -128 < e < 127}) > 50


def _near_a_tie(rng: random.Random) -> Vector:
    """A product that differs from a tie by one bit, or by two neighbors, at any position of its lower half."""
    while True:
        odd = rng.randrange(3, 100, 2)
        zeros = 24 - odd.bit_length()
        lowest = rng.randrange(zeros, 31)
        half = rng.randrange(lowest + 2, 47)
        product = (2 * rng.randrange(128) + 1 << half) + (rng.choice((-3, -1, 1, 3)) << lowest)
        total, rest = divmod(product, odd << zeros)
        if not rest and total < 1 << 31:
            return total, 0, Scale(odd << zeros, half + 1), 0


def _full_width_near_ties(rng: random.Random) -> Iterator[Vector]:
    """Products that differ from a tie by two bits: the first of those beyond 24, and any below; factors have all bits.

    The sum is the quotient of the product's lower bits, modulo their power of two, and the scale: few sums are small.
    """
    scales = np.array([rng.getrandbits(24) | 1 << 23 | 1 for _ in range(1 << 16)], np.uint64)
    inverse = scales
    for _ in range(5):
        inverse = inverse * (2 - scales * inverse)
    for half in range(18, 46):
        for lowest in range(half - 17):
            distance = rng.choice((1, -1)) * ((1 << half - 17) + rng.choice((1, -1)) * (1 << lowest))
            sums = np.uint64((1 << half) + distance) * inverse & np.uint64((2 << half) - 1)
            for at in np.flatnonzero(sums < np.uint64(1 << half + 8) // scales):
                yield rng.choice((1, -1)) * int(sums[at]), 0, Scale(int(scales[at]), half + 1), 0


def _between_significands(rng: random.Random) -> Vector:
    """A sum in the middle of two numbers of 24 bits, with a tie between their products."""
    scale, whole, surplus = rng.getrandbits(24) | 1 << 23, rng.randrange(64, 128), rng.randint(1, 7)
    shift = next(s for s in (40, 41, 42) if (2 * whole + 1 << s) // scale >= 1 << 24)
    middle = 2 * ((2 * whole + 1 << shift - 1) // scale) + 1
    return rng.choice((1, -1)) * (middle << surplus - 1), 0, Scale(scale, shift + surplus), 0


def _long_runs(rng: random.Random) -> Iterator[Vector]:
    """Products whose first 24 bits are those of a tie but for one bit, at any distance from a whole number of any size.

    On one side of it the bits that follow are zeros, on the other ones.
    """
    for size in range(9):
        shift = 47 - size
        for distance, above, zeros in product(range(1, 24 - size), (False, True), (False, True)):
            whole = rng.getrandbits(size) | 1 << size >> 1
            bit = 1 << shift - 1 - distance
            target = (2 * whole + 1 << shift - 1) + (bit if above else -bit)
            rest = scale = 1 << 24
            while rest >= 1 << 22:
                scale = rng.getrandbits(24) | 1 << 23
                rest = -target % scale if zeros else target % scale
            total = (target + rest if zeros else target - rest) // scale
            surplus = rng.randint(0, 6)
            yield rng.choice((1, -1)) * total << surplus, 0, Scale(scale, shift + surplus), 0


def _carries() -> Iterator[Vector]:
    """Sums whose first 24 bits are ones and the others a tie, or one that differs from it in a bit: a tie rounds up."""
    for bits in range(25, 32):
        tie = 1 << bits - 25
        for distance in (0, *(sign << bit for bit in range(bits - 25) for sign in (1, -1))):
            for sign in (1, -1):
                yield sign * ((1 << bits) - tie + distance), 0, Scale(1 << 23, bits + 17), 0


@pytest.mark.parametrize("form", _FORMS)
def test_a_tie_is_told_from_products_near_it(form: str, rng: random.Random) -> None:
    vectors = [make(rng) for make in (_near_a_tie, _between_significands) for _ in range(1000)]
    vectors += _full_width_near_ties(rng)
    vectors += [vector for _ in range(3) for vector in _long_runs(rng)]
    vectors += _carries()
    expected = [RequantizerLane.model(*v, _FORMS[form].match) for v in vectors]
    results = _run(_FORMS[form], list(vectors))
    assert not [(v, e, r) for v, e, r in zip(vectors, expected, results, strict=True) if e != r]


_ITEM = struct.Struct("<iiIBb2x")


def _full_width(rng: random.Random, count: int) -> list[Vector]:
    """Sums, biases and scales of every size up to the widest, some next to ties, some at the ends."""
    vectors: list[Vector] = []
    bits = rng.getrandbits
    while len(vectors) < count:
        scale = Scale(bits(24) | 1 << 23, bits(6))
        if len(vectors) % 8 == 0:
            scale = _scale(rng, 24)
        # Most products have up to seven bits sign_stages the point.
        size = max(0, min(31, scale.shift - 24 + bits(3))) if bits(2) else 31
        total = bits(size) * (1 if bits(1) else -1)
        if len(vectors) % 4 == 1:
            total = _near_tie(rng, scale)
        bias = bits(size) - bits(size)
        vectors.append((max(-(1 << 31), min((1 << 31) - 1, total - bias)), bias, scale, bits(8) - 128))
    return vectors


def _in_verilator(params: HardwareParams, vectors: list[Vector], seed: int, folder: Path) -> list[int]:
    sizes = {
        "LATENCY": RequantizerLane.LATENCY,
        "SCALE_STAGE": RequantizerLane.SCALE_STAGE,
        "ZERO_POINT_STAGE": RequantizerLane.ZERO_POINT_STAGE,
        "ACC_BITS": params.acc_bits,
    }
    source = Path(__file__).with_name("requantizer.cpp")
    bench = build_bench(RequantizerLane(params), source, **sizes)
    items, results = folder / "items", folder / "results"
    normal = (ScaleNormalizer.model(scale.mantissa, scale.shift) for _, _, scale, _ in vectors)
    items.write_bytes(
        b"".join(_ITEM.pack(acc, bias, *n, zero) for (acc, bias, _, zero), n in zip(vectors, normal, strict=True))
    )
    subprocess.run([bench, items, results, str(seed)], check=True, timeout=300)
    return np.frombuffer(results.read_bytes(), np.int8).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("count", [100_000, pytest.param(500_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("form", _FORMS)
def test_many_full_width_vectors(form: str, count: int, seed: int, tmp_path: Path) -> None:
    """In Verilator."""
    vectors, params = _full_width(random.Random(seed), count), _FORMS[form]
    results = _in_verilator(params, vectors, seed, tmp_path)
    wrong = [(v, r) for v, r in zip(vectors, results, strict=True) if RequantizerLane.model(*v, params.match) != r]
    assert not wrong, (len(wrong), wrong[:3])
    inside = sum(-128 < r < 127 and r != v[3] for v, r in zip(vectors, results, strict=True))
    assert inside > len(vectors) // 4, "many results must be neither clamped nor zero"


@pytest.mark.parametrize("match", list(RoundingMode))
def test_every_small_sum_and_scale(match: RoundingMode) -> None:
    vectors: list[Vector | None] = [
        (acc, 0, Scale(mantissa, shift), 3) for mantissa in (1, 2, 3, 5) for shift in range(5) for acc in range(-40, 41)
    ]
    results = _run(preset("nano").replace(match=str(match)), vectors)
    assert results == [RequantizerLane.model(*v, match) for v in vectors if v]


@pytest.mark.parametrize("form", _FORMS)
def test_registers_keep_their_values_without_work(form: str, rng: random.Random) -> None:
    check_idle(RequantizerLane(_FORMS[form]), rng, "enable")
