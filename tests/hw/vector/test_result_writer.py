"""Result writer on a port that refuses at random."""

import random
from typing import Any

import pytest

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.raster_walker import RASTER_LAYOUT, RasterWalker
from intloom.hw.vector.result_writer import ResultWriter
from tests.hw.streams import Process, made, run

BYTES = 4
_AFTERWARDS = 40
"""Cycles after the last write, in which the last addresses stay."""
_RASTERS = 5
"""So many that each bit of the last two addresses is 0 in some and 1 in others."""


@pytest.mark.parametrize(("push", "grant"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.4), (0.6, 0.6)])
def test_results_are_written_in_order(push: float, grant: float, rng: random.Random) -> None:
    for _ in range(_RASTERS):
        config = {name: rng.getrandbits(SCRATCH_BITS) for name in ("base", "plane", "line", "step")}
        config |= {"blocks": 2, "lines": rng.randint(1, 4), "pixels": rng.randint(1, 5)}
        config |= {"line_repeat": rng.randint(1, 3), "pixel_repeat": rng.randint(1, 3)}
        config |= {"line_at": 0, "pixel_at": 0, "line_stride": 1, "pixel_stride": 1, "prefill": 0}
        _check_order(config, push, grant, rng)


def _check_order(config: dict[str, int], push: float, grant: float, rng: random.Random) -> None:
    """Write random words to the addresses of a raster."""
    writer = made(ResultWriter, BYTES, 8)
    words = [rng.getrandbits(8 * BYTES) for _ in RasterWalker.model(config)]
    written: list[tuple[int, int, int]] = []
    mask = rng.randrange(1, 1 << BYTES)

    async def results(ctx: Any) -> None:
        """Take a credit for each word, and push it a few cycles later."""
        ctx.set(writer.config, config)
        ctx.set(writer.mask, mask)
        ctx.set(writer.start, 1)
        await ctx.tick()
        ctx.set(writer.start, 0)
        flying: list[int | None] = [None] * 5
        left = list(words)
        while left or any(word is not None for word in flying):
            take_credit = bool(left) and ctx.get(writer.credit_available) and rng.random() < push
            ctx.set(writer.take_credit, take_credit)
            flying.append(left.pop(0) if take_credit else None)
            word = flying.pop(0)
            ctx.set(writer.push, word is not None)
            ctx.set(writer.word, rng.getrandbits(8 * BYTES) if word is None else word)
            assert ctx.get(writer.active)
            await ctx.tick()
        ctx.set(writer.push, 0)
        await ctx.tick().until(~writer.active)
        assert len(written) == len(words)
        assert ctx.get(writer.idle)
        await ctx.tick().repeat(_AFTERWARDS)

    run(writer, results, background=[_memory(writer, written, grant, rng, config)])
    assert written == [(item, word, mask) for item, word in ResultWriter.model(config, words)]


def _memory(
    writer: ResultWriter, written: list[tuple[int, int, int]], grant: float, rng: random.Random, config: dict[str, int]
) -> Process:
    """Grants at random, and checks in every cycle that requests stay, and what the writer reports of its addresses."""
    addresses = [item["addr"] for item in RasterWalker.model(config)]

    async def process(ctx: Any) -> None:
        port, waiting, started = writer.port, None, False
        while True:
            ready = rng.random() < grant
            ctx.set(port.ready, ready)
            # One of the last three, perhaps with another bit; the last two are a hazard once the raster has ended.
            asked = rng.choice(addresses[-1 - SkidBuffer.DEPTH :]) ^ rng.getrandbits(1) << rng.randrange(SCRATCH_BITS)
            ctx.set(writer.addr, asked)
            *_, addressed, hazard, start, active, idle, halt, valid, addr, word, mask = await ctx.tick().sample(
                writer.addressed,
                writer.hazard,
                writer.start,
                writer.active,
                writer.idle,
                writer.halt,
                port.valid,
                port.addr,
                port.data,
                port.mask,
            )
            request = (addr, word, mask)
            assert active == (started and len(written) < len(addresses))
            if started and addressed:
                assert len(written) >= len(addresses) - SkidBuffer.DEPTH
                assert hazard == (asked in addresses[-SkidBuffer.DEPTH :])
            assert addressed or active
            assert idle == (waiting is None)
            assert waiting is None or (valid and request == waiting), "a request was dropped or changed"
            assert waiting is not None or not (halt and valid), "a request begins in a halt"
            waiting = request if valid and not ready else None
            if valid and ready:
                written.append(request)
            started |= bool(start)

    return process


def test_a_halt_begins_no_request(rng: random.Random) -> None:
    """Requests that were offered stay until their grant; the others follow after the halt."""
    writer = made(ResultWriter, BYTES, 8)
    config = dict.fromkeys(RASTER_LAYOUT.members, 1) | {"pixels": 40, "prefill": 0}
    words = [rng.getrandbits(8 * BYTES) for _ in range(40)]
    written: list[tuple[int, int, int]] = []

    async def results(ctx: Any) -> None:
        ctx.set(writer.config, config)
        ctx.set(writer.mask, 5)
        ctx.set(writer.start, 1)
        await ctx.tick()
        ctx.set(writer.start, 0)
        left = list(words)
        while left:
            ctx.set(writer.halt, rng.random() < 0.5)
            offer = ctx.get(writer.credit_available) and rng.random() < 0.6
            ctx.set(writer.take_credit, offer)
            ctx.set(writer.push, offer)
            ctx.set(writer.word, left[0])
            left = left[1:] if offer else left
            await ctx.tick()
        ctx.set(writer.take_credit, 0)
        ctx.set(writer.push, 0)
        ctx.set(writer.halt, 0)
        await ctx.tick().until(~writer.active)
        await ctx.tick().repeat(_AFTERWARDS)

    run(writer, results, background=[_memory(writer, written, 0.5, rng, config)])
    assert written == [(item, word, 5) for item, word in ResultWriter.model(config, words)]
