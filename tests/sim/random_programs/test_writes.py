"""Every instruction's writes are compared: a wrong word is found even if a later instruction overwrites it."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from intloom.hw.spec.isa import Instruction, Kind, LoadTarget, TableUse, make
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.compare import compare
from intloom.sim.random_programs.program import NO_LAG, Step, random_program
from intloom.sim.random_programs.writes import _by_word, _difference, _Writes
from intloom.sim.rtl.bare import build_bare
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.disturbed import simulator
from tests.support.shapes import SHAPES

NANO, EVERY = SHAPES["nano"], SHAPES["halves"]
PROGRAM = random_program(1, NANO)
SCRATCH, WEIGHT, ISLAND = 1001, 1717, PROGRAM.islands[0][0]
LOADED = np.frombuffer(PROGRAM.contents()[ISLAND], "<u4")
COPY = make(Kind.VCOPY, a_base=9, out_base=SCRATCH, byte_count=4)
LOAD = make(Kind.LOAD, local=SCRATCH, dram=ISLAND, n0=1)
WEIGHTS = make(Kind.LOAD, local=WEIGHT, target=LoadTarget.WEIGHT, dram=ISLAND, n0=1)
STORE = make(Kind.STORE, local=SCRATCH + 1, dram=ISLAND + 100, n0=1)
OVERWRITTEN = {
    "vector unit": [COPY, LOAD.with_fields(dram=ISLAND + 5)],
    "MAC unit": [make(Kind.CONV, in_h=1, in_w=1, out_base=SCRATCH), LOAD.with_fields(dram=ISLAND + 5)],
    "load into scratchpad": [LOAD, LOAD.with_fields(dram=ISLAND + 5)],
    "load into weight memory": [WEIGHTS, WEIGHTS.with_fields(dram=ISLAND + 5)],
    "store": [
        LOAD.with_fields(local=SCRATCH + 1, dram=ISLAND + 9),
        STORE,
        COPY.with_fields(out_base=SCRATCH + 1),
        STORE,
    ],
}
"""One instruction writes a wrong word, the last one the same word again."""


def planted(verilog: str) -> str:
    """Invert a bit of certain words on their way from the units to the memories."""
    module = re.search(r"^module \\npu\.engine \(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    assert module is not None
    text = module.group()

    def change(pattern: str, new: str, count: int = 1) -> None:
        nonlocal text
        assert len(re.findall(pattern, text)) == count, pattern
        text = re.sub(pattern, lambda found: found.expand(new), text, count=1)

    address = re.search(r"\.vec__addr\(([^)]*)\)", text)
    assert address is not None
    loaded = f"(load__data == 32'd{LOADED[0]})"
    stored = f"(bus__w__payload_[31:0] == 32'd{LOADED[9]})"
    change(r"\.vec__data\((\w+)\)", rf".vec__data(\1 ^ ({address[1]} == {SCRATCH}))")
    change(r"\.load__data\(load__data\)", f".load__data(load__data ^ (load__addr == {SCRATCH} & {loaded}))")
    to_weights = r"(\.(?:\\write__data\S* |write__data))\(load__data\)"
    change(to_weights, rf"\1(load__data ^ (load__addr == {WEIGHT} & {loaded}))")
    # The first instance is the MAC unit, the second the scratchpad.
    change(r"\{ mac__mask, mac__data\[31:24\], mac__addr \}", "{ mac__mask, mac_right, mac__addr }", 2)
    change(r"\.w__payload\(bus__w__payload\)", ".w__payload(bus__w__payload_)")
    wires = f"""\
  wire [7:0] mac_right;
  assign mac__data[31:24] = mac_right ^ (mac__addr == {SCRATCH});
  wire [36:0] bus__w__payload_;
  assign bus__w__payload = bus__w__payload_ ^ {stored};
