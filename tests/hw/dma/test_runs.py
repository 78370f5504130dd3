"""Runs of a move: both sides of each, as the model says, under random stalls."""

import random
from itertools import islice

import pytest

from intloom.hw.dma.runs import RunWalker, move_layout, offset_bits, run_layout
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import preset
from tests.hw.dma.moves import random_fields
from tests.hw.streams import cycles_through, made, run, sink, source

PARAMS = preset("small")
RUN_BITS, CODED_BITS = (BY_KIND[Kind.LOAD].field(name).width for name in ("n0", "coded"))


@pytest.mark.parametrize("word_code", [False, True])
@pytest.mark.parametrize(("offer", "take"), [(1.0, 1.0), (0.7, 0.7), (1.0, 0.3)])
def test_runs_of_random_moves(offer: float, take: float, word_code: bool, rng: random.Random) -> None:
    params = PARAMS.replace(word_code=word_code)
    touching = {"n0": 5, "n1": 5, "n2": 2, "dram_s1": 5, "dram_s2": 25}
    moves = [random_fields(rng, params, (1 << 16) - 1) for _ in range(20)]
    moves.append(random_fields(rng, params, 9) | touching)
    # Of a coded run fewer words are in memory.
    moves += [moves[-1] | {"n0": words, "coded": 5} for words in (6, 200)] * word_code
    runs = [item for move in moves for item in RunWalker.model(move, params)]
    assert sum(item["memory"]["contiguous"] for item in runs) >= 9
    walker = made(RunWalker, params)
    taken: list[int] = []
    run(walker, source(walker.i, moves, rng, offer), sink(walker.o, taken, len(runs), rng, take))
    assert taken == [run_layout(params).const(item).as_value().value for item in runs]


def test_runs_are_contiguous_only_if_all_bits_agree(rng: random.Random) -> None:
    """The end of a run differs from the start of the next one in a single bit: of the run's or of the plane's step."""
    small = dict.fromkeys(("target", "local", "local_s1", "local_s2", "index", "dram_s1", "dram_s2"), 0)
    base = small | {"dram": rng.getrandbits(16), "n0": 5, "n1": 1, "n2": 1}
    moves = [base | {"n1": 3, "dram_s1": 5}, base | {"n2": 3, "dram_s2": 5}]
    for bit in range(offset_bits(PARAMS)):
        moves += [base | {"n1": 2, "dram_s1": 5 ^ 1 << bit}, base | {"n2": 2, "dram_s2": 5 ^ 1 << bit}]
    for bit in range(RUN_BITS):
        words = 5 ^ 1 << bit
        moves += [base | {"n0": words, "n1": 2, "dram_s1": 5}, base | {"n0": words, "n2": 2, "dram_s2": words}]
    runs = [item for move in moves for item in RunWalker.model(move, PARAMS)]
    assert sum(item["memory"]["contiguous"] for item in runs) == 4 + RUN_BITS
    walker = made(RunWalker, PARAMS)
    taken: list[int] = []
    run(walker, source(walker.i, moves, rng), sink(walker.o, taken, len(runs), rng))
    assert taken == [run_layout(PARAMS).const(item).as_value().value for item in runs]


def test_a_move_is_coded_if_any_bit_of_its_coded_words_is_set(rng: random.Random) -> None:
    params = PARAMS.replace(word_code=True)
    moves = [
        random_fields(rng, params, 9) | {"coded": coded} for coded in (0, *(1 << bit for bit in range(CODED_BITS)))
    ]
    runs = [item for move in moves for item in RunWalker.model(move, params)]
    walker = made(RunWalker, params)
    taken: list[int] = []
    run(walker, source(walker.i, moves, rng), sink(walker.o, taken, len(runs), rng))
    assert taken == [run_layout(params).const(item).as_value().value for item in runs]


@pytest.mark.parametrize(
    ("name", "bit"), [(name, bit) for name in ("n1", "n2") for bit in range(4, move_layout(PARAMS)[name].width)]
)
@pytest.mark.parametrize("without", [1, 3])
def test_many_runs_and_planes_follow(name: str, bit: int, without: int, rng: random.Random) -> None:
    """The first runs of a move whose number of rows or planes is 2^n + 1: without bit n it ends after one.

    The last of one row is found when its number is loaded, the last of three when two are left.
    """
    move = random_fields(rng, PARAMS, 9) | {"n0": 3, "n1": 2, "n2": 2} | {name: 1 << bit | without}
    walker = made(RunWalker, PARAMS)
    taken: list[int] = []
    count = 24
    run(walker, sink(walker.o, taken, count, rng), background=[source(walker.i, [move, move], rng)])
    expected = islice(RunWalker.model(move, PARAMS), count)
    assert taken == [run_layout(PARAMS).const(item).as_value().value for item in expected]


def test_a_move_of_thousands_of_rows_ends(rng: random.Random) -> None:
    """The number of rows borrows through 11 bits."""
    moves = [random_fields(rng, PARAMS, 9) | {"n0": 1, "n1": rows, "n2": 1} for rows in (2049, 1)]
    runs = [item for move in moves for item in RunWalker.model(move, PARAMS)]
    walker = made(RunWalker, PARAMS)
    taken: list[int] = []
    run(walker, source(walker.i, moves, rng), sink(walker.o, taken, len(runs), rng))
    assert taken == [run_layout(PARAMS).const(item).as_value().value for item in runs]


def test_the_first_run_comes_after_the_latency(rng: random.Random) -> None:
    assert cycles_through(RunWalker(PARAMS), random_fields(rng, PARAMS, 9)) == RunWalker.LATENCY
