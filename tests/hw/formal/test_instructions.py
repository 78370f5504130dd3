"""Every instruction of a 4 x 4 array by exhaustive enumeration: what the RTL writes equals what the specification says.

This is enumeration in simulation, not a proof by a solver. Each test runs all combinations of the field values that its
function lists, one instruction after the other, in the Verilog that users get. Words, masks and bytes of each
instruction's writes are compared with the instruction simulator, which implements `intloom.hw.spec`. Memories hold
random bytes, so another address gives other data. What is beyond these bounds: address sequences with steps of any
value (`test_walkers.py`), requantization of all sums and scales (`test_requantizer_stages.py`), products of all
operands (`test_product.py`).

Two counterparts must fail: one field of one instruction of each kind differs in the RTL's program; and each kind has a
fault in the RTL.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from amaranth.lib import wiring

from intloom.common.temporary_files import temporary_folder
from intloom.hw.dma.runs import RunWalker
from intloom.hw.generate import generate_verilog
from intloom.hw.mac.output.output_walker import OutputWalker
from intloom.hw.spec.fields import TableUse
from intloom.hw.spec.isa import BY_KIND, Instruction, Kind, Unit, encode, make
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, LESS_BITS
from intloom.hw.vector.operand_stage import OperandStage
from intloom.hw.vector.pool import Pool
from intloom.hw.vector.softmax import Softmax
from intloom.hw.vector.word_assembler import WordAssembler
from intloom.sim.isa_sim.machine import blank_machine
from intloom.sim.random_programs.compare import create_memory, first_byte, run_program, simulator_of
from intloom.sim.random_programs.words import words_of
from intloom.sim.random_programs.writes import WriteComparison
from intloom.sim.rtl.bare import build_bare
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import MemorySettings, RunFiles
from intloom.sim.rtl.write_log import read_writes
from tests.hw.formal.planted import planted
from tests.sim.random_programs.extremes import (
    LOW_SOURCE,
    LOW_TARGET,
    PLAIN,
    RESIDUAL,
    TABLE,
    WIDE,
    ExtremeProgram,
    extreme_program,
)

pytestmark = pytest.mark.slow
Fields = dict[str, int]
INPUT, OTHER, OUTPUT = 1000, 5000, 100_000
"""First words of operands and results."""
PAIRS = 60_000
"""First word of all pairs of bytes; the second bytes follow after `PAIR_WORDS`."""
PAIR_WORDS = 1 << 14
BYTES = 90_000
"""First word of all 256 bytes in order."""


def every(**fields: Any) -> Iterator[Fields]:
    """All combinations of the values of these fields."""
    for values in product(*fields.values()):
        yield dict(zip(fields, values, strict=True))


def defined(fields: Iterator[Fields], kind: Kind) -> Iterator[Fields]:
    """Those that write no word twice: the order of an instruction's results is not defined."""
    for values in fields:
        written = words_of(make(kind, **values), WIDE).written
        if len(np.unique(written)) == len(written):
            yield values


SMALL, FEW, STEPS = (1, 2), (1, 2, 3), (0, 1, 2)


def moves(**more: Any) -> Iterator[Fields]:
    """Runs and planes from 1 to 3; steps from 0 to 2 on both sides; any target."""
    counts = {"n0": FEW, "n1": FEW, "n2": FEW}
    steps = {"dram_s1": STEPS, "dram_s2": STEPS, "local_s1": STEPS, "local_s2": STEPS}
    return every(**counts, **steps, **more)


def loads() -> Iterator[Instruction]:
    """LOAD: `moves`, to both memories; the first word's position in its burst varies with them."""
    for number, fields in enumerate(moves(target=(0, 1))):
        local = OUTPUT if fields["target"] == 0 else WIDE.weight_words - 5
        yield make(Kind.LOAD, dram=LOW_SOURCE + 253 + number % 5, local=local + number % 3, **fields)


