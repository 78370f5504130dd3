"""Pixel fetcher: scratchpad words, packed pixels aligned, and padding."""

import random
from collections import deque
from typing import Any

import pytest

from intloom.hw.mac.array.pixel_fetcher import PIXEL_INSTRUCTION, PIXEL_REQUEST, PixelFetcher
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.isa import COORDINATE_BITS, COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.idle import check_idle
from tests.hw.streams import made, run

WORDS = 64


def _request(rng: random.Random, params: HardwareParams) -> dict[str, int]:
    packed = rng.randrange(2)
    in_w = rng.randint(1, 12 * (params.pixels_per_word if packed else 1))
    # Rows inside the memory, across its end, and behind it.
    address = rng.choice((rng.randrange(WORDS), WORDS - in_w // params.pixels_per_word - rng.randrange(2), WORDS))
    # Words to the left that are not read: columns of all bits.
    left = rng.choice((0, 0, rng.getrandbits(COORDINATE_BITS - 1) // params.pixels_per_word))
    columns = left * (params.pixels_per_word if packed else 1)
    return {
        "swap": rng.randrange(2),
        "row_inside": rng.random() < 0.9,
        "ix": rng.randint(-2 * params.pixels_per_word, in_w + params.pixels_per_word) + columns,
        "in_w": in_w + columns,
        "address": (address - left) % (1 << SCRATCH_BITS),
        "packed": packed,
        "zp_in": rng.randint(-128, 127),
        "index": rng.getrandbits(COUNT_BITS),
    }


@pytest.mark.parametrize("name", ["nano", "small", "base"])
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_words_are_fetched_shifted_and_padded(name: str, rate: float, rng: random.Random) -> None:
    params = preset(name)
    fetcher = made(PixelFetcher, params)
    words = [rng.randbytes(params.word_bytes) for _ in range(WORDS)]
    pixels = [_request(rng, params) if rng.random() < rate else None for _ in range(200)]
    outside: set[int] = set()

    async def bench(ctx: Any) -> None:
        due = {port: deque([b""] * (READ_LATENCY - 1)) for port in ("act0", "act1")}
        for cycle, request in enumerate([*pixels, *[None] * PixelFetcher.LATENCY]):
            ctx.set(fetcher.valid, request is not None)
            if request is not None:
                ctx.set(fetcher.pixel, {name: request[name] for name in PIXEL_REQUEST.members})
            # Fields of the instruction come a cycle after their pixel, and in no other cycle.
            last = pixels[cycle - 1] if cycle in range(1, len(pixels) + 1) else None
            last = last or _request(rng, params)
            ctx.set(fetcher.instruction, {name: last[name] for name in PIXEL_INSTRUCTION.members})
            for port, waiting in due.items():
                waiting.append(_answer(ctx, getattr(fetcher, port), words, rng))
            if ctx.get(fetcher.fault):
                outside.add(ctx.get(fetcher.fault_index))
            earlier = pixels[cycle - PixelFetcher.LATENCY] if cycle >= PixelFetcher.LATENCY else None
            assert ctx.get(fetcher.word_valid) == (earlier is not None)
            assert ctx.get(fetcher.swap) == (earlier is not None and earlier["swap"])
            if earlier is not None and (wanted := PixelFetcher.model(earlier, words)) is not None:
                assert ctx.get(fetcher.word) == int.from_bytes(wanted, "little"), earlier
            await ctx.tick()
            for port, waiting in due.items():
                noise = rng.randbytes(params.word_bytes)
                ctx.set(getattr(fetcher, port).data, int.from_bytes(waiting.popleft() or noise, "little"))

    run(fetcher, bench)
    missing = {pixel["index"] for pixel in pixels if pixel is not None and PixelFetcher.model(pixel, words) is None}
    assert outside == missing


def _answer(ctx: Any, port: Any, words: list[bytes], rng: random.Random) -> bytes:
    """Serve a port that always grants; a read outside the memory returns no data."""
    valid, at = ctx.get(port.valid), ctx.get(port.addr)
    ctx.set(port.ready, 1)
    ctx.set(port.fault, valid and at >= WORDS)
    return words[at] if valid and at < WORDS else b""


@pytest.mark.parametrize("packed", [0, 1])
def test_the_widest_row_and_its_neighbors_are_read(packed: int) -> None:
    """Columns with every bit of an input width: the reads are exactly the words that hold pixels of the row."""
    params = preset("base")
    fetcher = made(PixelFetcher, params)
    pixels = params.pixels_per_word if packed else 1
    widths = ((1 << COORDINATE_BITS) - 1, (1 << COORDINATE_BITS - 1) + 1, 1 << COORDINATE_BITS - 1, 5, 4)

    async def bench(ctx: Any) -> None:
        for signal in (fetcher.valid, fetcher.act0.ready, fetcher.act1.ready):
            ctx.set(signal, 1)
        for in_w in widths:
            for ix in (in_w - pixels, in_w - 1, in_w, in_w + (1 << COORDINATE_BITS), -1, -pixels, 1 - pixels, 0, 1, 3):
                ctx.set(fetcher.pixel, {"swap": 0, "row_inside": 1, "ix": ix, "address": 7})
                ctx.set(fetcher.instruction, {"in_w": in_w, "packed": packed, "zp_in": 0, "index": 0})
                await ctx.tick().repeat(2)
                inside = {7 + x // pixels for x in range(ix, ix + pixels) if 0 <= x < in_w}
                ports = (fetcher.act0, fetcher.act1)
                assert {ctx.get(port.addr) for port in ports if ctx.get(port.valid)} == inside, (in_w, ix)

    run(fetcher, bench)


def test_registers_keep_their_values_without_work(rng: random.Random) -> None:
    check_idle(PixelFetcher(preset("nano")), rng, "valid")
