"""Local addresses: every word's place in order, without gaps between moves."""

from __future__ import annotations

import random

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma.places import PLACE_LAYOUT, PlaceWalker
from hw.dma.runs import MOVE_LAYOUT, RUN_LAYOUT, RunWalker
from tests.hw.streams import run, sink, source


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
        super().__init__({"i": In(stream.Signature(MOVE_LAYOUT)), "o": Out(stream.Signature(PLACE_LAYOUT))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.runs = runs = RunWalker()
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


def test_runs_of_random_moves(seed: int) -> None:
    """Both sides of every run, under random stalls."""
    rng = random.Random(seed)
    moves = [
        {name: rng.getrandbits(20) for name, _ in MOVE_LAYOUT}
        | {
            "target": rng.randint(0, 1),
            "n1": rng.randint(1, 4),
            "n2": rng.randint(1, 3),
            "dram_s2": rng.getrandbits(32),
        }
        for _ in range(20)
    ]
    expected = [
        RUN_LAYOUT.const(
            {
                "memory": {"offset": (m["dram"] + p2 * m["dram_s2"] + p1 * m["dram_s1"]) % 2**32, "words": m["n0"]}
                | {"last": int((p2, p1) == (m["n2"] - 1, m["n1"] - 1))},
                "local": {"addr": (m["local"] + p2 * m["local_s2"] + p1 * m["local_s1"]) % 2**20, "words": m["n0"]}
                | {"target": m["target"], "index": m["index"]}
                | {"last": int((p2, p1) == (m["n2"] - 1, m["n1"] - 1))},
            }
        )
        .as_value()
        .value
        for m in moves
        for p2 in range(m["n2"])
        for p1 in range(m["n1"])
    ]
    walker = RunWalker()
    taken: list[int] = []
    run(
        walker, source(walker.i, moves, rng, 0.7), sink(walker.o, taken, len(expected), rng, 0.7),
    )  # fmt: skip
    assert taken == expected
