"""Slicer: words are split into slices or bytes; groups of bytes are joined to slices."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.vector.slicer import Slicer, collect_groups
from tests.hw.streams import made, run
from tests.hw.vector.slices import WIDTHS, idle_cycles, to_bytes, to_int, with_lanes


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("mode", ["slices", "bytes", "groups"])
def test_words_are_cut_into_slices_bytes_or_groups(lanes: int, mode: str, rng: random.Random) -> None:
    params = with_lanes(lanes)
    slicer, bytewise = made(Slicer, params), mode != "slices"
    size = params.softmax_lanes if mode == "groups" else 1
    words = [(rng.randbytes(8), rng.randbytes(8), rng.randrange(4)) for _ in range(40)]
    steps: list[int] = []
    slices: list[tuple[bytes, bytes, int, int]] = []
    single: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(slicer.bytewise, bytewise)
        ctx.set(slicer.grouped, mode == "groups")
        for a, b, tap in words:
            ctx.set(slicer.a, to_int(a))
            ctx.set(slicer.b, to_int(b))
            ctx.set(slicer.tap.first, tap & 1)
            ctx.set(slicer.tap.last, tap >> 1)
            done, cycles = False, 0
            while not done:
                await idle_cycles(ctx, rng, slicer.words_valid)
                done, cycles = bool(ctx.get(slicer.step)), cycles + 1
                await ctx.tick()
                if ctx.get(slicer.valid):
                    parts = [to_bytes(ctx.get(part), lanes) for part in (slicer.slice_a, slicer.slice_b)]
                    position = ctx.get(slicer.slice_tap.first) | ctx.get(slicer.slice_tap.last) << 1
                    slices.append((*parts, ctx.get(slicer.index), position))
                if ctx.get(slicer.byte_valid):
                    assert ctx.get(slicer.byte_position) == len(single) % 8
                    group = to_bytes(ctx.get(slicer.group), params.softmax_lanes)
                    single.extend(group if mode == "groups" else [ctx.get(slicer.byte)])
            steps.append(cycles)

    async def watch(ctx: Any) -> None:
        """What comes out in the cycle after an input, and after its absence."""
        before = 0
        ports = (slicer.words_valid, slicer.valid, slicer.byte_valid)
        async for *_, offered, valid, byte_valid in ctx.tick().sample(*ports):
            assert (valid, byte_valid) == (before & (not bytewise), before & bytewise)
            before = offered

    run(slicer, bench, background=[watch])
    if bytewise:
        assert bytes(single) == b"".join(a for a, _, _ in words)
        assert not slices
        assert set(steps) == {8 // size}
    else:
        cut = [zip(Slicer.model(a, lanes), Slicer.model(b, lanes), strict=True) for a, b, _ in words]
        assert slices == [
            (*pair, index, tap)
            for pairs, (_, _, tap) in zip(cut, words, strict=True)
            for index, pair in enumerate(pairs)
        ]
        assert not single
        assert set(steps) == {8 // lanes}


class _Groups(wiring.Component):
    """`collect_groups` with ports."""

    def __init__(self, groups: int) -> None:
        super().__init__({"valid": In(1), "group": In(8), "result_valid": Out(1), "result": Out(8 * groups)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        collect_groups(m, self.valid, self.group, self.result_valid, self.result)
        return m


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_are_joined_and_a_soft_reset_begins_a_new_slice(groups: int, rng: random.Random) -> None:
    dut, reset = _Groups(groups), Signal()
    taken, expected, results = list[int](), list[int](), list[int]()

    async def bench(ctx: Any) -> None:
        for _ in range(400):
            begins_again, valid, group = rng.random() < 0.1, rng.random() < 0.7, rng.getrandbits(8)
            for signal, value in ((reset, begins_again), (dut.valid, valid), (dut.group, group)):
                ctx.set(signal, value)
            if begins_again:
                taken.clear()
            elif valid:
                taken.append(group)
            if len(taken) == groups:
                expected.append(int.from_bytes(bytes(taken), "little"))
                taken.clear()
            await ctx.tick()
            if ctx.get(dut.result_valid):
                results.append(ctx.get(dut.result))

    run(ResetInserter(reset)(dut), bench)
    assert results == expected
    assert len(results) > 40
