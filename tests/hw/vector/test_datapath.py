"""Datapath: its stages in order."""

import random
from typing import Any

import pytest

from intloom.hw.affine import AffineLane
from intloom.hw.spec.arith import Affine
from intloom.hw.vector.byte_table import ByteTable
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.operand_stage import OperandStage
from intloom.hw.vector.slicer import Slicer
from intloom.hw.vector.word_assembler import WordAssembler
from tests.hw.idle import check_idle
from tests.hw.streams import made, run
from tests.hw.vector.slices import WIDTHS, as_int8, idle_cycles, record, to_bytes, with_lanes

_SHIFTS = (*range(2, 26, 3), 30, 35, 39, 43)
"""So near to each other that each bit of factors and constants decides some results."""


def _affine(rng: random.Random, shift: int) -> Affine:
    """Factors and a constant of any size with which few results are saturated."""
    most, largest = min(1 << shift, 1 << 24) - 1, min(64 << shift, 1 << 43) - 1
    m1, m2 = (rng.randint(-most, most) for _ in range(2))
    return Affine(m1=m1, m2=m2, c=rng.randint(-largest, largest), shift=shift, even=rng.random() < 0.5)


async def _load_table(ctx: Any, datapath: Datapath, content: bytes) -> None:
    ctx.set(datapath.operation.table, 1)
    ctx.set(datapath.table_en, 1)
    for index, byte in enumerate(content):
        ctx.set(datapath.table_index, index)
        ctx.set(datapath.table_byte, byte)
        await ctx.tick()
    ctx.set(datapath.table_en, 0)
    # The last write passes a register.
    await ctx.tick()


@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_datapath_chains_its_stages(lanes: int, rng: random.Random) -> None:
    datapath = made(Datapath, with_lanes(lanes))
    content = rng.randbytes(256)
    operations = [(_affine(rng, shift), rng.randrange(8)) for shift in _SHIFTS]
    pairs = [(rng.randbytes(8), rng.randbytes(8)) for _ in range(6)]
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        await _load_table(ctx, datapath, content)
        for affine, amount in operations:
            for name in ("m1", "m2", "c", "shift", "even"):
                ctx.set(datapath.operation[name], getattr(affine, name))
            ctx.set(datapath.operation.rotate, amount)
            await ctx.tick()
            for a, b in pairs:
                for parts in zip(Slicer.model(a, lanes), Slicer.model(b, lanes), strict=True):
                    await idle_cycles(ctx, rng, datapath.valid)
                    for lane in range(lanes):
                        ctx.set(datapath.a[lane], as_int8(parts[0][lane]))
                        ctx.set(datapath.b[lane], as_int8(parts[1][lane]))
                    await ctx.tick()
            ctx.set(datapath.valid, 0)
            await ctx.tick().repeat(Datapath.LATENCY + 1)

    run(datapath, bench, background=[record(datapath.result_valid, datapath.result, found)])
    expected = [Datapath.model(a, b, affine, content, amount) for affine, amount in operations for a, b in pairs]
    assert [to_bytes(n, 8) for n in found] == expected


@pytest.mark.parametrize("lanes", WIDTHS)
def test_bytes_of_other_units_pass_table_and_assembler(lanes: int, rng: random.Random) -> None:
    datapath = made(Datapath, with_lanes(lanes))
    content, amount = rng.randbytes(256), rng.randrange(8)
    words = [rng.randbytes(8) for _ in range(12)]
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        await _load_table(ctx, datapath, content)
        ctx.set(datapath.operation.rotate, amount)
        for word in words:
            for part in Slicer.model(word, lanes):
                await idle_cycles(ctx, rng, datapath.bytes_valid)
                ctx.set(datapath.bytes, int.from_bytes(part, "little"))
                await ctx.tick()
        ctx.set(datapath.bytes_valid, 0)
        await ctx.tick().repeat(Datapath.LATENCY + 1)

    run(datapath, bench, background=[record(datapath.result_valid, datapath.result, found)])
    expected = [WordAssembler.model(ByteTable.model(word, content, True), amount) for word in words]
    assert [to_bytes(n, 8) for n in found] == expected


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("function", ["multiply", "average"])
def test_products_and_sums_are_scaled_too(function: str, lanes: int, rng: random.Random) -> None:
    datapath = made(Datapath, with_lanes(lanes))
    zeros = (rng.randint(-128, 127), rng.randint(-128, 127)) if function == "multiply" else (0, 0)
    affine = Affine(
        m1=rng.randrange(1 << 22, 1 << 23), m2=rng.getrandbits(23), c=rng.getrandbits(31), shift=29, even=True
    )
    words = [[tuple(rng.randint(-128, 127) for _ in range(3)) for _ in range(8)] for _ in range(12)]
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        for name in ("m1", "m2", "c", "shift", "even"):
            ctx.set(datapath.operation[name], getattr(affine, name))
        values = {function: 1, "zp_a": zeros[0], "zp_b": zeros[1]}
        for name, value in values.items():
            ctx.set(datapath.operation[name], value)
        await ctx.tick()
        for word in words:
            for first in range(0, 8, lanes):
                await idle_cycles(ctx, rng, datapath.valid)
                for lane, (a, b, total) in enumerate(word[first : first + lanes]):
                    ctx.set(datapath.a[lane], a)
                    ctx.set(datapath.b[lane], b)
                    ctx.set(datapath.total[lane], 100 * total)
                await ctx.tick()
        ctx.set(datapath.valid, 0)
        await ctx.tick().repeat(Datapath.LATENCY + 1)

    run(datapath, bench, background=[record(datapath.result_valid, datapath.result, found)])
    expected = []
    for word in words:
        operands = (OperandStage.model(a, b, 100 * t, *zeros, function) for a, b, t in word)
        sums = bytes(AffineLane.model(x1, x2, affine) & 0xFF for x1, x2 in operands)
        expected.append(WordAssembler.model(ByteTable.model(sums, bytes(256), False), 0))
    assert len({*expected}) > 6
    assert [to_bytes(n, 8) for n in found] == expected


@pytest.mark.parametrize("lanes", WIDTHS)
def test_registers_keep_their_values_without_work(lanes: int, rng: random.Random) -> None:
    check_idle(Datapath(with_lanes(lanes)), rng, "valid", "bytes_valid", "table_en")
