"""Sums that leave the accumulators: golden model, instruction simulator and RTL wrap alike."""

import random
from dataclasses import dataclass, field, fields

import numpy as np
import pytest
from numpy.typing import NDArray

from intloom.compiler.ir import Conv, IntGraph, Tensor
from intloom.hw.spec.arith import Scale, requantize
from intloom.hw.spec.formats import pack_channels
from intloom.hw.spec.isa import Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim.machine import Machine, blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import NO_LAG, RandomProgram, Step, is_legal, random_program
from tests.hw.npu.disturbed import simulator
from tests.sim.random_programs.extremes import LONG
from tests.support.shapes import SHAPES

_OUTPUTS = 2
_OUT = 200
"""Word of the results, behind the input."""
_WIDE_TILES = {"kernel_w": 2, "in_blocks": 4095}
"""So many tiles of 32 rows that sums of values below -100 exceed 31 bits; the input blocks are one and the same."""
_NARROW_TILES = {"kernel_w": 9, "in_blocks": 2}
"""144 products of more than 10,000."""


@dataclass(frozen=True, eq=False)
class NegativeProgram(RandomProgram):
    """Every input and weight is about -115; the channels' constants bring the wrapped sums to bytes."""

    records: bytes = field(default=b"")

    def constant_memory(self) -> dict[int, bytes]:
        """Memories of such values."""
        p, noise = self.params, np.random.default_rng(self.seed)
        words = p.scratch_words + p.weight_words
        image = bytearray(noise.integers(-128, -100, words * p.word_bytes, dtype=np.int8).tobytes())
        at = p.scratch_words * p.word_bytes
        image[at : at + len(self.records)] = self.records
        return super().constant_memory() | {self.image_word: bytes(image)}


def _machine(program: RandomProgram) -> Machine:
    """The memories when the convolution begins."""
    p = program.params
    image = np.frombuffer(program.contents()[program.image_word], np.int8).reshape(-1, p.word_bytes)
    machine = blank_machine(p, np.zeros(p.word_bytes, np.uint8))
    machine.scratch[:], machine.weights[:] = image[: p.scratch_words], image[p.scratch_words :]
    return machine


def _records(params: HardwareParams, rng: random.Random) -> tuple[list[int], list[Scale]]:
    """Constants of channels: every sum within the accumulator's range becomes a byte."""
    bits = params.mantissa_bits
    biases = [rng.randint(-3000, 3000) for _ in range(params.cols)]
    return biases, [Scale(rng.getrandbits(bits - 1) | 1 << bits - 1, params.acc_bits - 8 + bits) for _ in biases]


def _weights(machine: Machine, i: Instruction) -> NDArray[np.int8]:
    """Weights of a convolution with one kernel row: [channel, input channel, 0, kernel column]."""
    p = machine.params
    at = (p.channel_words + np.arange(i["kernel_w"] * i["in_blocks"] * p.cols)) % p.weight_words
    tiles = machine.weights[at].reshape(i["kernel_w"], i["in_blocks"], p.cols, p.rows)
    return tiles.transpose(2, 1, 3, 0).reshape(p.cols, -1, 1, i["kernel_w"])


def _input(machine: Machine, i: Instruction) -> NDArray[np.int8]:
    """The input tensor; all of its blocks are one and the same."""
    words = machine.scratch[: _OUTPUTS + i["kernel_w"] - 1]
    return np.tile(words.T, (i["in_blocks"], 1))[None, :, None]


def _golden(i: Instruction, machine: Machine, biases: list[int], scales: list[Scale]) -> NDArray[np.int8]:
    """The golden model's result: [channel, pixel]."""
    x, p = _input(machine, i), machine.params
    constants = {"mantissa": [s.mantissa for s in scales], "shift": [s.shift for s in scales]}
    node = Conv(
        name="n",
        inputs=("x",),
        output="y",
        weights=_weights(machine, i),
        bias=np.array(biases, np.int32),
        mantissa=np.array(constants["mantissa"], np.uint32),
        shift=np.array(constants["shift"], np.uint8),
        zp_in=0,
        zp_out=0,
        pads=(0, 0, 0, 0),
        strides=(1, 1),
        dilations=(1, 1),
        group=1,
        table=None,
    )
    tensors = {"x": Tensor("x", x.shape, 1.0, 0, False)}
    tensors["y"] = Tensor("y", (1, p.cols, 1, _OUTPUTS), 1.0, 0, False)
    graph = IntGraph("g", tensors, (node,), ("x",), ("y",))
    return run_graph(graph, {"x": x}, match=p.match)["y"].reshape(p.cols, _OUTPUTS)


def _specified(i: Instruction, machine: Machine, biases: list[int], scales: list[Scale]) -> NDArray[np.int8]:
    """The specification's result: sums without a limit, cut to the accumulator's bits."""
    p, half = machine.params, 1 << machine.params.acc_bits - 1
    x, weights = _input(machine, i)[0, :, 0].astype(np.int64), _weights(machine, i)[:, :, 0].astype(np.int64)
    found = np.zeros((p.cols, _OUTPUTS), np.int8)
    for channel, pixel in np.ndindex(found.shape):
        total = int((x[:, pixel : pixel + i["kernel_w"]] * weights[channel]).sum())
        assert total >= half, "the sum must not fit the accumulator"
        wrapped = (total + half) % (2 * half) - half
        found[channel, pixel] = requantize(wrapped + biases[channel], scales[channel], 0, p.match)
    return found


def _check(params: HardwareParams, tiles: dict[str, int], seed: int, *, golden: bool) -> None:
    rng = random.Random(seed)
    i = make(Kind.CONV, **tiles, in_h=1, in_w=200, in_row=200, out_w=_OUTPUTS, out_base=_OUT)
    biases, scales = _records(params, rng)
    plain = random_program(seed % (1 << 16), params)
    given = {f.name: getattr(plain, f.name) for f in fields(plain)} | {"steps": (Step(i, NO_LAG),)}
    program = NegativeProgram(**given, records=pack_channels(biases, scales))
    assert is_legal(i, params, ())
    machine = _machine(program)
    expected = _specified(i, machine, biases, scales)
    assert set(expected.flat) - {-128, 127}, "a saturated result says little about its sum"
    if golden:
        np.testing.assert_array_equal(_golden(i, machine, biases, scales), expected)
    SEMANTICS[i.kind](machine, i)
    np.testing.assert_array_equal(machine.scratch[_OUT : _OUT + _OUTPUTS, : params.cols].T, expected)
    found = compare(program, simulator_of(program) if params is LONG else simulator(params))
    assert not found.problem, found.problem


@pytest.mark.slow
@pytest.mark.nightly
def test_sums_of_more_than_32_bits_wrap(seed: int) -> None:
    _check(LONG, _WIDE_TILES, seed, golden=True)


@pytest.mark.slow
def test_sums_of_more_than_20_bits_wrap(seed: int) -> None:
    """The compiler refuses such networks, and the golden model has no such accumulators; the hardware still wraps."""
    _check(SHAPES["halves"], _NARROW_TILES, seed, golden=False)
