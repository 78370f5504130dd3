"""Depthwise walker against its model."""

import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from intloom.hw.spec.isa import BY_KIND, SCRATCH_BITS, Kind
from intloom.hw.spec.vector_depthwise import GROUPS, walk_words
from intloom.hw.vector.depthwise_walker import DEPTHWISE_LAYOUT, DepthwiseWalker
from intloom.hw.vector.window_walker import FETCH_LAYOUT
from tests.hw.streams import made, run, sink

Config = dict[str, int]
_SPACE = 1 << SCRATCH_BITS
_SMALL: Config = {
    "a_base": 5, "a_row_off": 0, "a_ring": 0, "a_row": 20, "in_h": 8, "in_w": 8, "iy0": 0, "ix0": 0, "kernel_h": 2,
    "kernel_w": 3, "stride_h": 1, "stride_w": 1, "out_h": 2, "out_w": 2,
}  # fmt: skip
PREFIX = 60
"""Words to compare: more than there are if a long count has lost its top bit."""


def _width(name: str) -> int:
    return BY_KIND[Kind.VDEPTHWISE].field(name).width


def _random(rng: random.Random) -> Config:
    """Rings of few rows, which wrap at any of them; inputs that begin or end anywhere under the windows."""
    row = rng.choice((0, 1, rng.randint(1, 40), rng.getrandbits(16)))
    ring = rng.choice((0, row, max(1, row) * rng.randint(1, 6), row + rng.getrandbits(19))) % _SPACE
    config = {
        "a_base": rng.getrandbits(SCRATCH_BITS),
        "a_row": row,
        "a_ring": ring,
        "a_row_off": rng.randrange(ring or _SPACE),
        "kernel_h": rng.choice((1, 3, rng.randint(1, 15))),
        "kernel_w": rng.randint(1, 5),
        "stride_h": rng.randint(1, 4),
        "stride_w": rng.randint(1, 4),
        "out_h": rng.randint(1, 5),
        "out_w": rng.choice((1, rng.randint(1, 6))),
    }
    for size, corner in (("in_h", "iy0"), ("in_w", "ix0")):
        config[size] = rng.randrange(1, 1 << rng.choice((3, 5, 14)))
        corners = (rng.randint(-16, 3), -(1 << 14), rng.randrange(-1 << 14, 1 << 14), config[size] - rng.randint(0, 12))
        config[corner] = rng.choice(corners)
    return config


def _walk(configs: Sequence[Config], rng: random.Random, rate: float = 1.0, most: int | None = None) -> list[float]:
    """Check the words of one walk after another; the cycles of each walk."""
    walker = made(DepthwiseWalker)
    found: list[int] = []
    cycles: list[float] = []
    expected = [list(islice(DepthwiseWalker.model(config), most)) for config in configs]

    async def start(ctx: Any) -> None:
        count = 0
        for config, words in zip(configs, expected, strict=True):
            ctx.set(walker.config, config)
            await ctx.tick().repeat(DepthwiseWalker.SETUP)
            ctx.set(walker.start, 1)
            row = walk_words(config) // config["out_h"]
            for _ in range(DepthwiseWalker.LATENCY + (config["stride_h"] - 1 if row == 1 else 0)):
                assert not ctx.get(walker.o.valid)
                await ctx.tick()
                ctx.set(walker.start, 0)
            assert ctx.get(walker.o.valid)
            count += len(words)
            # The sink records a word one tick after this process has looked.
            cycles.append(-1)
            while len(found) < count:
                await ctx.tick()
                cycles[-1] += 1

    total = sum(len(words) for words in expected)
    run(walker, start, sink(walker.o, found, total, rng, rate))
    words = iter(FETCH_LAYOUT.from_bits(bits) for bits in found)
    for config, walk in zip(configs, expected, strict=True):
        for number, (addr, inside, first, last) in enumerate(walk):
            word = next(words)
            assert (bool(word.inside), bool(word.tap.first), bool(word.tap.last)) == (inside, first, last), config
            assert word.addr == addr or not inside, (config, number)
    return cycles


