"""The load unit: every word at its address under random back-pressure, and a beat a cycle in spite of latency."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.dma.load import LoadUnit
from intloom.hw.spec import isa
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.dma.memory_model import content, read_memory
from tests.hw.streams import run

BASE = 0x12345


def random_move(rng: random.Random, kind: str, params: HardwareParams) -> isa.Instruction:
    n0, n1, n2 = rng.choice([1, 2, 5, 30, 90]), rng.randint(1, 4), rng.randint(1, 3)
    s1 = rng.choice([n0, rng.getrandbits(20)])
    fields = {"n0": n0, "n1": n1, "n2": n2, "dram": rng.getrandbits(20), "dram_s1": s1, "dram_s2": rng.getrandbits(20)}
    words = n0 * n1 * n2
    fields |= {"local": rng.randrange(params.scratch_words - words), "local_s1": n0, "local_s2": n0 * n1}
    if kind == "LOAD":
        fields["target"] = rng.randint(0, 1)
    return isa.make(kind, **fields)


class LoadBench:
    """A load unit between a memory model and local memories that record what is written."""

    def __init__(self, params: HardwareParams, moves: list[isa.Instruction], rng: random.Random, rate: float) -> None:
        self.unit = LoadUnit(params)
        self.moves, self.rng, self.rate = moves, rng, rate
        self.written: list[tuple[int, int, int]] = []
        self.done_after: list[int] = []
        self.cycles = 0

    async def offer(self, ctx: Any) -> None:
        port = self.unit.unit
        ctx.set(self.unit.base, BASE)
        for index, move in enumerate(self.moves):
            ctx.set(port.instruction, int.from_bytes(isa.encode(move), "little"))
            ctx.set(port.index, index)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)
        while len(self.done_after) < len(self.moves):
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(port.idle)
        assert not ctx.get(port.fault)

    async def record(self, ctx: Any) -> None:
        scratch, weights, port = self.unit.scratch, self.unit.weights, self.unit.unit
        while True:
            ctx.set(scratch.ready, int(self.rng.random() < self.rate))
            *_, to_scratch, sa, sd, mask, to_weights, wa, wd, done = await ctx.tick().sample(
                scratch.valid & scratch.ready,
                scratch.addr,
                scratch.data,
                scratch.mask,
                weights.valid,
                weights.addr,
                weights.data,
                port.done,
            )
            self.cycles += 1
            if done:
                self.done_after.append(len(self.written))
            if to_scratch:
                assert mask == (1 << len(scratch.mask)) - 1
                self.written.append((0, sa, sd))
            if to_weights:
                self.written.append((1, wa, wd))


def simulate(params: HardwareParams, moves: list[isa.Instruction], seed: int, rate: float, latency: int) -> LoadBench:
    rng = random.Random(seed)
    bench = LoadBench(params, moves, rng, rate)
    unit = bench.unit
    memory = read_memory(unit.bursts, unit.r, params, rng, latency, rate, params.axi_outstanding)
    run(unit, bench.offer, background=[bench.record, memory])
    return bench


@pytest.mark.parametrize("name", ["nano", "base"])
def test_every_word_is_written_to_its_address_in_order(name: str, seed: int) -> None:
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 16, 64]), axi_outstanding=rng.choice([1, 2, 8]))
    moves = [random_move(rng, "LOAD", params) for _ in range(10)]
    bench = simulate(params, moves, seed, rate=0.7, latency=rng.choice([1, 7, 40]))
    expected = [
        (m["target"], local, content(BASE + dram, params)) for m in moves for dram, local in MoveFrontEnd.model(m)
    ]
    assert bench.written == expected
    ends = [0]
    for move in moves:
        ends.append(ends[-1] + move["n0"] * move["n1"] * move["n2"])
    assert bench.done_after == ends[1:], "done must come in the cycle after the last word"


@pytest.mark.parametrize(("words", "least"), [(64, 0.95), (128, 0.95)])
def test_short_loads_hide_each_others_latency(words: int, least: float, seed: int) -> None:
    params = preset("base")
    count, latency = 2048 // words, 400
    moves = [isa.make("LOAD", dram=i * words - i % 3, local=0, n0=words) for i in range(1, count + 1)]
    bench = simulate(params, moves, seed, rate=1.0, latency=latency)
    busy = count * words / (bench.cycles - latency)
    print(f"{words}-word loads: {busy:.3f} beats a cycle at latency {latency}")
    assert busy >= least
