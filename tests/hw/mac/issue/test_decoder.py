"""Instruction decoder: each legal instruction yields its descriptors, and illegal ones stop there."""

import random
from typing import Any

import pytest
from amaranth.lib import data

from intloom.hw.mac.issue.decoder import InstructionDecoder
from intloom.hw.mac.issue.descriptors import PIXEL_DESCRIPTOR, READOUT_DESCRIPTOR, WEIGHT_DESCRIPTOR, WRITE_DESCRIPTOR
from intloom.hw.spec.isa import Instruction, Kind, encode, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.random_programs.values import any_fields
from tests.hw.streams import made, run, sink

NANO = preset("nano")
SHAPES = {
    "nano": NANO,
    "tall": NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, weight_sums=False),
    "base": preset("base"),
}
LAYOUTS = {
    "weight": WEIGHT_DESCRIPTOR,
    "pixel": PIXEL_DESCRIPTOR,
    "readout": READOUT_DESCRIPTOR,
    "write": WRITE_DESCRIPTOR,
}


def _conv(rng: random.Random, params: HardwareParams) -> Instruction:
    fields = any_fields(rng, Kind.CONV, params)
    fields["out_lane"] = rng.randrange(0, params.rows, params.lanes)
    if fields["continue_sums"]:
        fields |= {"out_h": 1, "out_w": rng.randint(1, params.strip), "out_blocks": 1}
    return make(Kind.CONV, **fields)


def _bits(layout: data.StructLayout, descriptor: dict[str, int]) -> int:
    return layout.const(descriptor).as_value().value


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_each_part_gets_its_descriptor(name: str, rate: float, rng: random.Random) -> None:
    params = SHAPES[name]
    decoder = made(InstructionDecoder, params)
    program = [_conv(rng, params) for _ in range(30)]
    taken: dict[str, list[int]] = {part: [] for part in LAYOUTS}

    async def control(ctx: Any) -> None:
        for index, conv in enumerate(program):
            while rng.random() >= rate:
                await ctx.tick()
            ctx.set(decoder.valid, 1)
            ctx.set(decoder.instruction, int.from_bytes(encode(conv), "little"))
            ctx.set(decoder.index, index)
            ready, before = 0, False
            while not ready:
                running = rng.random() < (1 + rate) / 2
                ctx.set(decoder.run, running)
                assert not ctx.get(decoder.illegal)
                ready = ctx.get(decoder.ready)
                assert before or not ready
                before = running
                await ctx.tick()
            ctx.set(decoder.valid, 0)

    sinks = [sink(getattr(decoder, part), taken[part], len(program), rng, rate) for part in LAYOUTS]
    # The sinks come first: what they take decides whether the decoder is ready in the same cycle.
    run(decoder, *sinks, control)
    for part, layout in LAYOUTS.items():
        assert taken[part] == [
            _bits(layout, InstructionDecoder.model(conv, index, params)[part]) for index, conv in enumerate(program)
        ], part


def test_descriptors_have_the_stated_latency(rng: random.Random) -> None:
    decoder = made(InstructionDecoder, NANO)

    async def control(ctx: Any) -> None:
        for index in range(5):
            ctx.set(decoder.run, 1)
            ctx.set(decoder.valid, 1)
            ctx.set(decoder.index, index)
            ctx.set(decoder.instruction, int.from_bytes(encode(_conv(rng, NANO)), "little"))
            for _ in range(InstructionDecoder.LATENCY):
                assert not any(ctx.get(getattr(decoder, part).valid) for part in LAYOUTS)
                await ctx.tick()
            assert all(ctx.get(getattr(decoder, part).valid) for part in LAYOUTS)
            ctx.set(decoder.valid, 0)
            for ready in (1, 0):
                for part in LAYOUTS:
                    ctx.set(getattr(decoder, part).ready, ready)
                await ctx.tick()

    run(decoder, control)


@pytest.mark.parametrize(("lane", "index"), [(1, 0x55555), (8, 0xAAAAA)])
def test_an_illegal_instruction_yields_no_descriptors(lane: int, index: int, rng: random.Random) -> None:
    params = SHAPES["tall"]
    decoder = made(InstructionDecoder, params)
    bits = int.from_bytes(encode(_conv(rng, params).with_fields(out_lane=lane)), "little")

    async def control(ctx: Any) -> None:
        ctx.set(decoder.run, 1)
        ctx.set(decoder.valid, 1)
        ctx.set(decoder.index, index)
        ctx.set(decoder.instruction, bits)
        for part in LAYOUTS:
            ctx.set(getattr(decoder, part).ready, 1)
        cycles = 0
        while not ctx.get(decoder.illegal):
            await ctx.tick()
            cycles += 1
        assert cycles < 5
        assert ctx.get(decoder.illegal_index) == index
        for _ in range(10):
            assert not ctx.get(decoder.ready)
            assert not any(ctx.get(getattr(decoder, part).valid) for part in LAYOUTS)
            await ctx.tick()

    run(decoder, control)


@pytest.mark.parametrize(
    ("fields", "more"),
    [({}, 0), ({}, 1), ({"out_blocks": 2}, 0)],
)
def test_a_continuing_instruction_has_one_strip(fields: dict[str, int], more: int) -> None:
    """A pixel more than a strip has is illegal; sums of several blocks do not continue."""
    params = SHAPES["base"]
    decoder = made(InstructionDecoder, params)
    conv = make(Kind.CONV, **fields, continue_sums=1, out_h=1, out_w=params.strip + more)

    async def control(ctx: Any) -> None:
        ctx.set(decoder.run, 1)
        ctx.set(decoder.valid, 1)
        ctx.set(decoder.instruction, int.from_bytes(encode(conv), "little"))
        illegal = False
        for _ in range(5):
            illegal |= bool(ctx.get(decoder.illegal))
            await ctx.tick()
        assert illegal == (bool(more) or bool(fields))

    run(decoder, control)
