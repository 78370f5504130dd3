"""Components of the vector datapath, each against its model, with gaps between slices."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from intloom.hw.spec.arith import Affine
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.vector.byte_table import ByteTable
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.operand_stage import OperandStage
from intloom.hw.vector.pool import SLIDE_TAPS, SUM_BITS, Pool
from intloom.hw.vector.slicer import Slicer
from intloom.hw.vector.word_assembler import WordAssembler
from tests.hw.streams import run

SMALL = preset("small")
WIDTHS = [8, 2, 1]


def _params(lanes: int) -> HardwareParams:
    return SMALL.replace(vector_lanes=lanes)


def _bytes(number: int, count: int) -> bytes:
    return number.to_bytes(count, "little")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _int8(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


async def _gaps(ctx: Any, rng: random.Random, valid: Any) -> None:
    """A random number of idle cycles."""
    ctx.set(valid, 0)
    while rng.random() < 0.3:
        await ctx.tick()
    ctx.set(valid, 1)


def _collect(valid: Any, value: Any, found: list[Any]) -> Callable[[Any], Any]:
    """Record `value` in every cycle in which it is valid."""

    async def watch(ctx: Any) -> None:
        async for *_, is_valid, now in ctx.tick().sample(valid, value):
            if is_valid:
                found.append(now)

    return watch


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("bytewise", [False, True])
def test_words_are_cut_into_slices_or_bytes(lanes: int, bytewise: bool, rng: random.Random) -> None:
    slicer = Slicer(_params(lanes))
    words = [(rng.randbytes(8), rng.randbytes(8), rng.randrange(4)) for _ in range(40)]
    steps: list[int] = []
    slices: list[tuple[bytes, bytes, int, int]] = []
    single: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(slicer.bytewise, bytewise)
        for a, b, tap in words:
            ctx.set(slicer.a, _number(a))
            ctx.set(slicer.b, _number(b))
            ctx.set(slicer.tap.first, tap & 1)
            ctx.set(slicer.tap.last, tap >> 1)
            done, cycles = False, 0
            while not done:
                await _gaps(ctx, rng, slicer.words_valid)
                done, cycles = bool(ctx.get(slicer.step)), cycles + 1
                await ctx.tick()
                if ctx.get(slicer.valid):
                    parts = [_bytes(ctx.get(part), lanes) for part in (slicer.slice_a, slicer.slice_b)]
                    position = ctx.get(slicer.slice_tap.first) | ctx.get(slicer.slice_tap.last) << 1
                    slices.append((*parts, ctx.get(slicer.index), position))
                if ctx.get(slicer.byte_valid):
                    single.append(ctx.get(slicer.byte))
            steps.append(cycles)

    run(slicer, bench)
    if bytewise:
        assert bytes(single) == b"".join(a for a, _, _ in words)
        assert not slices
        assert set(steps) == {8}
    else:
        cut = [zip(Slicer.model(a, lanes), Slicer.model(b, lanes), strict=True) for a, b, _ in words]
        assert slices == [
            (*pair, index, tap)
            for pairs, (_, _, tap) in zip(cut, words, strict=True)
            for index, pair in enumerate(pairs)
        ]
        assert not single
        assert set(steps) == {8 // lanes}


def _windows(rng: random.Random, slide: bool, taps: int) -> list[tuple[bytes, bool, bool]]:
    """Words with their position in a window; of sliding windows, lines of words."""
    words = []
    for _ in range(12):
        count = rng.randint(taps, taps + 6) if slide else rng.randint(1, 9)
        for k in range(count):
            last = k >= taps - 1 if slide else k == count - 1
            words.append((rng.randbytes(8), k == 0, last))
    return words


def _pooled(words: list[tuple[bytes, bool, bool]], lanes: int, slide: bool, taps: int) -> list[tuple[int, ...]]:
    """Maxima and sums of all complete windows, slice by slice; sums of sliding windows are not compared."""
    expected: list[tuple[int, ...]] = []
    seen: list[bytes] = []
    for word, first, last in words:
        seen = [*([] if first else seen), word]
        maxima, sums = Pool.model(seen[-taps:] if slide else seen)
        if last:
            expected += [
                (*maxima[at : at + lanes], *(() if slide else sums[at : at + lanes])) for at in range(0, 8, lanes)
            ]
    return expected


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("slide", [False, True])
def test_windows_are_reduced(lanes: int, slide: bool, rng: random.Random) -> None:
    for taps in range(2, SLIDE_TAPS + 1) if slide else (1,):
        pool = Pool(_params(lanes))
        words = _windows(rng, slide, taps)
        found: list[tuple[int, ...]] = []

        async def bench(ctx: Any, pool: Pool = pool, words: Any = words, taps: int = taps, found: Any = found) -> None:
            ctx.set(pool.slide, slide)
            ctx.set(pool.link, taps - 1)
            for word, first, last in words:
                for index, part in enumerate(Slicer.model(word, lanes)):
                    await _gaps(ctx, rng, pool.valid)
                    ctx.set(pool.index, index)
                    ctx.set(pool.part, _number(part))
                    ctx.set(pool.tap.first, first)
                    ctx.set(pool.tap.last, last)
                    await ctx.tick()
                    assert ctx.get(pool.result_valid) == last
                    if last:
                        sums = () if slide else tuple(ctx.get(pool.total[k]) for k in range(lanes))
                        found.append((*(ctx.get(pool.maximum[k]) for k in range(lanes)), *sums))

        run(pool, bench)
        assert found == _pooled(words, lanes, slide, taps)


@pytest.mark.parametrize("lanes", [2, 1])
@pytest.mark.parametrize("kind", ["bytes", "product", "sum"])
def test_operands_follow_their_model(lanes: int, kind: str, rng: random.Random) -> None:
    operands = OperandStage(_params(lanes))
    zeros = (rng.randint(-128, 127), rng.randint(-128, 127)) if kind == "product" else (0, 0)
    found: list[tuple[int, int]] = []
    expected: list[tuple[int, int]] = []
    edges = (-128, -1, 0, 127)

    async def bench(ctx: Any) -> None:
        ctx.set(operands.zp_a, zeros[0])
        ctx.set(operands.zp_b, zeros[1])
        ctx.set(operands.multiply, kind == "product")
        ctx.set(operands.average, kind == "sum")
        for _ in range(60):
            await _gaps(ctx, rng, operands.valid)
            for lane in range(lanes):
                a, b = (rng.choice((*edges, rng.randint(-128, 127))) for _ in range(2))
                total = rng.randrange(-(1 << (SUM_BITS - 1)), 1 << (SUM_BITS - 1))
                for name, value in (("a", a), ("b", b), ("total", total)):
                    ctx.set(getattr(operands, name)[lane], value)
                expected.append(OperandStage.model(a, b, total, *zeros, kind == "product", kind == "sum"))
            await ctx.tick()
        ctx.set(operands.valid, 0)
        await ctx.tick().repeat(OperandStage.LATENCY + 1)

    async def watch(ctx: Any) -> None:
        async for *_, valid, x1, x2 in ctx.tick().sample(operands.result_valid, operands.x1, operands.x2):
            if valid:
                found.extend((x1[lane], x2[lane]) for lane in range(lanes))

    run(operands, bench, background=[watch])
    assert found == expected


@pytest.mark.parametrize("lanes", [*WIDTHS, 4])
@pytest.mark.parametrize("use", [False, True])
def test_bytes_are_looked_up(lanes: int, use: bool, rng: random.Random) -> None:
    table = ByteTable(_params(lanes))
    found: list[int] = []
    expected: list[bytes] = []

    async def bench(ctx: Any) -> None:
        for _ in range(2):
            content = rng.randbytes(256)
            for index, byte in enumerate(content):
                await _gaps(ctx, rng, table.write_en)
                ctx.set(table.write_index, index)
                ctx.set(table.write_byte, byte)
                await ctx.tick()
            ctx.set(table.write_en, 0)
            ctx.set(table.use, use)
            for _ in range(60):
                await _gaps(ctx, rng, table.valid)
                part = rng.randbytes(lanes)
                ctx.set(table.part, _number(part))
                expected.append(ByteTable.model(part, content, use))
                await ctx.tick()
            ctx.set(table.valid, 0)
            await ctx.tick().repeat(ByteTable.LATENCY + 1)

    run(table, bench, background=[_collect(table.result_valid, table.result, found)])
    assert [_bytes(number, lanes) for number in found] == expected


@pytest.mark.parametrize("lanes", WIDTHS)
def test_words_are_assembled_rotated(lanes: int, rng: random.Random) -> None:
    for amount in range(8):
        assembler = WordAssembler(_params(lanes))
        words = [rng.randbytes(8) for _ in range(12)]
        found: list[int] = []

        async def bench(
            ctx: Any, assembler: WordAssembler = assembler, words: Any = words, amount: int = amount
        ) -> None:
            ctx.set(assembler.amount, amount)
            await ctx.tick()
            for word in words:
                for part in Slicer.model(word, lanes):
                    await _gaps(ctx, rng, assembler.valid)
                    ctx.set(assembler.part, _number(part))
                    await ctx.tick()
            ctx.set(assembler.valid, 0)
            await ctx.tick().repeat(WordAssembler.LATENCY + 1)

        run(assembler, bench, background=[_collect(assembler.result_valid, assembler.result, found)])
        assert [_bytes(n, 8) for n in found] == [WordAssembler.model(word, amount) for word in words]


@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_datapath_chains_its_stages(lanes: int, rng: random.Random) -> None:
    datapath = Datapath(_params(lanes))
    affine = Affine(m1=rng.randint(-90, 90), m2=rng.randint(-90, 90), c=rng.randint(-9000, 9000), shift=6, even=True)
    content, amount = rng.randbytes(256), rng.randrange(8)
    pairs = [(rng.randbytes(8), rng.randbytes(8)) for _ in range(20)]
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        for name in ("m1", "m2", "c", "shift", "even"):
            ctx.set(datapath.operation[name], getattr(affine, name))
        ctx.set(datapath.operation.rotate, amount)
        ctx.set(datapath.operation.table, 1)
        ctx.set(datapath.table_en, 1)
        for index, byte in enumerate(content):
            ctx.set(datapath.table_index, index)
            ctx.set(datapath.table_byte, byte)
            await ctx.tick()
        ctx.set(datapath.table_en, 0)
        for a, b in pairs:
            for parts in zip(Slicer.model(a, lanes), Slicer.model(b, lanes), strict=True):
                await _gaps(ctx, rng, datapath.valid)
                for lane in range(lanes):
                    ctx.set(datapath.a[lane], _int8(parts[0][lane]))
                    ctx.set(datapath.b[lane], _int8(parts[1][lane]))
                await ctx.tick()
        ctx.set(datapath.valid, 0)
        await ctx.tick().repeat(Datapath.LATENCY)

    run(datapath, bench, background=[_collect(datapath.result_valid, datapath.result, found)])
    assert [_bytes(n, 8) for n in found] == [Datapath.model(a, b, affine, content, amount) for a, b in pairs]
