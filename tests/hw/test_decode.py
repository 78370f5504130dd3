"""The RTL instruction layout against the encoder, and the field check against the table's limits."""

import random

import pytest
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from intloom.hw.decode import bad_fields, instruction_layout
from intloom.hw.spec.isa import BY_KIND, INSTRUCTION_BITS, INSTRUCTIONS, Field, Kind, encode, make


def _legal(rng: random.Random, field: Field) -> int:
    return rng.choice((field.minimum, field.maximum, rng.randint(field.minimum, field.maximum)))


def _evaluate(kind: Kind, words: list[int]) -> list[int]:
    """`bad_fields` of each encoded word."""
    word = Signal(INSTRUCTION_BITS)
    bad = Signal()
    m = Module()
    m.d.comb += bad.eq(bad_fields(kind, data.View(instruction_layout(kind), word)))
    results: list[int] = []

    async def bench(ctx):  # type: ignore[no-untyped-def]  # Amaranth does not export the context's type
        for value in words:
            ctx.set(word, value)
            results.append(ctx.get(bad))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return results


@pytest.mark.parametrize("kind", list(Kind))
def test_layout_reads_what_the_encoder_wrote(kind: Kind) -> None:
    rng = random.Random(str(kind))
    layout = instruction_layout(kind)
    assert layout.size == INSTRUCTION_BITS
    for _ in range(20):
        instruction = make(kind, **{f.name: _legal(rng, f) for f in BY_KIND[kind].fields[1:]})
        view = data.Const(layout, int.from_bytes(encode(instruction), "little"))
        for f in BY_KIND[kind].fields:
            value = view[f.name]
            assert (value.value if isinstance(value, Const) else value) == instruction[f.name], f.name


@pytest.mark.parametrize("kind", [s.kind for s in INSTRUCTIONS if s.body])
def test_only_values_outside_the_limits_are_bad(kind: Kind) -> None:
    spec = BY_KIND[kind]
    rng = random.Random(f"limits {kind}")
    legal = int.from_bytes(encode(make(kind)), "little")
    words, expected = [legal], [0]
    for f in spec.fields[1:]:
        mask = (1 << f.width) - 1
        for raw in {
            0,
            1,
            mask,
            mask >> 1,
            f.minimum & mask,
            f.maximum & mask,
            (f.maximum + 1) & mask,
            rng.getrandbits(f.width),
        }:
            value = raw - (mask + 1) if f.signed and raw > mask >> 1 else raw
            words.append((legal & ~(mask << spec.offsets[f.name])) | raw << spec.offsets[f.name])
            expected.append(int(not f.minimum <= value <= f.maximum))
    assert (1 in expected) == any(f.low is not None or f.high is not None for f in spec.fields[1:])
    assert _evaluate(kind, words) == expected
