"""Vector unit against a reference model of its instructions."""

from __future__ import annotations

import random

import pytest

from intloom.hw.spec.isa import BY_KIND, Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import Cause
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.operand_fetcher import OperandFetcher
from intloom.hw.vector.operation import VECTOR_KINDS, kinds_of
from intloom.hw.vector.sequencer import Sequencer
from tests.hw.vector.bench import Bench, Outcome
from tests.hw.vector.cases import InstructionGenerator
from tests.hw.vector.reference import Reference

NANO = preset("nano").replace(scratch_kib=4, vector_lanes=4)
SMALL = preset("small").replace(scratch_kib=8, vector_lanes=8)
SOFTMAX = NANO.replace(vector_softmax=True)
BASE = preset("base").replace(scratch_kib=16, vector_lanes=16)
SHAPES = {
    "nano": NANO,
    "nano_in_halves": NANO.replace(vector_lanes=2),
    "small_by_byte": SMALL.replace(vector_lanes=1),
    "base_in_halves": BASE.replace(vector_lanes=8),
    "base_in_quarters_without_options": BASE.replace(vector_lanes=4, vector_multiply=False, vector_average=False),
    "small_without_options": SMALL.replace(vector_multiply=False, vector_average=False),
    "small_without_product": SMALL.replace(vector_multiply=False),
    "base": BASE,
    "small_with_softmax": SMALL.replace(vector_softmax=True, vector_lanes=2),
}


def _words(rng: random.Random, params: HardwareParams) -> list[bytes]:
    return [rng.randbytes(params.word_bytes) for _ in range(params.scratch_words)]


def _check(
    params: HardwareParams,
    rng: random.Random,
    instructions: list[Instruction],
    grant: float = 1.0,
    offer: float = 1.0,
    write_grant: float | None = None,
) -> Outcome:
    """Run on hardware and reference; every byte of memory must agree."""
    words = _words(rng, params)
    reference = Reference(list(words))
    for instruction in instructions:
        reference.run(instruction)
    outcome = Bench(params, words, rng, grant, offer, write_grant).run(instructions)
    assert outcome.fault is None
    assert len(outcome.done) == len(outcome.started) == len(instructions)
    wrong = [k for k, (got, want) in enumerate(zip(outcome.words, reference.words, strict=True)) if got != want]
    assert not wrong, (wrong[:5], [i.values for i in instructions])
    assert outcome.idle
    return outcome


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize("lanes", [4, 2, 1])
def test_each_kind(kind: Kind, lanes: int, rng: random.Random) -> None:
    params = SOFTMAX.replace(vector_lanes=lanes) if BY_KIND[kind].requires == "vector_softmax" else NANO
    params = params.replace(vector_lanes=lanes)
    maker = InstructionGenerator(rng, params)
    _check(params, rng, [maker.instruction(Kind.VTABLE), *(maker.instruction(kind) for _ in range(6))])


@pytest.mark.parametrize("lanes", [4, 1])
@pytest.mark.parametrize("grant", [1.0, 0.5])
def test_a_softmax_uses_the_exponentials_loaded_before(lanes: int, grant: float, rng: random.Random) -> None:
    params = SOFTMAX.replace(vector_lanes=lanes)
    maker = InstructionGenerator(rng, params)
    parts = [make(Kind.VEXP, a_base=3 + 40 * part, part=part) for part in range(EXPONENTIAL_BYTES)]
    between = [maker.instruction(Kind.VADD), maker.instruction(Kind.VTABLE)]
    softmax = [maker.instruction(Kind.VSOFTMAX) for _ in range(3)]
    _check(params, rng, [*parts, *softmax, *between, maker.instruction(Kind.VSOFTMAX)], grant, grant)


@pytest.mark.parametrize("kind", [Kind.VCOPY, Kind.VMAX, Kind.VSOFTMAX])
def test_results_wait_for_their_writes(kind: Kind, rng: random.Random) -> None:
    """The memory takes a write in 30 cycles: no word issues without an entry in the FIFO of results."""
    parts = [make(Kind.VEXP, a_base=3 + 40 * part, part=part) for part in range(EXPONENTIAL_BYTES)]
    own = {"last_bytes": 3} if kind is Kind.VSOFTMAX else {"in_h": 8, "in_w": 12} if kind is Kind.VMAX else {}
    work = make(kind, out_h=8, out_w=12, out_base=512, out_row=12, a_base=256, a_row=12, **own)
    _check(SOFTMAX, rng, [*parts, work] if kind is Kind.VSOFTMAX else [work], write_grant=1 / 30)


@pytest.mark.slow
@pytest.mark.parametrize("grant", [1.0, 0.4])
@pytest.mark.parametrize("shape", SHAPES)
def test_random_programs(shape: str, grant: float, rng: random.Random) -> None:
    params = SHAPES[shape]
    maker = InstructionGenerator(rng, params)
    kinds = kinds_of(params)
    instructions = [maker.instruction(rng.choice(kinds)) for _ in range(24)]
    _check(params, rng, instructions, grant, offer=grant)


