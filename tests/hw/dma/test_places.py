"""Local addresses: every word's place in order, without gaps between moves."""

from __future__ import annotations

import random

from hw.dma.places import LOCAL_LAYOUT, PLACE_LAYOUT, PlaceWalker
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
    assert {name for name, _ in LOCAL_LAYOUT} == set(moves[0])
    expected = [place for move in moves for place in _expected(move)]
    walker = PlaceWalker()
    taken: list[int] = []
    run(
        walker, source(walker.i, moves, rng, 0.7), sink(walker.o, taken, len(expected), rng, 0.7),
        monitors=[(walker.o, "places")],
    )  # fmt: skip
    assert taken == expected
