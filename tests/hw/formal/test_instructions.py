"""Every instruction of a 4 x 4 array by exhaustive enumeration: what the RTL writes equals what the specification says.

This is enumeration in simulation, not a proof by a solver. Each test runs all combinations of the field values that
`enumerations.py` lists for its kind, one instruction after the other, in the Verilog that users get. Words, masks and
bytes of each instruction's writes are compared with the instruction simulator, which implements `intloom.hw.spec`.
Memories hold random bytes, so another address gives other data. What is beyond these bounds: address sequences with
steps of any value (`test_walkers.py`), requantization of all sums and scales (`test_requantizer_stages.py`), products
of all operands (`tests/hw/mac/array/test_product.py`).

Two counterparts must fail: one field of one instruction of each kind differs in the RTL's program; and each kind has a
fault in the RTL.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from amaranth.lib import wiring

from intloom.common.temporary_files import temporary_folder
from intloom.hw.dma.runs import RunWalker
from intloom.hw.generate import generate_verilog
from intloom.hw.mac.output.output_walker import OutputWalker
from intloom.hw.spec.isa import BY_KIND, Instruction, Kind, Unit, encode, make
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.hw.vector.depthwise_columns import DepthwiseColumns
from intloom.hw.vector.norm_factors import NormFactors
from intloom.hw.vector.operand_stage import OperandStage
from intloom.hw.vector.pool import Pool
from intloom.hw.vector.softmax import Softmax
from intloom.hw.vector.word_assembler import WordAssembler
from intloom.sim.isa_sim.machine import blank_machine
from intloom.sim.random_programs.compare import create_memory, first_byte, run_program, simulator_of
from intloom.sim.random_programs.writes import WriteComparison
from intloom.sim.rtl.bare import build_bare
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import MemorySettings, RunFiles
from intloom.sim.rtl.write_log import read_writes
from tests.hw.formal.enumerations import (
    BYTES,
    INPUT,
    KINDS,
    LIMIT_STEP,
    LIMITS,
    PAIR_WORDS,
    PAIRS,
    exponential_parts,
    limit_records,
)
from tests.hw.formal.planted import planted
from tests.sim.random_programs.extremes import WIDE, ExtremeProgram, extreme_program

pytestmark = pytest.mark.slow


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
        """Memory before the start: in the scratchpad all pairs of bytes, all bytes, and `limit_records`."""
        found = super().contents()
        image = bytearray(found[self.image_word])
        pairs = np.arange(1 << 16, dtype=np.uint32)
        words = {PAIRS: pairs >> 8, PAIRS + PAIR_WORDS: pairs & 255, BYTES: pairs[:256]}
        data = {first: values.astype(np.uint8).tobytes() for first, values in words.items()}
        for number, record in enumerate(limit_records(), 1):
            data[LIMITS + LIMIT_STEP * number - len(record) // self.params.word_bytes] = record
        for first, piece in data.items():
            start = first * self.params.word_bytes
            image[start : start + len(piece)] = piece
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


_PRELUDE = 3
"""Instructions before the body: BEGIN, and loads of both memories."""


def test_every_kind_of_a_unit_is_enumerated() -> None:
    assert set(KINDS) == {spec.kind for spec in BY_KIND.values() if spec.unit is not Unit.CONTROL}


@pytest.mark.parametrize("kind", KINDS)
def test_written_words_equal_the_specification(kind: Kind) -> None:
    head = [make(Kind.VTABLE, a_base=INPUT)]
    if kind is Kind.VEXP:
        head += exponential_parts()
    body = [*head, *KINDS[kind]()]
    found = differences(enumeration(body, {}))
    print(f"{kind}: {len(body)} instructions")
    assert not found, {str(body[n - _PRELUDE]) if n > 0 else n: text for n, text in list(found.items())[:3]}


_CHANGES = {
    Kind.LOAD: ("local", 1), Kind.STORE: ("dram_s1", 1), Kind.CONV: ("zp_out", 1), Kind.VCOPY: ("rotate", 1),
    Kind.VADD: ("c", 4), Kind.VMUL: ("zp_a", 1), Kind.VMAX: ("ix0", 1), Kind.VAVG: ("zp_in", 9),
    Kind.VSOFTMAX: ("a_base", 1), Kind.VTABLE: ("a_base", 1), Kind.VEXP: ("a_base", 1),
    Kind.VNORM: ("b_base", 1), Kind.VDEPTHWISE: ("b_base", 1),
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
    found = differences(enumeration([make(Kind.VTABLE, a_base=INPUT), *exponential_parts(), *body], _shifted(faults)))
    missing = {kind for number, kind in expected.items() if number + 1 + EXPONENTIAL_BYTES not in found}
    assert not missing, f"no difference in {missing}"


def _shifted(faults: Mapping[int, Instruction]) -> dict[int, Instruction]:
    """The faults behind the tables that are loaded first."""
    return {number + 1 + EXPONENTIAL_BYTES: fault for number, fault in faults.items()}


_FAULTS: dict[tuple[str, type[wiring.Component]], dict[Kind, tuple[str, str]]] = {
    ("dma.front_end", RunWalker): {Kind.LOAD: ("state.plane + move.dram_s2", "state.plane + move.dram_s1")},
    ("mac.output.readout", OutputWalker): {Kind.CONV: ("Mux(row_end, row, pixel)", "Mux(row_end, pixel, pixel)")},
    ("vector.datapath", WordAssembler): {Kind.VCOPY: ("rotate_left(8 << bit)", "rotate_right(8 << bit)")},
    ("vector.datapath", OperandStage): {
        Kind.VADD: ("Mux(single, 0, seconds[2])", "Mux(single, 0, seconds[2] & ~1)"),
        Kind.VMUL: ("(factors[0] * factors[1])", "(factors[0][:8].as_signed() * factors[1])"),
    },
    ("vector.unit", Pool): {
        Kind.VMAX: ("(byte > before[0])", "(byte < before[0])"),
        Kind.VAVG: ("before[lane].total) +", "before[lane].total[:10].as_signed()) +"),
    },
    ("vector.unit", DepthwiseColumns): {
        Kind.VDEPTHWISE: ("Mux(self.tap.first, 0, row + 1)", "Mux(self.tap.first, 0, row ^ 1)")
    },
    ("vector.norm", NormFactors): {Kind.VNORM: ("part * fall", "part * fall[1:]")},
    ("vector.unit", Softmax): {Kind.VSOFTMAX: ("late << (self.less == 3)", "late << (self.less == 2)")},
}
"""Faults of the RTL: where a component is used, the component, and by kind of instruction what is changed in it."""


@pytest.mark.nightly
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
    body = [*exponential_parts(), *body]
    numbers = {number - _PRELUDE for number in differences(enumeration(body, {}), simulator)}
    # The store of the whole scratchpad at the end differs too.
    found = {body[number].kind for number in numbers & set(range(len(body)))}
    assert found == set(KINDS) - {Kind.VTABLE, Kind.VEXP}
