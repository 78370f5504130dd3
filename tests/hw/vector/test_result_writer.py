"""Result writer on a port that refuses at random."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.raster_walker import RasterWalker
from intloom.hw.vector.result_writer import ResultWriter
from tests.hw.streams import run

BYTES = 4


@pytest.mark.parametrize(("push", "grant"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.4), (0.6, 0.6)])
def test_results_are_written_in_order(push: float, grant: float, rng: random.Random) -> None:
    writer = ResultWriter(BYTES, 8)
    config = {name: rng.getrandbits(SCRATCH_BITS) for name in ("base", "plane", "line", "step")}
    config |= {"blocks": 2, "lines": rng.randint(1, 4), "pixels": rng.randint(1, 5)}
    config |= {"line_repeat": rng.randint(1, 3), "pixel_repeat": rng.randint(1, 3)}
    config |= {"line_at": 0, "pixel_at": 0, "line_stride": 1, "pixel_stride": 1, "prefill": 0}
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

    async def memory(ctx: Any) -> None:
        port, waiting = writer.port, None
        while True:
            ready = rng.random() < grant
            ctx.set(port.ready, ready)
            *_, valid, addr, word, mask_now = await ctx.tick().sample(port.valid, port.addr, port.data, port.mask)
            request = (addr, word, mask_now)
            assert waiting is None or (valid and request == waiting), "a request was dropped or changed"
            waiting = request if valid and not ready else None
            if valid and ready:
                written.append(request)

    run(writer, results, background=[memory])
    assert written == [(item, word, mask) for item, word in ResultWriter.model(config, words)]