@pytest.mark.parametrize("rate", [1.0, 0.6])
def test_words_follow_their_model(rate: float, rng: random.Random) -> None:
    _walk([_random(rng) for _ in range(40)], rng, rate)


def test_a_ring_wraps_at_every_row(rng: random.Random) -> None:
    """Also rings of one row."""
    ring = {"in_h": 99, "in_w": 99, "kernel_h": 4, "out_h": 5, "out_w": 1, "a_base": _SPACE - 7}
    configs = [
        _SMALL | ring | {"a_ring": 20 * rows + gap, "a_row_off": 20 * first, "stride_h": stride}
        for rows in range(1, 5)
        for first in range(rows)
        for gap in (0, 3)
        for stride in (1, 3, 4)
    ]
    _walk(configs, rng)


@pytest.mark.parametrize("corner", [(-9, 0), (0, -9), (8, 0), (0, 8), (-2, -1), (6, 7)])
def test_windows_lie_in_the_padding(corner: tuple[int, int], rng: random.Random) -> None:
    _walk([_SMALL | {"iy0": corner[0], "ix0": corner[1], "kernel_h": kernel} for kernel in range(1, 16)], rng)


@pytest.mark.parametrize("stride_h", [1, 2, 3, 4])
def test_a_word_a_cycle(stride_h: int, rng: random.Random) -> None:
    """Except that an output row takes as many cycles as its results at least."""
    sizes = [{"kernel_h": kernel, "out_w": width} for kernel in (1, 2, 3) for width in (1, 2, 5)]
    configs = [_SMALL | {"stride_h": stride_h, "out_h": 6, "stride_w": 2} | size for size in sizes]
    configs += [config | {"kernel_w": kernel} for config in configs for kernel in (1, 2, 4, 5)]
    for config, cycles in zip(configs, _walk(configs, rng), strict=True):
        row = walk_words(config) // config["out_h"]
        assert cycles <= config["out_h"] * max(row, GROUPS)
        assert cycles == walk_words(config) or row < GROUPS


def _large() -> list[Config]:
    """One member with each of its bits; a count of 2^n + 1 or 2^n + 2 that lost bit n ends after one step or two."""
    configs = []
    for name in ("out_h", "out_w", "kernel_h"):
        least = {"out_h": 1, "out_w": 1, "kernel_h": 1}
        configs += [_SMALL | least | {name: 1 << bit | n} for bit in range(2, _width(name)) for n in (1, 2)]
    # Up to what a field holds, which is more than an instruction may have.
    for name in ("stride_h", "stride_w", "kernel_w"):
        configs += [_SMALL | {"out_h": 3, "out_w": 3, name: n} for n in range(1, 1 << _width(name))]
    for name, corner in (("in_h", "iy0"), ("in_w", "ix0")):
        configs += [_SMALL | {name: 1 << bit, corner: (1 << bit) - 2} for bit in range(2, _width(name))]
        configs.append(_SMALL | {name: (1 << _width(name)) - 1, corner: -1})
    for name in ("a_base", "a_row_off", "a_row"):
        configs += [_SMALL | {name: 1 << bit} for bit in range(_width(name))]
    ring = (1 << SCRATCH_BITS) - 1
    configs.append(_SMALL | {"a_ring": ring, "a_row_off": ring - 3, "a_row": (1 << 16) - 1})
    return configs


@pytest.mark.parametrize(
    "config", _large(), ids=lambda config: str({k: v for k, v in config.items() if _SMALL.get(k) != v})
)
def test_every_member_has_its_whole_width(config: Config, rng: random.Random) -> None:
    _walk([config], rng, most=PREFIX)


@pytest.mark.slow
def test_coordinates_have_all_bits_that_fields_can_reach(rng: random.Random) -> None:
    """The last rows under the largest output, which lies far behind the largest input."""
    largest = {name: BY_KIND[Kind.VDEPTHWISE].field(name).maximum for name in ("in_h", "iy0")}
    tall = {"out_h": 12_320, "out_w": 1, "stride_h": 4, "kernel_h": 1}
    _walk([_SMALL | largest | tall], rng)


def test_the_layout_is_that_of_the_instruction() -> None:
    assert set(_SMALL) == set(DEPTHWISE_LAYOUT.members)