LONG = {"out_h": 8, "out_w": 32, "out_base": 512, "out_row": 32}
"""An operation of 256 words."""
_WALKS = 6
"""Cycles in the walkers, the slicer and the pool, and of the write."""
OVERHEAD = Sequencer.LATENCY + OperandFetcher.LATENCY + Datapath.LATENCY + _WALKS
"""Cycles that an instruction may cost besides its words."""


def _cycles(outcome: Outcome) -> int:
    return outcome.done[0] - outcome.started[0]


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (make(Kind.VCOPY, **LONG, a_row=32), 256),
        (make(Kind.VCOPY, **LONG, a_row=16, up_h=2, up_w=2), 256),
        (make(Kind.VADD, **LONG, a_row=32, b_base=256, b_row=32, m1=1, m2=1), 256),
        (make(Kind.VADD, **LONG, a_row=32, b_base=3, b_row=32, m1=1, m2=1), 256),
        (make(Kind.VMUL, **LONG, a_row=32, b_base=256, b_row=32, m1=1, m2=1), 256),
        (make(Kind.VMAX, **LONG, a_row=32, in_h=8, in_w=32, ix0=-2, kernel_w=5), 8 * 36),
        (make(Kind.VMAX, **LONG, a_row=32, in_h=8, in_w=32, iy0=-2, kernel_h=5), 32 * 12),
        (make(Kind.VMAX, **LONG, a_row=32, in_h=8, in_w=32, iy0=-1, ix0=-1, kernel_h=3, kernel_w=3), 256 * 9),
        (make(Kind.VAVG, out_base=512, a_row=32, in_h=8, in_w=32, kernel_h=8, kernel_w=32, m1=1, m2=1, shift=8), 256),
    ],
    ids=lambda value: f"{value.kind}" if isinstance(value, Instruction) else f"{value}",
)
@pytest.mark.parametrize("lanes", [4, 1])
def test_a_slice_a_cycle(instruction: Instruction, words: int, lanes: int, rng: random.Random) -> None:
    params = NANO.replace(vector_lanes=lanes)
    slices = words * params.vector_slices
    outcome = _check(params, rng, [instruction])
    assert slices <= _cycles(outcome) <= slices + OVERHEAD
    assert outcome.busy >= slices
    assert outcome.busy + outcome.stalled == _cycles(outcome)


@pytest.mark.parametrize(("height", "width"), [(1, 5), (5, 1), (1, 2), (3, 1)])
def test_a_sliding_maximum_reads_each_word_once(height: int, width: int, rng: random.Random) -> None:
    window = {"kernel_h": height, "kernel_w": width, "iy0": -(height // 2), "ix0": -(width // 2)}
    outcome = _check(NANO, rng, [make(Kind.VMAX, **LONG, a_row=32, in_h=8, in_w=32, **window)])
    assert outcome.reads["a"] <= 256


@pytest.mark.parametrize("port", ["a_base", "b_base", "out_base"])
@pytest.mark.parametrize("grant", [1.0, 0.3])
def test_an_address_past_the_end_stops_the_unit(port: str, grant: float, rng: random.Random) -> None:
    fields = {**LONG, "a_row": 32, "b_row": 32, port: NANO.scratch_words - 100}
    good = make(Kind.VCOPY, out_w=3)
    outcome = Bench(NANO, _words(rng, NANO), rng, grant).run([good, make(Kind.VADD, **fields), good], settle=400)
    assert outcome.fault == (Cause.SCRATCH_RANGE, 101)
    assert len(outcome.done) == 1
    assert outcome.idle


@pytest.mark.parametrize("kind", [Kind.VMUL, Kind.VAVG, Kind.VEXP, Kind.VSOFTMAX])
def test_an_instruction_that_the_hardware_lacks_is_refused(kind: Kind, rng: random.Random) -> None:
    params = SHAPES["small_without_options"]
    outcome = Bench(params, _words(rng, params), rng).run([make(Kind.VCOPY), make(kind), make(Kind.VCOPY)])
    assert outcome.fault == (Cause.BAD_FIELD, 101)
    assert len(outcome.done) == 1
    assert outcome.idle


@pytest.mark.parametrize("kind", [Kind.VMUL, Kind.VAVG])
def test_factors_that_differ_are_refused(kind: Kind, rng: random.Random) -> None:
    outcome = Bench(NANO, _words(rng, NANO), rng).run([make(kind, m1=3, m2=4)])
    assert outcome.fault == (Cause.BAD_FIELD, 100)
    assert not outcome.done


@pytest.mark.parametrize("grant", [1.0, 0.3])
def test_halt_leaves_no_pending_request(grant: float, rng: random.Random) -> None:
    instructions = [make(Kind.VCOPY, **LONG, a_row=32), make(Kind.VCOPY)]
    outcome = Bench(NANO, _words(rng, NANO), rng, grant).run(instructions, halt_at=60)
    assert len(outcome.started) == 1
    assert outcome.idle
    assert outcome.reads["a"] < 100
