"""MAC unit in Verilator: random programs against the instruction simulator, faults, and throughput."""

import os
from functools import cache
from typing import Any

import numpy as np
import pytest
from amaranth.utils import exact_log2

from intloom.hw.mac.epilogue.epilogue import Epilogue
from intloom.hw.mac.unit import RESULTS_DEPTH
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.formats import pack_residual
from intloom.hw.spec.isa import Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import Cause
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.isa_sim.registry import SEMANTICS
from tests.hw.mac.bench import Bench, Outcome
from tests.hw.mac.cases import SCRATCH_WORDS, random_case
from tools.mutate.bench import ALONE_VARIABLE

_NANO = preset("nano").replace(weight_kib=64, lanes=4, strip=32)
PARAMS: dict[str, HardwareParams] = {
    "nano": _NANO,
    "tall": _NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16, acc_bits=20),
    "wide": _NANO.replace(rows=4, cols=8, lanes=1, strip=16, weight_sums=False),
    "exact": _NANO.replace(rows=16, cols=16, lanes=4, axi_data_bits=128, match="exact", mantissa_bits=16, acc_bits=24),
}

_NAMES: list[Any] = [name if name == "nano" else pytest.param(name, marks=pytest.mark.slow) for name in PARAMS]
"""One simulator is built for the quick tests."""


_kept = cache(Bench)


def _bench(name: str) -> Bench:
    """One for all tests, unless each may have a fault of its own."""
    return (Bench if os.environ.get(ALONE_VARIABLE) else _kept)(PARAMS[name])


_ONE = ("in_h", "in_w", "in_row", "in_plane", "out_h", "out_w", "out_row", "out_plane", "out_blocks")


def _conv(p: HardwareParams, **fields: int) -> Instruction:
    """A 3x3 convolution of a 32 x 32 image."""
    usual = {
        "kernel_h": 3, "kernel_w": 3, "out_blocks": 2, "out_h": 32, "out_w": 32, "in_h": 32, "in_w": 32,
        "iy0": -1, "ix0": -1, "in_row": 32, "in_plane": 1024, "in_row_off": (-32) % (1 << 20),
        "out_base": 1024, "out_row": 32, "out_plane": 1024,
    }  # fmt: skip
    return make(Kind.CONV, **{**usual, **fields})


def _noise(p: HardwareParams) -> tuple[np.ndarray, np.ndarray]:
    """Contents of both memories."""
    noise = np.random.default_rng(5)
    scratch = noise.integers(-128, 128, SCRATCH_WORDS * p.rows, dtype=np.int8)
    return scratch, noise.integers(-128, 128, p.weight_words * p.rows, dtype=np.int8)


def _run(name: str, program: list[Instruction], **options: int) -> Outcome:
    return _bench(name).run(program, *_noise(PARAMS[name]), **options)


