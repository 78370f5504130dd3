"""One program that needs the highest bits of addresses, steps and counts, on hardware with the largest memories."""

import random
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from intloom.hw.spec.arith import Affine, Scale
from intloom.hw.spec.formats import pack_channels, pack_residual
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import BY_KIND, QUEUED_UNITS, Instruction, Kind, Unit, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import TAPS, pack_depthwise
from intloom.sim.random_programs.program import RandomProgram

WIDE = HardwareParams(
    rows=4, cols=4, lanes=4, strip=256, scratch_kib=1024, scratch_banks=2, weight_kib=1024, axi_data_bits=32,
    axi_addr_bits=64, axi_burst=256, axi_outstanding=32, queue_depth=2, vector_lanes=4,
    vector_softmax=True, vector_norm=True, vector_depthwise=True, word_code=True, constant_check=True,
)  # fmt: skip
"""The most words in both memories, and the longest addresses, strips and bursts."""
LONG = HardwareParams(
    rows=32, cols=4, lanes=4, strip=16, scratch_kib=8, scratch_banks=2, weight_kib=8, axi_data_bits=256,
    axi_addr_bits=64, axi_burst=4, axi_outstanding=1, queue_depth=2, vector_lanes=8, lut_products=128,
    vector_softmax=True, vector_norm=True,
)  # fmt: skip
"""The longest word, for fields that count its bytes."""
BASE = 0xFEDC_BA98_F000_0000
"""Byte address of the memory: the offsets below carry into its upper half."""
_IMAGE = 1 << 28
_PROGRAM = (1 << 31) + (1 << 29) + 5
LOW_SOURCE, HIGH_SOURCE = 1 << 27, (1 << 31) + (1 << 27)
"""Words that loads read; the two differ in the highest bit of an offset."""
LOW_TARGET, HIGH_TARGET = 1 << 26, (1 << 31) + (1 << 26)
"""Words that stores write."""
SOURCE_WORDS = (1 << 19) + 4096
PLAIN, RESIDUAL, TIES, TABLE = 77, 200, 300, 400
"""Weight words with constants of a CONV: channels alone, behind residual constants (two kinds), behind a table."""
DEPTHWISE_END = 8000
"""The scratchpad word behind constants of a VDEPTHWISE with 15 kernel rows; those with fewer rows use their end."""
TELLING = 1 << 12
"""From this weight word on, and in the sources of loads, every word used as a bias or scale changes results."""
_TELLING_SHIFT = 47


def telling(rng: np.random.Generator, words: int) -> bytes:
    """Words of four bytes that are a mantissa with a shift: as bias and scale they give results from 0 to 94."""
    mantissas = rng.integers(0, 1 << 24, words, dtype=np.uint32)
    return (mantissas | np.uint32(_TELLING_SHIFT << 24)).astype("<u4").tobytes()


def _records(params: HardwareParams) -> dict[int, bytes]:
    """Constants with which results of one tile are rarely saturated."""
    rng = random.Random(5)
    biases = [rng.randint(-3000, 3000) for _ in range(params.cols)]
    channels = pack_channels(biases, [Scale((1 << 23) + rng.getrandbits(22), 31) for _ in range(params.cols)])
    wide = Affine((1 << 24) - 12345, -(1 << 23) + 77, 3 << 26, 0)
    halves = Affine(1, 1, 0, 0)

    def residual(constants: Affine) -> bytes:
        return pack_residual(constants).ljust(params.residual_words * params.word_bytes, b"\0") + channels

    return {
        PLAIN: channels,
        RESIDUAL: residual(wide),
        TIES: residual(halves),
        TABLE: rng.randbytes(256) + channels,
    }


def _depthwise_record(params: HardwareParams) -> bytes:
    """Constants of a VDEPTHWISE with which results are rarely saturated."""
    rng, rows = random.Random(6), BY_KIND[Kind.VDEPTHWISE].field("kernel_h").maximum
    weights = [[[rng.randint(-128, 127) for _ in range(params.rows)] for _ in range(TAPS)] for _ in range(rows)]
    biases = [rng.randint(-3000, 3000) for _ in range(params.rows)]
    scales = [Scale((1 << 23) + rng.getrandbits(22), 31) for _ in range(params.rows)]
    return pack_depthwise(weights, biases, scales, params.mantissa_bits)


@dataclass(frozen=True, eq=False)
class ExtremeProgram(RandomProgram):
    """Instructions one after the other: each waits for all before it."""

    body: tuple[Instruction, ...] = field(default=())

    def instructions(self) -> list[Instruction]:
        """Fill both memories, the body, store the scratchpad."""
        p = self.params
        fill = (
            make("LOAD", dram=self.image_word, n0=p.scratch_words),
            make("LOAD", dram=self.image_word + p.scratch_words, n0=p.weight_words, target=1),
        )
        drain = make("STORE", dram=self.result_word, n0=p.scratch_words)
        done = dict.fromkeys(QUEUED_UNITS, 0)

        def after(instruction: Instruction) -> Instruction:
            waits = {f"wait_{unit.name.lower()}": count for unit, count in done.items()}
            if instruction.unit is not Unit.CONTROL:
                done[instruction.unit] += 1
            return instruction.with_waits(waits)

        return [begin(p), *map(after, (*fill, *self.body, drain, make("END")))]

    def contents(self) -> dict[int, bytes]:
        """Scratchpad and weight memory, what loads read, and the program."""
        return {**self.data, self.program_word: self.code()}

    @cached_property
    def data(self) -> dict[int, bytes]:
        """All but the program."""
        p, rng = self.params, np.random.default_rng(self.seed)
        scratch = bytearray(rng.bytes(p.scratch_words * p.word_bytes))
        if p.vector_depthwise:
            record, end = _depthwise_record(p), DEPTHWISE_END * p.word_bytes
            scratch[end - len(record) : end] = record
        found = {self.image_word: bytes(scratch)}
        weights = bytearray(rng.bytes(TELLING * p.word_bytes))
        weights += telling(rng, p.weight_words * p.word_bytes // 4)
        for at, record in _records(p).items():
            weights[at * p.word_bytes : at * p.word_bytes + len(record)] = record
        found[self.image_word + p.scratch_words] = bytes(weights[: p.weight_words * p.word_bytes])
        words = SOURCE_WORDS * 4 // p.word_bytes
        return found | {at: telling(rng, words * p.word_bytes // 4) for at in (LOW_SOURCE, HIGH_SOURCE)}


def extreme_program(params: HardwareParams, body: list[Instruction]) -> ExtremeProgram:
    """The program with these instructions."""
    return ExtremeProgram(1, params, BASE, _IMAGE, _PROGRAM, 0, (), (), tuple(body))