def stores() -> Iterator[Instruction]:
    """STORE: `moves`."""
    for number, fields in enumerate(moves()):
        yield make(Kind.STORE, dram=LOW_TARGET + 253 + number % 5, local=INPUT + number % 3, **fields)


_TILE = {"out_base": (OUTPUT,), "out_row": (9,), "out_plane": (40,)}
_SMALL_TILE = {"out_h": SMALL, "out_w": SMALL, "blocks": SMALL}
_OUTPUT_STEPS = {"out_x": SMALL, "out_row": range(5), "out_plane": range(0, 9, 2), "out_base": (OUTPUT,)}


def copies() -> Iterator[Instruction]:
    """VCOPY: shapes to 3 x 3 with upsampling to 3; every rotation and byte selection; steps from 0 to 2."""
    a = {"a_base": (INPUT,), "a_row": (7,), "a_plane": (50,), "a_x": SMALL}
    yield from (make(Kind.VCOPY, byte_count=4, **f) for f in every(
        out_h=FEW, out_w=FEW, blocks=SMALL, up_h=FEW, up_w=FEW, out_x=(1,), **a, **_TILE))  # fmt: skip
    for f in every(rotate=range(4), first_byte=range(4), byte_count=range(1, 5), table=(0, 1), a_x=(1,), out_w=SMALL):
        if f["first_byte"] + f["byte_count"] <= WIDE.word_bytes:
            yield make(Kind.VCOPY, a_base=INPUT, out_base=OUTPUT, **f)
    steps = every(
        **_SMALL_TILE, **_OUTPUT_STEPS, a_row=STEPS, a_plane=STEPS, a_x=STEPS, a_base=(INPUT,), byte_count=(4,)
    )
    yield from (make(Kind.VCOPY, **f) for f in defined(steps, Kind.VCOPY))


def _pairs(kind: Kind, factors: dict[str, Any]) -> Iterator[Instruction]:
    """Shapes to 3 x 3; steps from 0 to 2; tables, roundings and shifts; then all pairs of bytes."""
    ab = {"a_base": (INPUT,), "b_base": (OTHER,)}
    steps = {"a_row": STEPS, "a_plane": STEPS, "b_row": STEPS, "b_plane": STEPS}
    scale = {"m1": (3,), "m2": (3,), "c": (5,), "shift": (2,)}
    shapes = {"out_h": FEW, "out_w": FEW, "blocks": FEW, "table": (0, 1), "even": (0, 1), "out_x": SMALL}
    yield from (make(kind, **f) for f in every(**shapes, **ab, **scale, **dict.fromkeys(steps, (5,)), **_TILE))
    yield from (make(kind, **f) for f in every(**_SMALL_TILE, **ab, **steps, **scale, **_TILE, out_x=(1,)))
    outputs = every(**_SMALL_TILE, **_OUTPUT_STEPS, **ab, **scale, a_row=(2,), a_plane=(7,), b_row=(3,), b_plane=(8,))
    yield from (make(kind, **f) for f in defined(outputs, kind))
    square = 128
    whole = {"out_h": square, "out_w": square, "out_base": OUTPUT, "out_row": square}
    a = {"a_base": PAIRS, "a_row": square, "b_base": PAIRS + PAIR_WORDS, "b_row": square}
    yield from (make(kind, **whole, **a, **f) for f in every(**factors))


def sums() -> Iterator[Instruction]:
    """VADD: see `_pairs`; all pairs of bytes with 8 sets of coefficients."""
    factors = {"m1": (1, -3), "m2": (2,), "c": (-3, 6), "shift": (2,), "even": (0, 1)}
    return _pairs(Kind.VADD, factors)


def products() -> Iterator[Instruction]:
    """VMUL: see `_pairs`; all pairs of bytes with 8 sets of coefficients, with the extreme zero points."""
    factors = {
        "m1": (5,),
        "m2": (5,),
        "shift": (9,),
        "c": (256,),
        "even": (0, 1),
        "zp_a": (-128, 127),
        "zp_b": (-128, 3),
    }
    return _pairs(Kind.VMUL, factors)


