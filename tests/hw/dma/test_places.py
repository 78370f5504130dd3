"""Local addresses: every word's place in order, without gaps between moves."""

from __future__ import annotations

import random
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma.places import PLACE_LAYOUT, PlaceWalker
from hw.dma.runs import RunWalker, move_layout, offset_bits, run_layout
from hw.spec.params import preset
from tests.hw.streams import run, sink, source

PARAMS = preset("small")
OFFSETS = 1 << offset_bits(PARAMS)


def _expected(move: dict[str, int]) -> list[int]:
    counts = move["n0"], move["n1"], move["n2"]
    places = [
        (move["local"] + p2 * move["local_s2"] + p1 * move["local_s1"] + p0) % (1 << 20)
        for p2 in range(counts[2])
        for p1 in range(counts[1])
        for p0 in range(counts[0])
    ]
    ends = [0] * (len(places) - 1) + [1]
    return [
        PLACE_LAYOUT.const({"target": move["target"], "addr": at, "index": move["index"], "last": end}).as_value().value
        for at, end in zip(places, ends, strict=True)
    ]


class Walkers(wiring.Component):
    """From moves to places, without the queue between."""

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(move_layout(PARAMS))), "o": Out(stream.Signature(PLACE_LAYOUT))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.runs = runs = RunWalker(PARAMS)
        m.submodules.places = places = PlaceWalker()
        wiring.connect(m, wiring.flipped(self.i), runs.i)
        wiring.connect(m, places.o, wiring.flipped(self.o))
        m.d.comb += [
            places.i.payload.eq(runs.o.payload.local),
            places.i.valid.eq(runs.o.valid),
            runs.o.ready.eq(places.i.ready),
        ]
        return m


def test_places_of_random_moves(seed: int) -> None:
    rng = random.Random(seed)
    moves = [
        {
            "target": rng.randint(0, 1), "local": rng.getrandbits(20), "n0": rng.choice([1, 2, 9]),
            "n1": rng.randint(1, 4), "n2": rng.randint(1, 3), "local_s1": rng.getrandbits(20),
            "local_s2": rng.getrandbits(20), "index": index,
        }
        for index in range(30)
    ]  # fmt: skip
    expected = [place for move in moves for place in _expected(move)]
    walker = Walkers()
    taken: list[int] = []
    run(
        walker, source(walker.i, moves, rng, 0.7), sink(walker.o, taken, len(expected), rng, 0.7),
    )  # fmt: skip
    assert taken == expected


def _runs(move: dict[str, int]) -> list[dict[str, Any]]:
    """Both sides of every run of a move."""
    places = [(p2, p1) for p2 in range(move["n2"]) for p1 in range(move["n1"])]
    runs: list[dict[str, Any]] = []
    end = None
    for p2, p1 in places:
        offset = (move["dram"] + p2 * move["dram_s2"] + p1 * move["dram_s1"]) % OFFSETS
        addr = (move["local"] + p2 * move["local_s2"] + p1 * move["local_s1"]) % 2**20
        shared = {"words": move["n0"], "last": int((p2, p1) == places[-1])}
        runs.append(
            {
                "memory": shared | {"offset": offset, "joins": int(offset == end)},
                "local": shared | {"addr": addr, "target": move["target"], "index": move["index"]},
            }
        )
        end = (offset + move["n0"]) % OFFSETS
    return runs


def _random_move(rng: random.Random) -> dict[str, int]:
    """Any move; often its rows touch, and often its planes."""
    move = {name: rng.getrandbits(20) for name, _ in move_layout(PARAMS)}
    move |= {"target": rng.randint(0, 1), "n0": rng.getrandbits(16), "n1": rng.randint(1, 4), "n2": rng.randint(1, 3)}
    row = rng.choice([move["n0"], rng.randrange(OFFSETS)])
    plane = rng.choice([row * (move["n1"] - 1) + move["n0"], rng.randrange(OFFSETS)])
    return move | {"dram_s1": row, "dram_s2": plane % OFFSETS}


def test_runs_of_random_moves(seed: int) -> None:
    """Both sides of every run, under random stalls."""
    rng = random.Random(seed)
    moves = [_random_move(rng) for _ in range(20)]
    assert sum(item["memory"]["joins"] for move in moves for item in _runs(move)) > 9
    expected = [run_layout(PARAMS).const(item).as_value().value for m in moves for item in _runs(m)]
    walker = RunWalker(PARAMS)
    taken: list[int] = []
    run(
        walker, source(walker.i, moves, rng, 0.7), sink(walker.o, taken, len(expected), rng, 0.7),
    )  # fmt: skip
    assert taken == expected