"""
    changed = verilog[: module.start()] + text.removesuffix("endmodule") + wires + "endmodule"
    return changed + verilog[module.end() :]


def steps(instructions: list[Instruction]) -> list[Step]:
    return [Step(i, NO_LAG) for i in instructions]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_wrong_word_that_is_overwritten_later_is_found() -> None:
    faulty = build_bare(planted(verilog_of(NANO)), optimize="-O1", taps=True)
    for name, instructions in OVERWRITTEN.items():
        program = PROGRAM.with_steps(steps(instructions))
        assert not compare(program, faulty, taps=False).problem, "memory at the end shows nothing"
        problem = compare(program, faulty).problem
        number, word = {"store": (4, ISLAND + 100), "load into weight memory": (3, WEIGHT)}.get(name, (3, SCRATCH))
        assert problem.startswith(f"instruction {number}, "), (name, problem)
        assert f" word {word:#x}, byte 0: " in problem, (name, problem)


def _wrong_table(name: str) -> Callable:
    def change(machine, instruction):
        value = getattr(machine, name).copy()
        value.reshape(-1)[77] ^= 1
        setattr(machine, name, value)

    return change


def _wrong_weights(machine, instruction):
    machine.weights[5, 1] ^= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instruction", "change", "problem"),
    [
        (make(Kind.VTABLE, a_base=5), _wrong_table("vector_table"), "table of the vector unit, copy 0"),
        (make(Kind.VEXP, a_base=5), _wrong_table("exponentials"), "byte 0 of the exponentials, copy 0"),
        (make(Kind.CONV, in_h=1, in_w=1, table=TableUse.LOAD), _wrong_table("mac_table"), "table 1 of the MAC unit"),
        (make(Kind.VTABLE, a_base=5), _wrong_weights, "weight memory at the end: word 0x5, byte 1"),
    ],
)
def test_a_wrong_table_or_weight_memory_at_the_end_is_found(
    instruction: Instruction, change: Callable, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = random_program(1, EVERY).with_steps(steps([instruction]))
    assert not compare(program, simulator(EVERY)).problem
    right = SEMANTICS[instruction.kind]

    def wrong(machine, instruction):
        right(machine, instruction)
        change(machine, instruction)

    monkeypatch.setitem(SEMANTICS, instruction.kind, wrong)
    assert compare(program, simulator(EVERY)).problem.startswith(problem)


def _made(words: list[int], data: list[list[int]], mask: list[list[int]]) -> _Writes:
    return _Writes(np.array(words), np.array(data, np.uint8), np.array(mask, bool))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (_made([3, 7], [[1, 2], [3, 4]], [[1, 1], [1, 0]]), ""),
        (_made([3, 7], [[1, 2], [3, 9]], [[1, 1], [1, 0]]), ""),
        (_made([3, 7], [[1, 2], [9, 4]], [[1, 1], [1, 0]]), "it word 0x7, byte 0: 9 instead of 3"),
        (_made([3, 7], [[1, 8], [9, 4]], [[1, 1], [1, 0]]), "it word 0x3, byte 1: 8 instead of 2"),
        (_made([3, 7], [[1, 2], [3, 4]], [[1, 1], [1, 1]]), "it word 0x7, byte 1: written, but must not be"),
        (_made([3, 7], [[1, 2], [3, 4]], [[0, 1], [1, 0]]), "it word 0x3, byte 0: not written"),
        (_made([3, 8], [[1, 2], [3, 4]], [[1, 1], [1, 0]]), "it word 0x8 is written instead of word 0x7"),
        (_made([3], [[1, 2]], [[1, 1]]), "it word 0x7 is not written"),
        (_made([3, 7, 9], [[1, 2], [3, 4], [0, 0]], [[1, 1], [1, 0], [1, 1]]), "it word 0x9 is written too much"),
    ],
)
def test_the_first_difference_of_writes_is_named(found: _Writes, said: str) -> None:
    assert _difference(_made([3, 7], [[1, 2], [3, 4]], [[1, 1], [1, 0]]), found, "it") == said


def test_parts_of_a_word_are_one_write_unless_a_byte_comes_twice() -> None:
    parts = _made([5, 3, 5], [[1, 0], [7, 8], [0, 2]], [[1, 0], [1, 1], [0, 1]])
    assert _difference(_made([3, 5], [[7, 8], [1, 2]], [[1, 1], [1, 1]]), _by_word(parts), "it") == ""
    twice = _made([5, 5], [[1, 0], [1, 2]], [[1, 0], [1, 1]])
    assert _by_word(twice).words.tolist() == [5, 5]
