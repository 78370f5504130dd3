"""The input feed: words of the scratchpad, packed pixels shifted into place, and padding."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from intloom.hw.mac.feed import InputFeed
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

WORDS = 64


def _pixel_to_feed(rng: random.Random, params: HardwareParams) -> dict[str, int]:
    packed = rng.randrange(2)
    in_w = rng.randint(1, 12 * (params.pixels_per_word if packed else 1))
    return {
        "swap": rng.randrange(2),
        "row_inside": rng.random() < 0.9,
        "ix": rng.randint(-2 * params.pixels_per_word, in_w + params.pixels_per_word),
        "in_w": in_w,
        "address": rng.randrange(WORDS - 8),
        "packed": packed,
        "zp_in": rng.randint(-128, 127),
        "index": rng.getrandbits(16),
    }


@pytest.mark.parametrize("name", ["nano", "small", "base"])
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_words_are_fetched_shifted_and_padded(name: str, rate: float, rng: random.Random) -> None:
    params = preset(name)
    feed = InputFeed(params)
    words = [rng.randbytes(params.word_bytes) for _ in range(WORDS)]
    pixels = [_pixel_to_feed(rng, params) if rng.random() < rate else None for _ in range(200)]
    outside: set[int] = set()

    async def bench(ctx: Any) -> None:
        due = {port: deque([b""] * (READ_LATENCY - 1)) for port in ("act0", "act1")}
        for cycle, now in enumerate([*pixels, *[None] * InputFeed.LATENCY]):
            ctx.set(feed.valid, now is not None)
            if now is not None:
                ctx.set(feed.pixel, now)
            for port, waiting in due.items():
                waiting.append(_answer(ctx, getattr(feed, port), words, rng))
            if ctx.get(feed.fault):
                outside.add(ctx.get(feed.fault_index))
            earlier = pixels[cycle - InputFeed.LATENCY] if cycle >= InputFeed.LATENCY else None
            assert ctx.get(feed.word_valid) == (earlier is not None)
            assert ctx.get(feed.swap) == (earlier is not None and earlier["swap"])
            if earlier is not None and (wanted := InputFeed.model(earlier, words)) is not None:
                assert ctx.get(feed.word) == int.from_bytes(wanted, "little"), earlier
            await ctx.tick()
            for port, waiting in due.items():
                noise = rng.randbytes(params.word_bytes)
                ctx.set(getattr(feed, port).data, int.from_bytes(waiting.popleft() or noise, "little"))

    run(feed, bench)
    missing = {pixel["index"] for pixel in pixels if pixel is not None and InputFeed.model(pixel, words) is None}
    assert outside == missing


def _answer(ctx: Any, port: Any, words: list[bytes], rng: random.Random) -> bytes:
    """Serve a port that is never refused; nothing comes of a read outside the memory."""
    valid, at = ctx.get(port.valid), ctx.get(port.addr)
    ctx.set(port.ready, 1)
    ctx.set(port.fault, valid and at >= WORDS)
    return words[at] if valid and at < WORDS else b""