def _windows(kind: Kind, **more: Any) -> Iterator[Instruction]:
    """Kernels to 4 x 3, strides to 2, inputs to 3 rows and 2 columns that begin at -1 to 1; then all pairs of bytes.

    Windows of 2 to 3 words along one axis slide; those at stride 2 or with two axes do not.
    """
    kernels = {"kernel_h": (1, 2, 3, 4), "kernel_w": FEW, "stride_h": SMALL, "stride_w": SMALL}
    inputs = {"in_h": FEW, "in_w": SMALL, "iy0": (-1, 0, 1), "ix0": (-1, 0)}
    shape = {"out_h": SMALL, "out_w": SMALL, "blocks": (2,), "out_x": (1,)}
    fixed = {"a_base": (INPUT,), "a_row": (3,), "a_plane": (20,)}
    yield from (make(kind, **f) for f in every(**kernels, **inputs, **shape, **fixed, **_TILE, **more))
    steps = {"a_row": STEPS, "a_plane": STEPS, "kernel_h": SMALL, "kernel_w": SMALL, "table": (0, 1)}
    origin = {"in_h": (3,), "in_w": (3,), "iy0": (-1,), "ix0": (-1,), "a_base": (INPUT,)}
    yield from (make(kind, **f) for f in every(**_SMALL_TILE, **steps, **origin, **_TILE, **more))
    # A block for each row of a square: its two input rows are the first and the second bytes of its pairs.
    square = 128
    whole = {"out_w": square, "in_w": square, "blocks": square, "a_plane": square, "out_plane": square}
    a = {"out_base": OUTPUT, "a_base": PAIRS, "a_row": PAIR_WORDS, "kernel_h": 2, "in_h": 2}
    yield from (make(kind, **whole, **a, **f) for f in every(**more))


def maxima() -> Iterator[Instruction]:
    """VMAX: see `_windows`."""
    return _windows(Kind.VMAX)


def averages() -> Iterator[Instruction]:
    """VAVG: see `_windows`."""
    return _windows(Kind.VAVG, m1=(7,), m2=(7,), c=(3,), shift=(4,), even=(0,), zp_in=(-128,))


def tables() -> Iterator[Instruction]:
    """VTABLE from 16 words on, each followed by a copy of all 256 bytes through the table."""
    copy = make(Kind.VCOPY, a_base=BYTES, out_base=OUTPUT, out_w=64, a_x=1, byte_count=4, table=1)
    for base in range(INPUT, INPUT + 16):
        yield from (make(Kind.VTABLE, a_base=base), copy)


_SOFTMAX = {"a_base": INPUT, "a_row": 5, "a_plane": 30, "out_base": OUTPUT, "out_row": 9, "out_plane": 40}


def exponentials() -> Iterator[Instruction]:
    """VEXP: each part from 8 words on, followed by softmaxes that use all entries."""
    for part, base in product(range(EXPONENTIAL_BYTES), range(INPUT, INPUT + 8)):
        yield make(Kind.VEXP, part=part, a_base=base)
        for row in range(4):
            spread = {"a_base": BYTES + 16 * row, "blocks": 16, "a_plane": 1, "last_bytes": 4, "out_plane": 1}
            yield make(Kind.VSOFTMAX, zp_out=-128, **{**_SOFTMAX, **spread})


def softmaxes() -> Iterator[Instruction]:
    """VSOFTMAX: shapes to 2 x 2, 1 to 3 blocks, every number of bytes in the last one and every `less`."""
    yield from _exponentials()
    last = {"last_bytes": range(1, 5), "less": range(1 << LESS_BITS), "table": (0, 1), "zp_out": (-128, 0, 127)}
    for f in every(out_h=SMALL, out_w=SMALL, blocks=FEW, **last):
        yield make(Kind.VSOFTMAX, **_SOFTMAX, **f)


