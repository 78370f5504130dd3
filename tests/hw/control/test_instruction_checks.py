"""InstructionChecker: the hardware refuses exactly what the table's decoder refuses."""

import random
from typing import Any

from intloom.hw.control.instruction_checks import InstructionChecker
from intloom.hw.spec import isa
from intloom.hw.spec.isa import INSTRUCTIONS, Kind, Unit
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Cause
from tests.hw.streams import made, run

PARAMS = preset("nano")


def _mutants(rng: random.Random) -> list[int]:
    """Legal instructions, ones with any other bit, with a field near a limit or another opcode, and noise."""
    words = []
    for spec in INSTRUCTIONS:
        extra = {"version": isa.ISA_VERSION, "fingerprint": PARAMS.fingerprint()} if spec.kind is Kind.BEGIN else {}
        legal = int.from_bytes(isa.encode(isa.make(spec.kind, **extra)), "little")
        words += [legal, legal | 1 << 511, spec.opcode | rng.getrandbits(504) << 8]
        words += [legal ^ 1 << bit for bit in range(isa.CHECK_LSB)]
        for field in spec.fields[1:]:
            mask = (1 << field.width) - 1
            values = {0, field.minimum, field.maximum, field.maximum + 1, field.minimum - 1, rng.getrandbits(9)}
            if field.low is not None or field.high is not None:
                # Each bit alone, and the upper limit with each bit changed.
                values |= {value for bit in range(field.width) for value in (1 << bit, field.maximum ^ 1 << bit)}
            for value in values:
                at = spec.offsets[field.name]
                words.append(legal & ~(mask << at) | (value & mask) << at)
    return words + [rng.getrandbits(512) for _ in range(40)] + list(range(256))


def test_it_agrees_with_the_decoder(seed: int) -> None:
    checker = made(InstructionChecker, PARAMS)
    causes = set()

    async def compare(ctx: Any) -> None:
        for word in _mutants(random.Random(seed)):
            ctx.set(checker.instruction, word)
            await ctx.tick().repeat(InstructionChecker.LATENCY)
            result = ctx.get(checker.result)
            expected = InstructionChecker.model(word.to_bytes(isa.INSTRUCTION_BYTES, "little"), PARAMS)
            causes.add(expected[0])
            assert (Cause(result.cause), Unit(result.unit)) == expected, f"instruction {word:#x}"
            kind = isa.BY_OPCODE[word & 0xFF].kind if word & 0xFF in isa.BY_OPCODE else None
            assert (result.begin, result.end) == (kind is Kind.BEGIN, kind is Kind.END)

    run(checker, compare)
    assert causes == {Cause.NONE, Cause.BAD_OPCODE, Cause.BAD_FIELD, Cause.WRONG_PROGRAM}
