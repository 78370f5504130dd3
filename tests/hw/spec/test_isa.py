"""Encoding, decoding and assembly text are one another's inverses, and everything illegal is refused by name."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import EncodingError
from intloom.hw.spec.isa import (
    BY_OPCODE,
    CHECK_LSB,
    INSTRUCTION_BYTES,
    INSTRUCTIONS,
    Field,
    Instruction,
    InstructionSpec,
    Kind,
    assemble,
    decode,
    disassemble,
    encode,
    make,
)
from tests.hw.spec.strategies import instructions

FIELDS = [pytest.param(s, f, id=f"{s.kind}.{f.name}") for s in INSTRUCTIONS for f in s.fields[1:]]


def put(word: int, spec: InstructionSpec, field: Field, raw: int) -> bytes:
    """The bytes of an instruction word with one field's bits replaced."""
    at, mask = spec.offsets[field.name], (1 << field.width) - 1
    return (word & ~(mask << at) | (raw & mask) << at).to_bytes(INSTRUCTION_BYTES, "little")


@given(instructions())
def test_decode_undoes_encode(instruction: Instruction):
    assert decode(encode(instruction)) == instruction


@given(instructions())
def test_text_round_trips_to_identical_bytes(instruction: Instruction):
    assert encode(assemble(disassemble(instruction))) == encode(instruction)


@given(instructions())
def test_text_may_hold_hexadecimal_and_comments(instruction: Instruction):
    fields = [f"{f.name}={instruction[f.name]:#x}" for f in instruction.spec.fields[1:]]
    assert assemble(f"  {instruction.kind}  {' '.join(fields)}  # note=1") == instruction


@given(st.binary(min_size=INSTRUCTION_BYTES, max_size=INSTRUCTION_BYTES), st.sampled_from(INSTRUCTIONS))
def test_bytes_decode_and_encode_again_or_are_refused(data: bytes, spec: InstructionSpec):
    used = sum(f.width for f in spec.fields)
    word = int.from_bytes(data, "little") & ~0xFF & ((1 << used) - 1) | spec.opcode
    data = word.to_bytes(INSTRUCTION_BYTES, "little")
    message = f"{spec.kind}.field must be from"
    again = data
    try:
        again = encode(decode(data))
    except EncodingError as error:
        message = str(error)
    assert again == data
    assert re.match(rf"{spec.kind}\.\w+ must be from", message)


def test_fields_do_not_overlap_and_fit():
    for spec in INSTRUCTIONS:
        edges = [(spec.offsets[f.name], spec.offsets[f.name] + f.width) for f in spec.fields]
        assert all(stop == start for (_, stop), (start, _) in pairwise(edges))
        assert edges[0][0] == 0
        assert edges[-1][1] <= CHECK_LSB
        assert len({f.name for f in spec.fields}) == len(spec.fields)


def test_opcodes_and_names_are_unique_and_complete():
    assert len({s.opcode for s in INSTRUCTIONS}) == len(INSTRUCTIONS) == len(Kind)
    assert {s.kind for s in INSTRUCTIONS} == set(Kind)


@pytest.mark.parametrize(("spec", "field"), FIELDS)
def test_limits_fit_the_width(spec: InstructionSpec, field: Field):
    low = -(1 << (field.width - 1)) if field.signed else 0
    assert low <= field.minimum <= field.default <= field.maximum < low + (1 << field.width)
    assert field.doc.endswith(".")


@pytest.mark.parametrize(("spec", "field"), FIELDS)
@pytest.mark.parametrize("step", [-1, 1])
def test_a_value_past_a_limit_is_refused_with_name_value_and_limits(spec: InstructionSpec, field: Field, step: int):
    value = field.minimum - 1 if step < 0 else field.maximum + 1
    wanted = f"{spec.kind}.{field.name} must be from {field.minimum} to {field.maximum}, not {value}"
    with pytest.raises(EncodingError, match=f"^{re.escape(wanted)}$"):
        make(spec.kind, **{field.name: value})
    with pytest.raises(EncodingError, match=f"^{re.escape(wanted)}$"):
        assemble(f"{spec.kind} {field.name}={value}")