def _exponentials() -> Iterator[Instruction]:
    for part in range(EXPONENTIAL_BYTES):
        yield make(Kind.VEXP, part=part, a_base=INPUT + 7 * part)


_CONV = {
    "in_base": INPUT, "in_row": 5, "in_plane": 60, "out_base": OUTPUT, "out_row": 9, "out_plane": 40, "zp_in": 3,
    "weights": PLAIN, "res_base": OTHER, "res_row": 4, "res_plane": 20,
}  # fmt: skip


def convolutions() -> Iterator[Instruction]:
    """CONV: kernels, strides, dilations, inputs of 1 or 2 rows and columns from -1 on, and outputs to 2 x 2.

    Then blocks to 3 x 3 with every option and outputs to 3 x 2; packed words; depthwise kernels to 3 x 2 in both modes.
    """
    kernel = {"kernel_h": SMALL, "kernel_w": SMALL, "stride_h": SMALL, "stride_w": SMALL}
    around = {"iy0": (-1, 0, 1), "ix0": (-1, 0, 1), "in_h": SMALL, "in_w": SMALL}
    output = {"out_h": SMALL, "out_w": SMALL}
    yield from (make(Kind.CONV, **_CONV, **f) for f in every(**kernel, **around, **output))
    dilated = {"dilation_h": FEW, "dilation_w": FEW, "kernel_h": (2,), "kernel_w": (2,), "in_h": (3,), "in_w": (3,)}
    origin = {"iy0": (-1, 0), "ix0": (-1, 0), "in_ring": (0, 10), "in_row_off": (0, 5)}
    yield from (make(Kind.CONV, **_CONV, **f) for f in every(**dilated, **origin))
    blocks = {
        "in_blocks": FEW,
        "out_blocks": FEW,
        "in_block_step": (0, 60),
        "in_h": (2,),
        "in_w": (2,),
        "out_w": SMALL,
        "out_h": (3,),
    }
    options = {"weight_zero_points": (0, 1), "subtract_zp_in": (0, 1), "zp_out": (-128, 5)}
    for extra in ({}, {"residual": 1, "weights": RESIDUAL, "res_even": 1}, {"table": TableUse.LOAD, "weights": TABLE}):
        fixed = {name: (value,) for name, value in {**_CONV, **extra}.items()}
        yield from (make(Kind.CONV, **f) for f in every(**{**fixed, **blocks, **options}))
    yield from (make(Kind.CONV, mode=1, **_CONV, **f) for f in every(**kernel, **around, **output))
    deep = {
        "mode": (2, 3),
        "kernel_h": FEW,
        "kernel_w": SMALL,
        "iy0": (-1, 0),
        "ix0": (-1, 0),
        "in_h": FEW,
        "in_w": FEW,
    }
    yield from (make(Kind.CONV, **_CONV, **f) for f in every(**deep, **output, stride_h=SMALL))


@dataclass(frozen=True, eq=False)
class Enumeration(ExtremeProgram):
    """Instructions one after the other; `faults` are those that the RTL gets in place of the ones that are compared."""

    faults: Mapping[int, Instruction] = field(default_factory=dict)

    def code(self) -> bytes:
        """The encoded program."""
        shown = dict(enumerate(self.instructions()))
        for number, fault in self.faults.items():
            waits = {name: value for name, value in shown[number].values.items() if name.startswith("wait_")}
            shown[number] = fault.with_waits(waits)
        return add_check(encode(i) for i in shown.values())

    def contents(self) -> dict[int, bytes]:
        """Memory before the start: all pairs of bytes, and all bytes, in the scratchpad."""
        found = super().contents()
        image = bytearray(found[self.image_word])
        pairs = np.arange(1 << 16, dtype=np.uint32)
        for first, values in ((PAIRS, pairs >> 8), (PAIRS + PAIR_WORDS, pairs & 255), (BYTES, pairs[:256])):
            data = values.astype(np.uint8).tobytes()
            image[first * self.params.word_bytes : first * self.params.word_bytes + len(data)] = data
        return {**found, self.image_word: bytes(image)}


