"""Table lookup: bytes are looked up in both sets or bypass it, and results hold until the next."""

import random
from typing import Any

import pytest

from intloom.hw.mac.epilogue.table_lookup import TableLookup
from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.params import preset
from tests.hw.idle import check_idle
from tests.hw.mac.constants import write_constant
from tests.hw.streams import made, run

NANO = preset("nano")


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_bytes_are_looked_up_in_both_sets_or_passed(lanes: int, rng: random.Random) -> None:
    lookup = made(TableLookup, NANO.replace(lanes=lanes))
    tables = [rng.randbytes(TABLE_BYTES) for _ in range(2)]
    items: list[tuple[bytes, bool, int] | None] = [
        (rng.randbytes(lanes), rng.random() < 0.6, rng.randrange(2)) if rng.random() < 0.8 else None for _ in range(200)
    ]

    async def bench(ctx: Any) -> None:
        for number, table in enumerate(tables):
            ctx.set(lookup.write_set, number)
            for index, byte in enumerate(table):
                await write_constant(ctx, lookup, ConstantKind.TABLE, index, byte)
        last = None
        for cycle, item in enumerate([*items, *[None] * lookup.LATENCY]):
            before = items[cycle - lookup.LATENCY] if cycle >= lookup.LATENCY else None
            if before is not None:
                values, use, number = before
                last = [TableLookup.model(value, tables[number], use) for value in values]
            assert last is None or [ctx.get(lookup.results[lane]) for lane in range(lanes)] == last
            ctx.set(lookup.valid, item is not None)
            # Without valid values the other inputs are anything.
            values, use, number = item or (rng.randbytes(lanes), rng.random() < 0.5, rng.randrange(2))
            for lane in range(lanes):
                ctx.set(lookup.values[lane], values[lane])
            ctx.set(lookup.use, use)
            ctx.set(lookup.read_set, number)
            # Constants of other kinds are not for the tables.
            kind = rng.choice([kind for kind in ConstantKind if kind is not ConstantKind.TABLE])
            ctx.set(lookup.write, {"kind": kind, "index": rng.getrandbits(8), "byte": rng.getrandbits(8)})
            ctx.set(lookup.write_set, rng.getrandbits(1))
            await ctx.tick()

    run(lookup, bench)


def test_registers_keep_their_values_without_work(rng: random.Random) -> None:
    check_idle(TableLookup(NANO.replace(lanes=4)), rng, "valid")
