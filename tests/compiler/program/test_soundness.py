"""The checker rejects every program with one defect and names the instruction."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import ProgramError
from intloom.compiler.program.footprint import Access, Memory, addresses
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Program
from intloom.compiler.program.soundness import SoundnessChecker, _touches, check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Instruction, Kind, TableUse, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.sim.regress.graphs import GraphMaker, softmax

WAITS = ("wait_load", "wait_mac", "wait_vec", "wait_store")


@pytest.fixture(scope="module")
def program() -> Program:
    maker = GraphMaker(0)
    x = maker.conv(maker.input(3, 40, 40), 32, 3)
    y = maker.max_pool(maker.conv(x, 32, 3), 3, pad=1)
    graph = maker.graph(maker.conv(maker.concat(maker.apply_table(y), x), 16))
    return compile_graph(graph, preset("base").replace(scratch_kib=32))


def with_instruction(program: Program, index: int, instruction: Instruction) -> Program:
    changed = (*program.instructions[:index], instruction, *program.instructions[index + 1 :])
    return dataclasses.replace(program, instructions=changed)


def find(program: Program, kind: Kind, wait: str = "wait_load") -> int:
    return next(k for k, i in enumerate(program.instructions) if i.kind is kind and (wait == "" or i[wait]))


def test_compiled_program_passes(program):
    check_program(program)
    counts = Counter(f"wait_{i.unit.name.lower()}" for i in program.instructions)
    assert [program.instructions[-1][wait] for wait in WAITS] == [counts[wait] for wait in WAITS], "END waits for all"


def test_every_single_wait_is_needed(program):
    """The emitter leaves out implied waits; so lowering any wait that is left must be noticed."""
    seen = 0
    for index, instruction in enumerate(program.instructions[:-1]):
        for wait in WAITS:
            if instruction[wait]:
                lowered = instruction.with_fields(**{wait: instruction[wait] - 1})
                with pytest.raises(ProgramError, match=f"instruction {index} .*races"):
                    check_program(with_instruction(program, index, lowered))
                seen += 1
    assert seen > 30


def test_wait_for_a_later_instruction_is_refused(program):
    index = find(program, Kind.CONV)
    loads = sum(i.kind is Kind.LOAD for i in program.instructions[:index])
    late = program.instructions[index].with_fields(wait_load=loads + 1)
    with pytest.raises(ProgramError, match=rf"instruction {index} \(layer 'conv0'.*may never start"):
        check_program(with_instruction(program, index, late))


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (Kind.LOAD, "local", 2047),
        (Kind.STORE, "dram", 1 << 30),
        (Kind.CONV, "out_base", 2040),
        (Kind.VMAX, "out_base", 2047),
    ],
)
def test_addresses_out_of_range_are_refused(program, kind, field, value):
    index = next(k for k, i in enumerate(program.instructions) if i.kind is kind and not i.values.get("target"))
    with pytest.raises(ProgramError, match=f"instruction {index} .*outside"):
        check_program(with_instruction(program, index, program.instructions[index].with_fields(**{field: value})))


def test_reading_what_was_never_written_is_refused(program):
    index = find(program, Kind.CONV)
    conv = program.instructions[index]
    moved = conv.with_fields(in_base=1500)
    with pytest.raises(ProgramError, match="reads uninitialized"):
        check_program(with_instruction(program, index, moved))


def test_storing_over_constants_and_inputs_is_refused(program):
    index = find(program, Kind.STORE, "")
    given, code = program.tensor("in0"), instruction_words(len(program.instructions), program.params)
    image = -(-len(program.image) // program.params.word_bytes)
    regions = ((program.image_at, image), (given.address, given.words), (program.instructions_at, code))
    for word in (end for at, words in regions for end in (at, at + words - 1)):
        broken = with_instruction(program, index, program.instructions[index].with_fields(dram=word, n0=1, n2=1))
        with pytest.raises(ProgramError, match="overwrites constants"):
            check_program(broken)


steps = st.tuples(st.integers(1, 4), st.integers(0, 9))


@given(steps, steps, st.integers(1, 6), st.integers(1, 20))
def test_a_store_touches_a_region_if_one_of_its_words_is_in_it(outer, inner, run, words):
    access = Access(Memory.DRAM, True, 20, (outer, inner, (run, 1)))
    stored = set(addresses(access).tolist())
    for start in range(access.last + 3):
        assert _touches(access, start, start + words) == (not stored.isdisjoint(range(start, start + words)))


@pytest.mark.parametrize("kind", [Kind.CONV, Kind.VCOPY])
def test_a_table_that_was_never_loaded_is_refused(program, kind):
    index = next(k for k, i in enumerate(program.instructions) if i.kind is kind)
    use = program.instructions[index].with_fields(table=TableUse.KEEP)
    loads = [k for k, i in enumerate(program.instructions[:index]) if i.kind is Kind.VTABLE]
    bare = program
    for k in loads:
        # A copy of one word replaces the table's load, so that the counts in other waits stay valid.
        waits = {w: program.instructions[k][w] for w in WAITS}
        base = program.instructions[k]["a_base"]
        copy = make(Kind.VCOPY, a_base=base, out_h=1, out_w=1, out_base=base, blocks=1, byte_count=1, **waits)
        bare = with_instruction(bare, k, copy)
    with pytest.raises(ProgramError, match=f"instruction {index} .*uses a table, but none has been loaded"):
        check_program(with_instruction(bare, index, use))


def test_sums_are_continued_only_after_a_conv_of_as_many_pixels_in_one_strip(program):
    index = next(k for k, i in enumerate(program.instructions) if i.kind is Kind.CONV)
    first = program.instructions[index].with_fields(continue_sums=1)
    with pytest.raises(ProgramError, match=f"instruction {index} .*continues sums .* the CONV before has 0"):
        check_program(with_instruction(program, index, first))


def test_frame_is_checked(program):
    for broken in (program.instructions[1:], program.instructions[:-1], (), (*program.instructions, make(Kind.END))):
        with pytest.raises(ProgramError, match="BEGIN"):
            check_program(dataclasses.replace(program, instructions=tuple(broken)))


@pytest.mark.parametrize("missing", range(EXPONENTIAL_BYTES))
def test_a_softmax_needs_each_byte_of_its_exponentials(missing):
    maker = GraphMaker(1)
    graph = maker.graph(softmax(maker, maker.conv(maker.input(4, 3, 4), 8)))
    program = compile_graph(graph, preset("nano").replace(vector_softmax=True))
    check_program(program)
    parts = [n for n, i in enumerate(program.instructions) if i.kind is Kind.VEXP]
    assert [program.instructions[n]["part"] for n in parts] == [*range(EXPONENTIAL_BYTES)]
    # Another byte is loaded twice instead.
    again = program.instructions[parts[missing]].with_fields(part=(missing + 1) % EXPONENTIAL_BYTES)
    with pytest.raises(ProgramError, match="uses exponentials, but not all of their bytes have been loaded"):
        check_program(with_instruction(program, parts[missing], again))


def test_begin_comes_once_and_waits_for_nothing(program):
    twice = (*program.instructions[:3], program.instructions[0], *program.instructions[3:])
    with pytest.raises(ProgramError, match="one BEGIN and one END"):
        check_program(dataclasses.replace(program, instructions=twice))
    early = (*program.instructions[:3], program.instructions[-1], *program.instructions[3:])
    with pytest.raises(ProgramError, match="one BEGIN and one END"):
        check_program(dataclasses.replace(program, instructions=early))
    for wait in WAITS:
        with pytest.raises(ProgramError, match="must not wait in BEGIN"):
            check_program(with_instruction(program, 0, program.instructions[0].with_fields(**{wait: 1})))


def state_error(program: Program, *instructions: Instruction) -> str:
    """The first error of the rules on a unit's state; its words and waits are not checked."""
    long = dataclasses.replace(program, instructions=instructions, provenance=())
    checker = SoundnessChecker(dataclasses.replace(program, instructions=()))
    checker._program = long
    try:
        for index, instruction in enumerate(instructions):
            checker._check_state(index, instruction)
    except ProgramError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("used", ["CONV", "VCOPY"])
