"""Column walker against its model, word by word, with gaps between words."""

import random
from typing import Any

import pytest
from amaranth.hdl import Shape

from intloom.hw.mac.issue.column_walker import ColumnWalker, columns_layout
from intloom.hw.spec.params import preset
from tests.hw.streams import made, run

_PARAMS = preset("base")


def _columns(rng: random.Random) -> dict[str, int]:
    out_h = rng.choice((1, 1, 2, 4, 9, _PARAMS.strip))
    return {
        "reach_h": rng.choice((1, 3, rng.randint(1, 211))),
        "reach_w": rng.randint(1, 9),
        "column_rows": rng.choice((1, 6, rng.randint(1, 20))),
        "stride_h": rng.randint(1, 4),
        "stride_w": rng.randint(1, 4),
        "out_h": out_h,
        "out_w": rng.choice((1, _PARAMS.strip // out_h, rng.randint(1, _PARAMS.strip // out_h))),
    }


def _check(tiles: list[dict[str, int]], rng: random.Random, pause: float) -> None:
    walker = made(ColumnWalker, _PARAMS)

    async def bench(ctx: Any) -> None:
        for columns in tiles:
            ctx.set(walker.columns, columns)
            ctx.set(walker.start, 1)
            await ctx.tick()
            ctx.set(walker.start, 0)
            # Another tile of the same sizes follows without a start.
            words = list(ColumnWalker.model(columns)) * 2
            for (column, row, number), following in zip(words, [*words[1:], None], strict=True):
                ctx.set(walker.step, 0)
                while rng.random() < pause:
                    await ctx.tick()
                ctx.set(walker.step, 1)
                assert ctx.get(walker.sum_valid) == (number is not None), (columns, column, row)
                assert number is None or ctx.get(walker.number) == number, (columns, column, row)
                assert ctx.get(walker.column_end) == (following is None or following[0] != column or following[1] == 0)
                assert ctx.get(walker.tile_end) == (following is None or following[:2] == (0, 0))
                await ctx.tick()
            ctx.set(walker.step, 0)

    run(walker, bench)


def test_words_and_sums_follow_the_model(rng: random.Random) -> None:
    _check([_columns(rng) for _ in range(5)], rng, pause=0.1)


def test_a_3x3_word_takes_less_than_two_cycles() -> None:
    """Four output rows share the six rows of a column; a word takes a cycle."""
    tile = {"reach_h": 3, "reach_w": 3, "column_rows": 6, "stride_h": 1, "stride_w": 1, "out_h": 4, "out_w": 16}
    words = list(ColumnWalker.model(tile))
    assert sorted(n for _, _, n in words if n is not None) == list(range(64))
    assert len(words) == 18 * 6 < 2 * 64


_WIDE = {name: (1 << Shape.cast(shape).width) - 1 for name, shape in columns_layout(_PARAMS).members.items()}
"""Each member's largest value; an output has at most `strip` pixels."""
_SINGLE = dict.fromkeys(_WIDE, 1)


@pytest.mark.parametrize("name", _WIDE)
def test_every_member_has_its_whole_width(name: str) -> None:
    """A tile in which only this member is large; strides need a second output row or column."""
    other = {"stride_h": {"out_h": 2}, "stride_w": {"out_w": 2}}
    largest = {"reach_h": 211, "reach_w": 211, "out_h": _PARAMS.strip, "out_w": _PARAMS.strip}
    _check([_SINGLE | other.get(name, {}) | {name: largest.get(name, _WIDE[name])}], random.Random(1), pause=0.0)


def test_every_stride_leads_to_the_next_row_and_column() -> None:
    """Every bit of both strides is 0 in some and 1 in others."""
    sizes = {"out_h": 3, "out_w": 2, "reach_h": 2, "reach_w": 2}
    most = min(_WIDE["stride_h"], _WIDE["stride_w"])
    tiles = [_SINGLE | sizes | {"stride_h": s, "stride_w": most + 1 - s} for s in range(1, most + 1)]
    _check(tiles, random.Random(1), pause=0.0)