@pytest.mark.parametrize(("spec", "field"), FIELDS)
def test_every_illegal_bit_pattern_of_a_narrow_field_is_refused(spec: InstructionSpec, field: Field):
    word = int.from_bytes(encode(make(spec.kind)), "little")
    signs = 1 << (field.width - 1) if field.signed else 0
    # Wide fields have too many patterns: take those around their limits.
    near = {v + d for v in (field.minimum, field.maximum) for d in (-2, -1, 0, 1, 2)}
    values = range(-signs, (1 << field.width) - signs) if field.width <= 8 else near
    for value in values:
        if not -signs <= value < (1 << field.width) - signs:
            continue
        data = put(word, spec, field, value)
        if field.minimum <= value <= field.maximum:
            assert decode(data)[field.name] == value
        else:
            with pytest.raises(EncodingError, match=rf"^{spec.kind}\.{field.name} must be from"):
                decode(data)


@pytest.mark.parametrize("spec", INSTRUCTIONS, ids=lambda s: s.kind)
def test_a_bit_past_the_last_field_is_refused(spec: InstructionSpec):
    used = sum(f.width for f in spec.fields)
    word = int.from_bytes(encode(make(spec.kind)), "little")
    for bit in range(used, CHECK_LSB):
        with pytest.raises(EncodingError, match=f"^{spec.kind} must have zeros above bit {used - 1}$"):
            decode((word | 1 << bit).to_bytes(INSTRUCTION_BYTES, "little"))


def test_every_unknown_opcode_is_refused():
    for opcode in set(range(256)) - set(BY_OPCODE):
        with pytest.raises(EncodingError, match=rf"opcode must be one of .*, not {opcode:#04x}"):
            decode(bytes([opcode]) + bytes(INSTRUCTION_BYTES - 1))


@pytest.mark.parametrize("length", [0, 1, INSTRUCTION_BYTES - 1, INSTRUCTION_BYTES + 1])
def test_bytes_of_another_length_are_refused(length: int):
    with pytest.raises(EncodingError, match=f"an instruction must be 64 bytes, not {length}"):
        decode(bytes(length))


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_value_that_is_no_integer_is_refused(value: object):
    with pytest.raises(EncodingError, match=r"LOAD\.n0 must be an integer"):
        make("LOAD", n0=value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "must hold an instruction, not be empty"),
        ("# only a comment", "must hold an instruction, not be empty"),
        ("LAOD n0=1", "instruction must be one of BEGIN, .*not 'LAOD'"),
        ("LOAD n0", "a field must be written name=value, not 'n0'"),
        ("LOAD n0=one", r"LOAD\.n0 must be a number, not 'one'"),
        ("LOAD n0=1 n0=2", r"LOAD\.n0 is given twice"),
        ("LOAD n9=1", "LOAD has no field 'n9': it has opcode, wait_load"),
        ("LOAD opcode=3", r"LOAD\.opcode follows from the instruction's name"),
    ],
)
def test_bad_text_is_refused(line: str, message: str):
    with pytest.raises(EncodingError, match=message):
        assemble(line)


def test_with_fields_checks_again():
    load = make(Kind.LOAD, n0=5)
    assert load.with_fields(n1=7) == make(Kind.LOAD, n0=5, n1=7)
    assert load["n1"] == 1
    with pytest.raises(EncodingError, match=r"LOAD\.n1 must be from 1"):
        load.with_fields(n1=0)


def test_with_waits_equals_an_instruction_made_with_them_and_checks_their_range():
    load = make(Kind.LOAD, n0=5)
    assert load.with_waits({"wait_mac": 3, "wait_vec": 1}) == make(Kind.LOAD, n0=5, wait_mac=3, wait_vec=1)
    with pytest.raises(EncodingError, match=r"LOAD\.wait_mac must be from 0"):
        load.with_waits({"wait_mac": -1})


def test_the_default_instruction_of_each_kind_is_just_its_name_in_text():
    for spec in INSTRUCTIONS:
        assert disassemble(make(spec.kind)) == spec.kind