def test_a_table_belongs_to_the_unit_that_has_loaded_it(program, used):
    loads = {"CONV": make(Kind.CONV, table=TableUse.LOAD), "VCOPY": make(Kind.VTABLE)}
    user = make(Kind[used], table=TableUse.KEEP)
    for name, load in loads.items():
        error = state_error(program, load, make(Kind.CONV), make(Kind.VCOPY), user)
        assert ("none has been loaded" in error) == (name != used), error


def test_sums_are_continued_by_as_many_pixels_of_one_strip_and_block(program):
    strip = program.params.strip

    def conv(pixels: int, **fields: int) -> Instruction:
        return make(Kind.CONV, out_h=1, out_w=pixels, **fields)

    for pixels in (1, 2, strip - 1, strip):
        good = conv(pixels), conv(pixels, continue_sums=1), make(Kind.VCOPY), conv(pixels, continue_sums=1)
        assert state_error(program, *good) == ""
        for other in {1, 2, strip - 1, strip} - {pixels}:
            assert f"continues sums of {pixels} pixels" in state_error(program, conv(other), good[1])
            # The CONV directly before counts, not an earlier one.
            assert "continues sums" in state_error(program, good[0], conv(other), good[1])
    assert "continues sums of 0" in state_error(program, conv(strip + 1), conv(strip + 1, continue_sums=1))
    two = conv(4, out_blocks=2), conv(4, out_blocks=2, continue_sums=1)
    assert "continues sums of 0" in state_error(program, *two)
    assert "the CONV before has 0" in state_error(program, two[0], conv(4, continue_sums=1))
    # Of two strips nothing is left to continue, nor of the CONV before them.
    assert "the CONV before has 0" in state_error(program, conv(4), conv(strip + 1), conv(4, continue_sums=1))
    square = make(Kind.CONV, out_h=2, out_w=3), conv(6, continue_sums=1)
    assert state_error(program, *square) == ""


