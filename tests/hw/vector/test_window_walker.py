"""Window walker against its model."""

import random
from itertools import islice
from typing import Any

import pytest
from amaranth.hdl import Shape

from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.window_walker import FETCH_LAYOUT, KERNEL_BITS, WINDOW_LAYOUT, WindowWalker
from tests.hw.streams import cycles_through, made, run, sink, source

RATES = [1.0, 0.5]


def _limit(rng: random.Random, name: str) -> int:
    """Small, or of any width; windows begin near 0 and near the limits."""
    width = rng.choice((2, 3, rng.randint(3, Shape.cast(WINDOW_LAYOUT.members[name]).width)))
    return rng.randrange(1, (1 << width) - 2)


def _walk(
    config: dict[str, int], pixels: list[dict[str, int]], count: int, rng: random.Random, rate: float = 1.0
) -> list[tuple[int, bool, bool, bool]]:
    """The first words of a walker, as its model gives them."""
    walker = made(WindowWalker)
    taken: list[int] = []

    async def configure(ctx: Any) -> None:
        ctx.set(walker.config, config)

    run(walker, configure, source(walker.i, pixels, rng, rate), sink(walker.o, taken, count, rng, rate))
    words = [FETCH_LAYOUT.from_bits(bits) for bits in taken]
    return [(w.addr, bool(w.inside), bool(w.tap.first), bool(w.tap.last)) for w in words]


@pytest.mark.parametrize("rate", RATES)
def test_windows_follow_their_model(rate: float, rng: random.Random) -> None:
    for _ in range(10):
        slide = rng.randrange(2)
        config = {
            "lines": 1 if slide else rng.randint(1, 4),
            "pixels": 1 if slide else rng.randint(1, 4),
            "line": rng.getrandbits(SCRATCH_BITS),
            "slide": slide,
            "bounded": rng.randrange(2),
            "line_limit": _limit(rng, "line_limit"),
            "pixel_limit": _limit(rng, "pixel_limit"),
        }
        pixels = [
            {
                "addr": rng.getrandbits(SCRATCH_BITS),
                "line_at": rng.choice((0, config["line_limit"])) + rng.randint(-4, 3),
                "pixel_at": rng.choice((0, config["pixel_limit"])) + rng.randint(-4, 3),
                "first": rng.randrange(2),
                "window_full": rng.randrange(2) if slide else 1,
            }
            for _ in range(20)
        ]
        expected = [word for pixel in pixels for word in WindowWalker.model(config, pixel)]
        assert _walk(config, pixels, len(expected), rng, rate) == expected


PREFIX = 12
"""Words to compare: more than a window has whose long count lost its top bit."""


def _pixel(line_at: int, pixel_at: int) -> dict[str, int]:
    return {"addr": (1 << SCRATCH_BITS) - 2, "line_at": line_at, "pixel_at": pixel_at, "first": 1, "window_full": 1}


@pytest.mark.parametrize("name", [name for name, shape in WINDOW_LAYOUT.members.items() if Shape.cast(shape).width > 1])
def test_every_member_of_a_window_has_its_whole_width(name: str, rng: random.Random) -> None:
    """Its top bit is set, and all others are small; the window begins before, at and behind the limits."""
    small = {"lines": 2, "pixels": 2, "line": 5, "line_limit": 3, "pixel_limit": 3}
    top = 1 << Shape.cast(WINDOW_LAYOUT.members[name]).width - 1
    config = small | {"slide": 0, "bounded": 1, name: top + small[name]}
    for at in (0, top + 1, -top):
        pixel = _pixel(at, at)
        expected = list(islice(WindowWalker.model(config, pixel), PREFIX))
        assert _walk(config, [pixel], len(expected), rng) == expected, at


@pytest.mark.parametrize("name", ["line_limit", "pixel_limit"])
def test_every_bit_of_a_limit_is_compared(name: str, rng: random.Random) -> None:
    """A window begins at the bit: it is inside as far as the limit has the bit."""
    small = {"lines": 2, "pixels": 2, "line": 5, "line_limit": 1, "pixel_limit": 1, "slide": 0, "bounded": 1}
    for bit in range(Shape.cast(WINDOW_LAYOUT.members[name]).width):
        at = {"line_limit": 0, "pixel_limit": 0, name: 1 << bit}
        pixel = _pixel(at["line_limit"], at["pixel_limit"])
        for limit in (1 << bit, (1 << bit) + 1):
            config = small | {name: limit}
            expected = list(islice(WindowWalker.model(config, pixel), PREFIX))
            assert _walk(config, [pixel], len(expected), rng) == expected, (bit, limit)


@pytest.mark.parametrize("counted", ["lines", "pixels"])
def test_every_count_is_loaded(counted: str, rng: random.Random) -> None:
    """Pixels are loaded again in the second line."""
    for count in range(1, 1 << KERNEL_BITS):
        config = {"lines": 2, "pixels": 2, "line": 5, "line_limit": 3, "pixel_limit": 3, "slide": 0, "bounded": 1}
        config |= {counted: count}
        pixel = _pixel(0, 0)
        expected = list(WindowWalker.model(config, pixel))
        assert _walk(config, [pixel], len(expected), rng) == expected, count


def test_a_window_opens_after_the_latency() -> None:
    assert cycles_through(WindowWalker(), {"addr": 5, "window_full": 1}) == WindowWalker.LATENCY
