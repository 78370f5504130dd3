"""Byte table: slices are looked up or passed."""

import random
from typing import Any

import pytest

from intloom.hw.vector.byte_table import ByteTable
from tests.hw.idle import check_idle
from tests.hw.streams import made, run
from tests.hw.vector.slices import WIDTHS, idle_cycles, record, to_bytes, to_int, with_lanes


@pytest.mark.parametrize("lanes", [*WIDTHS, 4])
@pytest.mark.parametrize("use", [False, True])
def test_bytes_are_looked_up(lanes: int, use: bool, rng: random.Random) -> None:
    table = made(ByteTable, with_lanes(lanes))
    found: list[int] = []
    expected: list[bytes] = []

    async def bench(ctx: Any) -> None:
        for _ in range(2):
            content = rng.randbytes(256)
            for index, byte in enumerate(content):
                await idle_cycles(ctx, rng, table.write_en)
                ctx.set(table.write_index, index)
                ctx.set(table.write_byte, byte)
                await ctx.tick()
            ctx.set(table.write_en, 0)
            ctx.set(table.use, use)
            for _ in range(60):
                await idle_cycles(ctx, rng, table.valid)
                part = rng.randbytes(lanes)
                ctx.set(table.part, to_int(part))
                expected.append(ByteTable.model(part, content, use))
                await ctx.tick()
            ctx.set(table.valid, 0)
            await ctx.tick().repeat(ByteTable.LATENCY + 1)

    run(table, bench, background=[record(table.result_valid, table.result, found)])
    assert [to_bytes(number, lanes) for number in found] == expected


def test_registers_keep_their_values_without_work(rng: random.Random) -> None:
    check_idle(ByteTable(with_lanes(max(WIDTHS))), rng, "valid")