def test_a_store_beside_what_is_fixed_passes(program):
    given, code = program.tensor("in0"), instruction_words(len(program.instructions), program.params)
    image = -(-len(program.image) // program.params.word_bytes)
    regions = ((program.image_at, image), (given.address, given.words), (program.instructions_at, code))
    fixed = {word for at, words in regions for word in range(at, at + words)}
    checker = SoundnessChecker(program)
    for word in {near for at, words in regions for near in (at - 1, at, at + words - 1, at + words)}:
        access = Access(Memory.DRAM, True, word, ((1, 0), (1, 0), (1, 1)))
        for part in (access, access._replace(write=False), access._replace(memory=Memory.SCRATCH)):
            try:
                checker._check_stores(0, [part])
                refused = False
            except ProgramError:
                refused = True
            assert refused == (part is access and word in fixed), (word, part)


def test_regions_may_touch_but_not_overlap(program):
    given, word = program.tensor("in0"), program.params.word_bytes
    others = [t for t in program.tensors if t is not given]
    bare = dataclasses.replace(program, instructions=(), image=bytes(10 * word - 1), image_at=8100, memory_words=20_000)
    for at, apart in ((100 - given.words, True), (101 - given.words, False), (105, False), (109, False), (110, True)):
        tensors = (dataclasses.replace(given, address=8000 + at), *others)
        moved = dataclasses.replace(bare, tensors=tensors)
        if apart:
            SoundnessChecker(moved)
        else:
            with pytest.raises(ProgramError, match="belongs to two of them"):
                SoundnessChecker(moved)
