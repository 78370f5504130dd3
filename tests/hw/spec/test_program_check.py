"""The program check: which changes of a program are found, where, and that they are found without exception."""

import random

import pytest

from intloom.common.errors import EncodingError
from intloom.hw.spec.isa import (
    BY_KIND,
    CHECK_BITS,
    CHECK_LSB,
    INSTRUCTION_BITS,
    INSTRUCTION_BYTES,
    INSTRUCTIONS,
    Kind,
    encode,
    make,
)
from intloom.hw.spec.program_check import CRC_BITS, INITIAL, add_check, check_bits, crc_of, remove_check, shift_bit


def _program(rng: random.Random, count: int = 12) -> list[bytes]:
    work = [s for s in INSTRUCTIONS if s.kind not in ("BEGIN", "END")]
    chosen = [rng.choice(work) for _ in range(count)]
    random_fields = ({f.name: rng.randint(f.minimum, f.maximum) for f in s.fields[1:]} for s in chosen)
    return [encode(make(s.kind, **f)) for s, f in zip(chosen, random_fields, strict=True)] + [encode(make("END"))]


def _flipped(program: bytes, *bits: int) -> bytes:
    word = int.from_bytes(program, "little")
    for bit in bits:
        word ^= 1 << bit
    return word.to_bytes(len(program), "little")


def test_the_crc_is_crc_32c() -> None:
    """The check value of the standard polynomial, which inverts the result."""
    assert crc_of(b"123456789") ^ 0xFFFFFFFF == 0xE3069283
    assert crc_of(b"\x80\x01") == _bitwise(0x0180, 16)


def _bitwise(word: int, bits: int) -> int:
    crc = INITIAL
    for number in range(bits):
        crc = shift_bit(crc, word >> number & 1)
    return crc


def test_each_changed_bit_of_an_instruction_changes_its_check_bits() -> None:
    """The CRC is linear: a changed bit has the same effect in every program, so one pass over all bits is a proof."""
    for bit in range(CHECK_LSB):
        difference = crc_of((1 << bit).to_bytes(INSTRUCTION_BYTES, "little"), 0)
        assert check_bits(difference) & 1, f"bit {bit}"


def test_crc_after_end_is_zero_and_the_rest_is_unchanged(rng: random.Random) -> None:
    codes = _program(rng)
    program = add_check(codes)
    assert remove_check(program) == codes
    *_, end = (program[at : at + INSTRUCTION_BYTES] for at in range(0, len(program), INSTRUCTION_BYTES))
    assert int.from_bytes(end, "little") >> CHECK_LSB == 0 == check_bits(0)
    assert add_check(remove_check(program)) == program


@pytest.mark.parametrize("count", [1, 2, 3])
def test_changed_bits_are_found(count: int, rng: random.Random) -> None:
    program = add_check(_program(rng, 4))
    for _ in range(300):
        bits = rng.sample(range(8 * len(program)), count)
        with pytest.raises(EncodingError, match="instruction [0-4] was altered: .* compile it again"):
            remove_check(_flipped(program, *bits))


def test_changed_bits_after_the_crc_of_end_are_found(rng: random.Random) -> None:
    """Two changed bits there can leave END's check bits right; the CRC after END is then not 0."""
    program = add_check(_program(rng, 1))
    last = 8 * len(program) - INSTRUCTION_BITS
    after = range(last + BY_KIND[Kind.END].offsets["crc"] + CRC_BITS, last + CHECK_LSB)
    for bit in after[:-8]:
        for distance in range(1, 8):
            with pytest.raises(EncodingError, match="instruction 1 was altered"):
                remove_check(_flipped(program, bit, bit + distance))


def test_an_end_of_another_opcode_is_found(rng: random.Random) -> None:
    """Its check bits are right with one of 31 other bits, and the CRC is not compared."""
    program = add_check(_program(rng, 1))
    last = 8 * len(program) - INSTRUCTION_BITS
    for bit in range(last + 8, last + CHECK_LSB):
        with pytest.raises(EncodingError, match="instruction 1 was altered: .* compile it again"):
            remove_check(_flipped(program, last, bit))


def test_one_changed_bit_is_found_at_its_instruction(rng: random.Random) -> None:
    program = add_check(_program(rng, 3))
    for bit in range(0, 8 * len(program), 7):
        with pytest.raises(EncodingError, match=f"instruction {bit // INSTRUCTION_BITS} was altered"):
            remove_check(_flipped(program, bit))


def test_exchanged_and_missing_instructions_are_found(rng: random.Random) -> None:
    program = add_check(_program(rng, 3))
    parts = [program[at : at + INSTRUCTION_BYTES] for at in range(0, len(program), INSTRUCTION_BYTES)]
    for wrong in ([parts[1], parts[0], *parts[2:]], parts[1:], [parts[0], *parts]):
        with pytest.raises(EncodingError, match="was altered"):
            remove_check(b"".join(wrong))


def test_check_bits_are_above_all_fields() -> None:
    assert CHECK_LSB + CHECK_BITS == INSTRUCTION_BITS
    assert max(sum(f.width for f in s.fields) for s in INSTRUCTIONS) <= CHECK_LSB