def enumeration(body: list[Instruction], faults: Mapping[int, Instruction]) -> Enumeration:
    """The program with these instructions."""
    plain = extreme_program(WIDE, body)
    return Enumeration(**{**vars_of(plain), "faults": faults})


def vars_of(program: ExtremeProgram) -> dict[str, Any]:
    """The fields of a program."""
    return {name: getattr(program, name) for name in program.__dataclass_fields__}


def differences(program: Enumeration, simulator: Build | None = None) -> dict[int, str]:
    """The first difference of each instruction that the RTL executes otherwise, by its number."""
    with temporary_folder("enumeration") as folder:
        expected, files = folder / "expected.bin", RunFiles(folder)
        for path in (expected, files.memory):
            create_memory(program, path)
        result = run_program(program, simulator or simulator_of(program), files, MemorySettings(), log_writes=True)
        assert result.finished and not result.violation, result
        params = program.params
        machine = blank_machine(params, np.zeros(params.word_bytes, np.uint8))
        first = (program.base - first_byte(program)) // params.word_bytes
        machine.dram = np.memmap(expected, np.int8, "r+").reshape(-1, params.word_bytes)[first:]
        comparison = WriteComparison(machine, read_writes(files.writes, params.word_bytes), first)
        found = {n: text for n, i in enumerate(program.instructions()) if (text := comparison.execute(i))}
        rest = comparison.finish()
        return found | ({-1: rest} if rest else {})


KINDS: dict[Kind, Callable[[], Iterator[Instruction]]] = {
    Kind.LOAD: loads,
    Kind.STORE: stores,
    Kind.CONV: convolutions,
    Kind.VTABLE: tables,
    Kind.VCOPY: copies,
    Kind.VADD: sums,
    Kind.VMUL: products,
    Kind.VMAX: maxima,
    Kind.VAVG: averages,
    Kind.VEXP: exponentials,
    Kind.VSOFTMAX: softmaxes,
}
_PRELUDE = 3
"""Instructions before the body: BEGIN, and loads of both memories."""


def test_every_kind_of_a_unit_is_enumerated() -> None:
    assert set(KINDS) == {spec.kind for spec in BY_KIND.values() if spec.unit is not Unit.CONTROL}


@pytest.mark.parametrize("kind", KINDS)
def test_written_words_equal_the_specification(kind: Kind) -> None:
    head = [make(Kind.VTABLE, a_base=INPUT)]
    if kind is Kind.VEXP:
        head += _exponentials()
    body = [*head, *KINDS[kind]()]
    found = differences(enumeration(body, {}))
    print(f"{kind}: {len(body)} instructions")
    assert not found, {str(body[n - _PRELUDE]) if n > 0 else n: text for n, text in list(found.items())[:3]}


_CHANGES = {
    Kind.LOAD: ("local", 1), Kind.STORE: ("dram_s1", 1), Kind.CONV: ("zp_out", 1), Kind.VCOPY: ("rotate", 1),
    Kind.VADD: ("c", 4), Kind.VMUL: ("zp_a", 1), Kind.VMAX: ("ix0", 1), Kind.VAVG: ("zp_in", 9),
    Kind.VSOFTMAX: ("a_base", 1), Kind.VTABLE: ("a_base", 1), Kind.VEXP: ("a_base", 1),
}  # fmt: skip
"""A field of each kind and what is added to it."""


