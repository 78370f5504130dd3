"""Pool: maxima and sums of windows, plain and sliding."""

import random
from typing import Any

import pytest

from intloom.hw.vector.pool import SLIDE_TAPS, Pool
from intloom.hw.vector.slicer import Slicer
from tests.hw.streams import made, run
from tests.hw.vector.slices import WIDTHS, idle_cycles, to_int, with_lanes


def _windows(rng: random.Random, slide: bool, taps: int) -> list[tuple[bytes, bool, bool]]:
    """Words with their position in a window; of sliding windows, lines of words."""
    words: list[tuple[bytes, bool, bool]] = []
    for _ in range(12):
        count = rng.randint(taps, taps + 6) if slide else rng.randint(1, 9)
        for k in range(count):
            last = k >= taps - 1 if slide else k == count - 1
            # Often one bit alone is different from the word before.
            word = bytes(b ^ 1 << rng.randrange(8) for b in words[-1][0]) if words and rng.getrandbits(1) else None
            words.append((word or rng.randbytes(8), k == 0, last))
    return words


def _pooled(words: list[tuple[bytes, bool, bool]], lanes: int, slide: bool, taps: int) -> list[tuple[int, ...]]:
    """Maxima and sums of all complete windows, slice by slice; sums of sliding windows are not compared."""
    expected: list[tuple[int, ...]] = []
    seen: list[bytes] = []
    for word, first, last in words:
        seen = [*([] if first else seen), word]
        maxima, sums = Pool.model(seen[-taps:] if slide else seen)
        if last:
            expected += [
                (*maxima[at : at + lanes], *(() if slide else sums[at : at + lanes])) for at in range(0, 8, lanes)
            ]
    return expected


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("slide", [False, True])
def test_windows_are_reduced(lanes: int, slide: bool, rng: random.Random) -> None:
    for taps in range(2, SLIDE_TAPS + 1) if slide else (1,):
        pool = made(Pool, with_lanes(lanes))
        words = _windows(rng, slide, taps)
        found: list[tuple[int, ...]] = []

        async def bench(ctx: Any, pool: Pool = pool, words: Any = words, taps: int = taps, found: Any = found) -> None:
            ctx.set(pool.slide, slide)
            ctx.set(pool.link, taps - 1)
            for word, first, last in words:
                for index, part in enumerate(Slicer.model(word, lanes)):
                    # Without `valid` the other inputs are anything.
                    for port in (pool.index, pool.part, pool.tap.first, pool.tap.last):
                        ctx.set(port, rng.getrandbits(len(port)))
                    await idle_cycles(ctx, rng, pool.valid)
                    ctx.set(pool.index, index)
                    ctx.set(pool.part, to_int(part))
                    ctx.set(pool.tap.first, first)
                    ctx.set(pool.tap.last, last)
                    await ctx.tick()
                    assert ctx.get(pool.result_valid) == last
                    if last:
                        sums = () if slide else tuple(ctx.get(pool.total[k]) for k in range(lanes))
                        found.append((*(ctx.get(pool.maximum[k]) for k in range(lanes)), *sums))

        async def watch(ctx: Any, pool: Pool = pool) -> None:
            results = 0
            async for *_, result, valid, last in ctx.tick().sample(pool.result_valid, pool.valid, pool.tap.last):
                assert result == results
                results = valid & last

        run(pool, bench, background=[watch])
        assert found == _pooled(words, lanes, slide, taps)


@pytest.mark.parametrize(("byte", "count"), [(0x80, 1024), (0x7F, 1032)], ids=["lowest", "highest"])
def test_a_sum_has_all_of_its_bits(byte: int, count: int) -> None:
    """The longest windows of the lowest and of the highest byte whose sums fit 18 bits with their sign."""
    pool = made(Pool, with_lanes(8))
    word = bytes([byte] * 8)

    async def bench(ctx: Any) -> None:
        ctx.set(pool.part, to_int(list(word)))
        ctx.set(pool.valid, 1)
        for number in range(count):
            ctx.set(pool.tap.first, number == 0)
            ctx.set(pool.tap.last, number == count - 1)
            await ctx.tick()
        total = (byte - 256 if byte > 127 else byte) * count
        assert abs(total) > 1 << 16
        assert [ctx.get(lane) for lane in pool.total] == [total] * 8

    run(pool, bench)
