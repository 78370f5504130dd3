"""The weight memory against a list of words."""

from __future__ import annotations

import random

from hw.memory.weights import WeightMemory
from hw.ports import READ_LATENCY
from hw.spec.isa import SCRATCH_BITS
from hw.spec.params import preset
from tests.hw.streams import run

CYCLES = 1500


def test_reads_see_earlier_writes_and_addresses_wrap(rng: random.Random) -> None:
    params = preset("nano").replace(weight_kib=2)
    dut = WeightMemory(params)
    words = [0] * params.weight_words
    places = [rng.getrandbits(SCRATCH_BITS) for _ in range(8)]
    compared = 0

    async def bench(ctx):
        nonlocal compared
        due: dict[int, int] = {}
        for cycle in range(CYCLES):
            read, write = rng.random() < 0.7, rng.random() < 0.7
            read_at, write_at = rng.choice(places), rng.choice(places)
            data = rng.getrandbits(8 * params.word_bytes)
            ctx.set(dut.read.valid, read)
            ctx.set(dut.read.addr, read_at)
            ctx.set(dut.write.valid, write)
            ctx.set(dut.write.addr, write_at)
            ctx.set(dut.write.data, data)
            if cycle in due:
                assert ctx.get(dut.read.data) == due.pop(cycle), cycle
                compared += 1
            if read:
                due[cycle + READ_LATENCY] = words[read_at % params.weight_words]
            if write:
                words[write_at % params.weight_words] = data
            await ctx.tick()

    run(dut, bench)
    assert compared > CYCLES // 2
