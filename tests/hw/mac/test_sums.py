"""A column's sums: what was written last is read by array and drain, in both forms of the memory."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from intloom.hw.mac.sums import ColumnSums
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

_NANO = preset("nano")
SHAPES = {
    "both ports": _NANO.replace(strip=32),
    "fast drain": _NANO.replace(cols=8, lanes=2, strip=16, rows=8, axi_data_bits=64, acc_bits=20),
    "turns": _NANO.replace(cols=8, lanes=1, strip=16),
}
CYCLES = 600


def test_only_a_short_strip_with_a_slow_drain_takes_turns() -> None:
    assert [ColumnSums.takes_turns(params) for params in SHAPES.values()] == [False, False, True]


@pytest.mark.parametrize("name", SHAPES)
def test_reads_give_what_was_written(name: str, rng: random.Random) -> None:
    params = SHAPES[name]
    sums = ColumnSums(params)
    places = 2 * params.strip
    writes: list[tuple[int, int]] = []
    limit = 1 << (params.acc_bits - 1)
    seen = {"read": 0, "drain": 0}

    async def bench(ctx: Any) -> None:
        due: deque[dict[str, int]] = deque([{}] * ColumnSums.LATENCY)
        for _ in range(CYCLES):
            for port, value in due.popleft().items():
                assert ctx.get(getattr(sums, f"{port}_data")) == value, port
                seen[port] += 1
            written = rng.randrange(places)
            read, drain = rng.choice([n for n in range(places) if n != written]), _drained(params, rng, written)
            if ColumnSums.takes_turns(params) and drain is not None and drain // params.strip == read // params.strip:
                read = rng.choice([n for n in range(places) if n // params.strip != drain // params.strip])
            asked = {} if read == written else {"read": read}
            ctx.set(sums.read_address, read)
            ctx.set(sums.drain_en, drain is not None)
            if drain is not None:
                ctx.set(sums.drain_address, drain)
                asked["drain"] = drain
            due.append({port: ColumnSums.model(writes, place) for port, place in asked.items()})
            await _write(ctx, written)

    async def _write(ctx: Any, place: int) -> None:
        stores, value = rng.random() < 0.7, rng.choice((-limit, limit - 1, rng.randrange(-limit, limit)))
        ctx.set(sums.write_en, stores)
        ctx.set(sums.write_address, place)
        ctx.set(sums.write_data, value)
        await ctx.tick()
        if stores:
            writes.append((place, value))

    run(sums, bench)
    assert min(seen.values()) > CYCLES // 4


def _drained(params: HardwareParams, rng: random.Random, written: int) -> int | None:
    """A place to drain, or none in this cycle."""
    place = rng.randrange(2 * params.strip)
    return None if place == written or rng.random() < 0.3 else place