def test_a_change_of_one_field_is_found_in_every_kind() -> None:
    """Loads of tables write nothing themselves: the next instruction that uses the table differs."""
    body: list[Instruction] = []
    faults: dict[int, Instruction] = {}
    expected: dict[int, Kind] = {}
    for kind in sorted(KINDS, key=lambda kind: kind is Kind.LOAD):
        sample = [i for i in KINDS[kind]() if i.kind is kind or kind in (Kind.VTABLE, Kind.VEXP)]
        # From the middle: neither the simplest shapes nor the most extreme ones.
        chosen = sample[len(sample) // 2 - len(sample) // 2 % 10 :][:10]
        name, change = _CHANGES[kind]
        at = next(n for n, i in enumerate(chosen) if i.kind is kind)
        first = len(body) + _PRELUDE
        faults[first + at] = chosen[at].with_fields(**{name: chosen[at][name] + change})
        uses = kind in (Kind.VTABLE, Kind.VEXP)
        expected[next(first + n for n, i in enumerate(chosen) if n >= at and (i.kind is not kind) == uses)] = kind
        body += chosen
    found = differences(enumeration([make(Kind.VTABLE, a_base=INPUT), *_exponentials(), *body], _shifted(faults)))
    missing = {kind for number, kind in expected.items() if number + 1 + EXPONENTIAL_BYTES not in found}
    assert not missing, f"no difference in {missing}"


def _shifted(faults: Mapping[int, Instruction]) -> dict[int, Instruction]:
    """The faults behind the tables that are loaded first."""
    return {number + 1 + EXPONENTIAL_BYTES: fault for number, fault in faults.items()}


_FAULTS: dict[tuple[str, type[wiring.Component]], dict[Kind, tuple[str, str]]] = {
    ("dma.front_end", RunWalker): {Kind.LOAD: ("state.plane + move.dram_s2", "state.plane + move.dram_s1")},
    ("mac.output.readout", OutputWalker): {Kind.CONV: ("row.eq(row + walk.row)]", "row.eq(pixel + walk.row)]")},
    ("vector.datapath", WordAssembler): {Kind.VCOPY: ("rotate_left(8 << bit)", "rotate_right(8 << bit)")},
    ("vector.datapath", OperandStage): {
        Kind.VADD: ("Mux(single, 0, second[2])", "Mux(single, 0, second[2] & ~1)"),
        Kind.VMUL: ("product.eq(factors[0] *", "product.eq(factors[0][:8].as_signed() *"),
    },
    ("vector.unit", Pool): {
        Kind.VMAX: ("(byte > before[0])", "(byte < before[0])"),
        Kind.VAVG: ("before[lane].total) +", "before[lane].total[:10].as_signed()) +"),
    },
    ("vector.unit", Softmax): {Kind.VSOFTMAX: ("Mux(self.less[1], entry << 1, 0)", "Mux(self.less[1], entry, 0)")},
}
"""Faults of the RTL: where a component is used, the component, and by kind of instruction what is changed in it."""


def test_a_fault_of_the_rtl_is_found_in_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """One simulator with all faults at once; STORE has the walker of LOAD, tables are left out."""
    for (user, component), changes in _FAULTS.items():
        monkeypatch.setattr(f"intloom.hw.{user}.{component.__name__}", planted(component, *changes.values()))
    simulator = build_bare(generate_verilog(WIDE), optimize="-O1", taps=True)
    body: list[Instruction] = []
    # Loads come last: they change what others read.
    for kind in sorted(set(KINDS) - {Kind.VTABLE, Kind.VEXP}, key=lambda kind: kind is Kind.LOAD):
        plain = [i for i in KINDS[kind]() if i.kind is kind and not i.values.get("table")]
        body += random.Random(1).sample(plain, min(len(plain), 400))
    body = [*_exponentials(), *body]
    numbers = {number - _PRELUDE for number in differences(enumeration(body, {}), simulator)}
    # The store of the whole scratchpad at the end differs too.
    found = {body[number].kind for number in numbers & set(range(len(body)))}
    assert found == set(KINDS) - {Kind.VTABLE, Kind.VEXP}
