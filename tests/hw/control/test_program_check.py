"""ProgramCheck: the CRC in hardware finds what its model finds, for all word widths."""

import random
from typing import Any

import pytest

from intloom.hw.control.program_check import ProgramCheck
from intloom.hw.spec.fields import CHECK_LSB
from intloom.hw.spec.isa import BY_KIND, INSTRUCTION_BITS, INSTRUCTION_BYTES, INSTRUCTIONS, Kind, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.program_check import CRC_BITS, INITIAL, POLYNOMIAL, add_check, check_bits, crc_of
from tests.hw.streams import made, run

PAYLOAD = (1 << CHECK_LSB) - 1
"""An instruction without its check bits."""


def _program(rng: random.Random, change: int | None) -> list[bytes]:
    """Instructions with random bits in all fields and END; one bit is changed."""
    specs = [rng.choice(INSTRUCTIONS[2:]) for _ in range(5)]
    fields = [{f.name: rng.randint(f.minimum, f.maximum) for f in s.fields[1:]} for s in specs]
    codes = [encode(make(s.kind, **f)) for s, f in zip(specs, fields, strict=True)] + [encode(make(Kind.END))]
    word = int.from_bytes(add_check(codes), "little") ^ (0 if change is None else 1 << change)
    program = word.to_bytes(INSTRUCTION_BYTES * len(codes), "little")
    return [program[at : at + INSTRUCTION_BYTES] for at in range(0, len(program), INSTRUCTION_BYTES)]


def _mismatches(name: str, program: list[bytes], rng: random.Random) -> list[bool]:
    check = made(ProgramCheck, preset(name))
    size, found = preset(name).word_bytes, []

    async def feed(ctx: Any) -> None:
        for code in program:
            ctx.set(check.end, code[0] == BY_KIND[Kind.END].opcode)
            for at in range(0, INSTRUCTION_BYTES, size):
                if rng.random() < 0.3:
                    ctx.set(check.valid, 0)
                    await ctx.tick().repeat(rng.randint(1, 3))
                ctx.set(check.word, int.from_bytes(code[at : at + size], "little"))
                ctx.set(check.last, at + size == INSTRUCTION_BYTES)
                ctx.set(check.valid, 1)
                await ctx.tick()
            ctx.set(check.valid, 0)
            await ctx.tick().repeat(ProgramCheck.LATENCY - 1)
            found.append(bool(ctx.get(check.mismatch)))

    run(check, feed)
    return found


@pytest.mark.parametrize("name", ["nano", "small", "base", "large"])
def test_it_agrees_with_its_model(name: str, rng: random.Random) -> None:
    assert _mismatches(name, _program(rng, None), rng) == [False] * 6
    # The highest bits of an instruction and of END's CRC, and others.
    crc = BY_KIND[Kind.END].offsets["crc"]
    edges = [0, 505, 506, 511, 5 * INSTRUCTION_BITS + crc, 5 * INSTRUCTION_BITS + crc + 31, 6 * INSTRUCTION_BITS - 1]
    for change in [*edges, *(rng.randrange(6 * INSTRUCTION_BITS) for _ in range(5))]:
        program = _program(rng, change)
        found = _mismatches(name, program, rng)
        assert found == ProgramCheck.model(program)
        assert found.index(True) == change // INSTRUCTION_BITS


def _before_zeros(crc: int, bits: int) -> int:
    """The CRC that so many zeros turn into this one."""
    for _ in range(bits):
        top = crc >> CRC_BITS - 1
        crc = (crc ^ top * POLYNOMIAL) << 1 | top
    return crc


def test_the_crc_of_end_is_checked_beside_its_check_bits(rng: random.Random) -> None:
    """An END whose check bits agree with a CRC other than 0 behind it: each bit alone."""
    *before, end = _program(rng, None)
    crc = INITIAL
    for code in before:
        crc = crc_of((int.from_bytes(code, "little") & PAYLOAD).to_bytes(INSTRUCTION_BYTES, "little"), crc)
    at = BY_KIND[Kind.END].offsets["crc"]
    for field in (0, *(_before_zeros(1 << bit, INSTRUCTION_BITS - at) for bit in range(CRC_BITS))):
        word = int.from_bytes(end, "little") & PAYLOAD ^ field << at
        altered = word | check_bits(crc_of(word.to_bytes(INSTRUCTION_BYTES, "little"), crc)) << CHECK_LSB
        program = [*before, altered.to_bytes(INSTRUCTION_BYTES, "little")]
        assert ProgramCheck.model(program) == [*[False] * len(before), bool(field)]
        assert _mismatches("large", program, rng) == ProgramCheck.model(program)
