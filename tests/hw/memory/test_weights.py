"""The weight memory against its model."""

from __future__ import annotations

import random
from typing import Any

from intloom.hw.memory.weights import WeightMemory
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import preset
from tests.hw.streams import run

CYCLES = 1500


def test_reads_see_earlier_writes_and_addresses_wrap(rng: random.Random) -> None:
    params = preset("nano").replace(weight_kib=2)
    dut = WeightMemory(params)
    addresses = [rng.getrandbits(SCRATCH_BITS) for _ in range(8)]
    steps: list[tuple[int | None, tuple[int, int] | None]] = []
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        for _ in range(CYCLES):
            read = rng.choice(addresses) if rng.random() < 0.7 else None
            write = (rng.choice(addresses), rng.getrandbits(8 * params.word_bytes)) if rng.random() < 0.7 else None
            steps.append((read, write))
            ctx.set(dut.read.valid, read is not None)
            ctx.set(dut.read.addr, read or 0)
            ctx.set(dut.write.valid, write is not None)
            ctx.set(dut.write.addr, write[0] if write else 0)
            ctx.set(dut.write.data, write[1] if write else 0)
            found.append(ctx.get(dut.read.data))
            await ctx.tick()

    run(dut, bench)
    pairs = list(zip(WeightMemory.model(params, steps), found[WEIGHT_LATENCY:], strict=False))
    assert all(word in (None, data) for word, data in pairs)
    assert sum(word is not None for word, _ in pairs) > CYCLES // 2
