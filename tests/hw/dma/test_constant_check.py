"""The check of constants: every changed bit of a load with a CRC is found, with the load's index."""

import random
from typing import Any

import pytest

from intloom.hw.dma.constant_check import CHECKED_IN_FLIGHT, ConstantCheck
from intloom.hw.spec.constant_check import block_crc
from intloom.hw.spec.isa import COUNT_BITS
from intloom.hw.spec.params import preset
from tests.hw.streams import made, run


def _loads(rng: random.Random, word: int, count: int) -> list[tuple[dict[str, int], bytes]]:
    """Loads with a CRC, without one, and with a CRC of other words: a bit of one word is changed."""
    loads = []
    for _ in range(count):
        words = bytearray(rng.randbytes(word * rng.choice((1, 1, 2, 9))))
        crc = block_crc(words) if rng.random() < 0.7 else 0
        if rng.random() < 0.4:
            words[rng.randrange(len(words))] ^= 1 << rng.randrange(8)
        loads.append(({"crc": crc, "index": rng.getrandbits(COUNT_BITS)}, bytes(words)))
    return loads


class _Bench:
    """Issues the loads as early as `space` allows, and moves their words with pauses."""

    def __init__(self, check: ConstantCheck, loads: list[tuple[dict[str, int], bytes]], pauses: float) -> None:
        self.check, self.loads, self.pauses = check, loads, pauses
        self.in_flight = self.most = 0
        self.reported: list[int] = []

    async def issue(self, ctx: Any) -> None:
        for load, _ in self.loads:
            if load["crc"]:
                while not ctx.get(self.check.space):
                    await ctx.tick()
                await self._pulse(ctx, issue=1, crc=load["crc"])
                self.in_flight += 1
                self.most = max(self.most, self.in_flight)

    async def move(self, ctx: Any, rng: random.Random, word: int) -> None:
        await ctx.tick().repeat(4 * CHECKED_IN_FLIGHT)
        for load, words in self.loads:
            end = {"checked": int(load["crc"] > 0), "index": load["index"], "last": 1}
            apart = rng.random() < self.pauses
            for at in range(0, len(words), word):
                while rng.random() < self.pauses:
                    await ctx.tick()
                is_end = at + word == len(words) and not apart
                beat = int.from_bytes(words[at : at + word], "little")
                await self._pulse(ctx, beat=1, word=beat, **(end if is_end else {}))
            if apart:
                await self._pulse(ctx, **end)
            self.in_flight -= load["crc"] > 0
        await ctx.tick().repeat(ConstantCheck.LATENCY)
        assert not ctx.get(self.check.busy)

    async def watch(self, ctx: Any) -> None:
        check = self.check
        async for *_, mismatch, index, busy in ctx.tick().sample(check.mismatch, check.mismatch_index, check.busy):
            if mismatch:
                assert busy
                self.reported.append(index)

    async def _pulse(self, ctx: Any, **values: int) -> None:
        for name, value in values.items():
            ctx.set(getattr(self.check, name), value)
        await ctx.tick()
        for name in values.keys() & {"issue", "beat", "last"}:
            ctx.set(getattr(self.check, name), 0)


@pytest.mark.parametrize("name", ["nano", "base", "large"])
@pytest.mark.parametrize("pauses", [0, 0.4])
def test_changed_words_are_found(name: str, pauses: float, rng: random.Random) -> None:
    """Loads follow each other without a gap, or with pauses, also between the last beat and the end of a load."""
    params = preset(name).replace(constant_check=True)
    loads = _loads(rng, params.word_bytes, 60)
    bench = _Bench(made(ConstantCheck, params), loads, pauses)

    async def move(ctx: Any) -> None:
        await bench.move(ctx, rng, params.word_bytes)

    run(bench.check, move, background=[bench.issue, bench.watch])
    wrong = ConstantCheck.model(loads)
    assert bench.reported == [load["index"] for (load, _), is_wrong in zip(loads, wrong, strict=True) if is_wrong]
    assert bench.reported
    assert bench.most == CHECKED_IN_FLIGHT
