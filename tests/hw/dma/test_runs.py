"""Runs of a move: both sides of each, as the model says, under random stalls."""

from __future__ import annotations

import random

import pytest

from intloom.hw.dma.runs import RunWalker, run_layout
from intloom.hw.spec.params import preset
from tests.hw.dma.moves import random_fields
from tests.hw.streams import cycles_through, run, sink, source

PARAMS = preset("small")


@pytest.mark.parametrize(("offer", "take"), [(1.0, 1.0), (0.7, 0.7), (1.0, 0.3)])
def test_runs_of_random_moves(offer: float, take: float, rng: random.Random) -> None:
    moves = [random_fields(rng, PARAMS, (1 << 16) - 1) for _ in range(20)]
    runs = [item for move in moves for item in RunWalker.model(move, PARAMS)]
    assert sum(item["memory"]["contiguous"] for item in runs) > 9
    walker = RunWalker(PARAMS)
    taken: list[int] = []
    run(walker, source(walker.i, moves, rng, offer), sink(walker.o, taken, len(runs), rng, take))
    assert taken == [run_layout(PARAMS).const(item).as_value().value for item in runs]


def test_the_first_run_comes_after_the_latency(rng: random.Random) -> None:
    assert cycles_through(RunWalker(PARAMS), random_fields(rng, PARAMS, 9)) == RunWalker.LATENCY