def _simulated(p: HardwareParams, program: list[Instruction], scratch: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The scratchpad after the program, by the instruction simulator."""
    words = (memory.reshape(-1, p.rows).copy() for memory in (scratch, weights))
    machine = Machine(p, np.zeros((0, p.rows), np.int8), *words)
    for instruction in program:
        SEMANTICS[instruction.kind](machine, instruction)
    return machine.scratch


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("group", range(3))
def test_random_programs(name: str, group: int) -> None:
    p, changed = PARAMS[name], 0
    for seed in range(10 * group, 10 * group + 10):
        # A pixel that waits long for its residual has that of the next instruction behind it.
        pixels = seed % 5 == 4
        case = random_case(seed, p, 40 if pixels else 8, pixels=pixels)
        expected = _simulated(p, case.program, case.scratch, case.weights)
        outcome = _bench(name).run(
            case.program,
            case.scratch,
            case.weights,
            results_ready=(100, 50, 20)[seed % 3],
            residual_ready=5 if pixels else (100, 40)[seed % 2],
            offered=(100, 3)[seed // 2 % 2],
            seed=seed,
            # Waits in which the FIFO of results fills up, too.
            longest_wait=(1, 4 * RESULTS_DEPTH)[seed // 3 % 2],
        )
        assert (outcome.done, outcome.started, outcome.fault) == (len(case.program), len(case.program), 0), seed
        wrong = np.argwhere(outcome.scratch != expected)
        assert not len(wrong), f"seed {seed}: {len(wrong)} bytes differ, first at word and byte {wrong[0].tolist()}"
        changed += int((expected != case.scratch.reshape(-1, p.rows)).sum())
    assert changed > 10 * 20


@pytest.mark.parametrize("name", _NAMES[::3])
def test_numbers_of_blocks_with_each_bit(name: str) -> None:
    """As many as the scratchpad has words for; the weights, which have no end, repeat."""
    p = PARAMS[name]
    pixel = {"kernel_h": 1, "kernel_w": 1, "iy0": 0, "ix0": 0, "in_row_off": 0} | dict.fromkeys(_ONE, 1)
    program = [
        _conv(p, **pixel | {field: 1 << bit | 1, "out_base": SCRATCH_WORDS // 2})
        for field in ("in_blocks", "out_blocks")
        for bit in range(exact_log2(SCRATCH_WORDS) - 1)
    ]
    outcome = _run(name, program)
    assert (outcome.done, outcome.fault) == (len(program), 0)
    assert np.array_equal(outcome.scratch, _simulated(p, program, *_noise(p)))


@pytest.mark.parametrize("name", _NAMES[::3])
@pytest.mark.parametrize("zero_points", [0, 1])
def test_long_convolutions_lose_no_cycles(name: str, zero_points: int) -> None:
    p = PARAMS[name]
    fields = {"out_plane": 1024 * p.cols // p.rows, "weight_zero_points": zero_points}
    outcome = _run(name, [_conv(p, **fields)] * 3)
    pixels = 3 * 2 * 9 * 32 * 32
    assert outcome.busy == pixels
    # Pipeline fill and readout of the last strip, once for all three instructions.
    assert outcome.cycles <= pixels + 60 + p.strip * p.cols // p.lanes
    assert outcome.cycles <= pixels * 1.01


def test_pointwise_layer_runs_at_full_rate_during_readout() -> None:
    outcome = _run("nano", [_conv(_NANO, kernel_h=1, kernel_w=1, iy0=0, ix0=0, in_row_off=0)] * 4)
    assert outcome.cycles <= 4 * 2 * 32 * 32 + 100


def test_a_residual_waits_only_for_the_items_before_it() -> None:
    """Each second instruction has another latency in the epilogue: it waits until that is empty, not longer."""
    layer = _conv(_NANO, kernel_h=1, kernel_w=1, iy0=0, ix0=0, in_row_off=0, out_h=2, out_w=8, out_blocks=1, res_row=8)
    both, alike = (_run("nano", [layer.with_fields(residual=n % 2 * r) for n in range(16)]).cycles for r in (1, 0))
    assert 0 < both - alike < 15 * Epilogue.LATENCY


def test_ties_of_a_residual_are_rounded_as_the_instruction_says() -> None:
    """Half of the result and of the residual: each odd sum is a tie."""
    scratch, weights = _noise(_NANO)
    halves = np.frombuffer(pack_residual(Affine(1 << 15, 1 << 15, 0, 16)), np.int8)
    weights[: len(halves)] = halves
    results = []
    for even in (0, 1):
        program = [_conv(_NANO, out_h=8, out_w=8, residual=1, res_row=8, res_shift=16, res_even=even)]
        results.append(_bench("nano").run(program, scratch, weights).scratch)
        assert np.array_equal(results[-1], _simulated(_NANO, program, scratch, weights))
    assert not np.array_equal(*results)


def test_done_follows_the_last_pixel() -> None:
    small = _conv(_NANO, out_h=4, out_w=4, out_blocks=1, residual=1, res_row=4)
    assert _run("nano", [small]).cycles <= 9 * 16 + 75


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"in_base": SCRATCH_WORDS}, "input outside"),
        ({"out_base": SCRATCH_WORDS - 100}, "output outside"),
        ({"residual": 1, "res_base": SCRATCH_WORDS}, "residual outside"),
    ],
)
def test_address_outside_the_scratchpad(fields: dict[str, int], name: str) -> None:
    """Also while a read of a residual or a write waits: the unit is idle only after its grant."""
    good = _conv(_NANO, out_h=2, out_w=3, out_blocks=1, residual=1)
    program = [good, good, _conv(_NANO, **{"residual": 1} | fields), good]
    outcome = _run("nano", program, results_ready=20, residual_ready=10, most_cycles=50_000)
    assert (outcome.fault, outcome.cause, outcome.fault_index) == (1, Cause.SCRATCH_RANGE, 2), name
    assert outcome.done <= 2


@pytest.mark.parametrize("lane", [1, 4])
def test_bad_field(lane: int) -> None:
    good = _conv(_NANO, out_h=2, out_w=3, out_blocks=1)
    outcome = _run("nano", [good, good.with_fields(out_lane=lane), good], most_cycles=20_000)
    assert (outcome.fault, outcome.cause, outcome.fault_index) == (1, Cause.BAD_FIELD, 1)
