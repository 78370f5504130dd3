"""Constant sets: a set is free until it is loaded, and again when it is released."""

import random
from itertools import combinations
from typing import Any

from intloom.hw.mac.weights.constant_sets import ConstantSets
from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.spec.formats import TABLE_BYTES
from tests.hw.streams import made, run

CYCLES = 1000
_LAST_TABLE = (ConstantKind.TABLE, TABLE_BYTES - 1)
_LAST_RESIDUAL = (ConstantKind.RESIDUAL, 3)


def _write(rng: random.Random) -> tuple[ConstantKind, int]:
    """A last element, or one that differs in its kind, or in its index by a bit."""
    kind, index = rng.choice((_LAST_TABLE, _LAST_RESIDUAL))
    if rng.random() < 0.7:
        kind, index = rng.choice(((rng.choice(list(ConstantKind)), index), (kind, index ^ 1 << rng.randrange(8))))
    return kind, index & 3 if kind == ConstantKind.RESIDUAL else index


def test_a_set_is_in_use_from_its_load_to_its_release(rng: random.Random) -> None:
    """All events in any order and any two at once, except that a set is written only while it is free."""
    sets = made(ConstantSets)
    met: set[tuple[str, str]] = set()

    async def bench(ctx: Any) -> None:
        channels = released = tables = switched = residual = 0
        for _ in range(CYCLES):
            outputs = {
                "channels_free": ConstantSets.model(channels, released),
                "channel_set": channels % 2,
                "table_free": tables <= switched,
                "table_set": (tables + 1) % 2,
                "residual_free": not residual,
            }
            assert {name: ctx.get(getattr(sets, name)) for name in outputs} == outputs
            write = _write(rng)
            if (write == _LAST_TABLE and tables > switched) or (write == _LAST_RESIDUAL and residual):
                write = ConstantKind.NONE, write[1]
            events = {
                "channels_loaded": outputs["channels_free"] and rng.random() < 0.5,
                "channels_released": channels > released and rng.random() < 0.4,
                # The switch to a table may precede the last byte of its load.
                "table_switched": switched <= tables and rng.random() < 0.2,
                "residual_activated": rng.random() < 0.2,
            }
            ctx.set(sets.write.kind, write[0])
            ctx.set(sets.write.index, write[1])
            for name, event in events.items():
                ctx.set(getattr(sets, name), event)
            events |= {"table": write == _LAST_TABLE, "residual": write == _LAST_RESIDUAL}
            met.update(combinations((name for name, event in events.items() if event), 2))
            channels, released = channels + events["channels_loaded"], released + events["channels_released"]
            tables, switched = tables + events["table"], switched + events["table_switched"]
            residual = events["residual"] or (residual and not events["residual_activated"])
            await ctx.tick()

    run(sets, bench)
    # Of the 15 pairs, all but two last elements.
    assert len(met) == 14
