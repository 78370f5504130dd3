"""Instruction decoder: each legal instruction yields its descriptors, and illegal ones stop there."""

import random
from typing import Any

import pytest
from amaranth.lib import data

from intloom.hw.mac.issue.decoder import InstructionDecoder
from intloom.hw.mac.issue.descriptors import PIXEL_DESCRIPTOR, READOUT_DESCRIPTOR, WEIGHT_DESCRIPTOR, WRITE_DESCRIPTOR
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, INSTRUCTION_BYTES, Instruction, Kind, encode, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.random_programs.values import any_fields
from tests.hw.streams import made, run, sink

NANO = preset("nano")
SHAPES = {
    "nano": NANO,
    "tall": NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, weight_sums=False),
    "base": preset("base"),
    "deep": NANO.replace(rows=32, cols=4, axi_data_bits=256, weight_kib=128),
}
LAYOUTS = {
    "weight": WEIGHT_DESCRIPTOR,
    "pixel": PIXEL_DESCRIPTOR,
    "readout": READOUT_DESCRIPTOR,
    "write": WRITE_DESCRIPTOR,
}

_BLOCKS_BITS = BY_KIND[Kind.CONV].field("out_blocks").width


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
                ctx.set(decoder.instruction, rng.getrandbits(8 * INSTRUCTION_BYTES))
                assert not ctx.get(decoder.illegal)
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


def _refused(params: HardwareParams, conv: Instruction, index: int, rng: random.Random) -> int | None:
    """Cycles from the offer of an instruction until it is refused; then it stays so and yields nothing."""
    decoder = made(InstructionDecoder, params)
    refused: list[bool] = []

    async def control(ctx: Any) -> None:
        for valid in [0] * 4 + [1] * 12:
            ctx.set(decoder.run, 1)
            ctx.set(decoder.valid, valid)
            ctx.set(decoder.index, index)
            bits = int.from_bytes(encode(conv), "little")
            ctx.set(decoder.instruction, bits if valid else rng.getrandbits(8 * INSTRUCTION_BYTES))
            refused.append(bool(ctx.get(decoder.illegal)))
            if refused[-1]:
                assert ctx.get(decoder.illegal_index) == index
                assert not any(ctx.get(getattr(decoder, part).valid) for part in LAYOUTS)
                for signal in (decoder.run, decoder.valid):
                    ctx.set(signal, 0)
                    assert not ctx.get(decoder.illegal)
                    ctx.set(signal, 1)
            assert not (any(refused) and ctx.get(decoder.ready))
            await ctx.tick()

    run(decoder, control)
    cycles = refused[4:].index(True) if any(refused) else None
    assert cycles is None or refused == [False] * (4 + cycles) + [True] * (12 - cycles)
    return cycles


@pytest.mark.parametrize("name", SHAPES)
def test_an_illegal_instruction_yields_no_descriptors(name: str, rng: random.Random) -> None:
    """A lane that is not the first of a group."""
    params = SHAPES[name]
    for lane in range(1 << BY_KIND[Kind.CONV].field("out_lane").width):
        conv, index = _conv(rng, params).with_fields(out_lane=lane), rng.getrandbits(COUNT_BITS)
        legal = lane in range(0, params.rows, params.lanes)
        assert _refused(params, conv, index, rng) == (None if legal else 2), lane


@pytest.mark.parametrize(
    ("fields", "more", "cycles"),
    [({}, 0, None), ({}, 1, 3), *(({"out_blocks": 1 | 1 << bit}, 0, 2) for bit in range(1, _BLOCKS_BITS))],
)
def test_a_continuing_instruction_has_one_strip(
    fields: dict[str, int], more: int, cycles: int | None, rng: random.Random
) -> None:
    """A pixel more than a strip has is illegal; sums of several blocks do not continue."""
    params = SHAPES["base"]
    conv = make(Kind.CONV, **fields, continue_sums=1, out_h=1, out_w=params.strip + more)
    assert _refused(params, conv, 0, rng) == cycles
