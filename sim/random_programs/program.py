"""Random programs: instructions with legal addresses, the waits that their hazards need, and memory contents."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.constant_check import add_crcs
from intloom.compiler.program.word_code import encode_words
from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, MAX_AFFINE_SHIFT, Affine, Scale
from intloom.hw.spec.conv_stream import continuable_pixels, conv_stream
from intloom.hw.spec.fields import DRAM_BITS
from intloom.hw.spec.formats import pack_channels, pack_residual
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import (
    BY_KIND,
    INSTRUCTION_BYTES,
    QUEUED_UNITS,
    AccessPattern,
    Instruction,
    Kind,
    LoadTarget,
    TableUse,
    Unit,
    encode,
    make,
)
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.vector_depthwise import TAPS, constant_words, pack_depthwise
from intloom.hw.spec.word_code import UNITS, group_words
from intloom.sim.random_programs.instructions import InstructionMaker
from intloom.sim.random_programs.words import Words, memory_words, words_of

_ISLAND_WORDS = 2048
_ISLANDS = 4
_ATTEMPTS = 200
_RECORDS = 16
_CODED_PAIRS, _CODED_WORDS = 6, 64
"""Pairs of coded runs, and the most words of a run."""
_LENGTH = 24
"""Most instructions that are drawn."""
_MOST_STEPS = 3
"""Instructions for one that is chosen: a CONV may have two loads of constants before it."""
NO_LAG = (1 << 20,) * 4
"""No waits but those for hazards."""


@dataclass(frozen=True)
class Step:
    """An instruction without waits."""

    instruction: Instruction
    lag: tuple[int, int, int, int]
    """Waits beyond those for hazards: for each unit, for all but so many of its instructions so far."""


@dataclass(frozen=True, eq=False)
class RandomProgram:
    """A program, and the memory that it runs on."""

    seed: int
    params: HardwareParams
    base: int
    """Byte address of the memory base."""
    image_word: int
    """First word of the initial scratchpad; that of the weight memory and the results follow."""
    program_word: int
    constants_word: int
    """First word of the constants of CONV and VDEPTHWISE, see `constants`, which the coded runs follow."""
    islands: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]

    @property
    def result_word(self) -> int:
        """First word of the scratchpad's content at the end."""
        return self.image_word + self.params.scratch_words + self.params.weight_words

    def with_steps(self, steps: Sequence[Step]) -> RandomProgram:
        """The same program with other instructions."""
        return replace(self, steps=tuple(steps))

    def instructions(self) -> list[Instruction]:
        """All instructions with their waits: fill both memories, the steps, store the scratchpad."""
        p = self.params
        weights_word = self.image_word + p.scratch_words
        fill = (
            make(Kind.LOAD, dram=self.image_word, n0=p.scratch_words),
            make(Kind.LOAD, dram=weights_word, n0=p.weight_words, target=1),
        )
        drain = make(Kind.STORE, dram=self.result_word, n0=p.scratch_words)
        order = _Order(p)
        body = [order.next(i, NO_LAG) for i in fill]
        body += [order.next(s.instruction, s.lag) for s in self.steps]
        body.append(order.next(drain, NO_LAG))
        end = make(Kind.END, **{f"wait_{u.name.lower()}": order.counts[u] for u in QUEUED_UNITS})
        code = [begin(p), *body, end]
        for first, data in self.constant_memory().items():
            code = [*add_crcs(code, data, first, p)]
        return code

    def code(self) -> bytes:
        """The encoded program."""
        return add_check(encode(i) for i in self.instructions())

    def contents(self) -> dict[int, bytes]:
        """Memory before the start: bytes by word."""
        noise = np.random.default_rng(self.seed + 1)
        islands = {first: noise.bytes(words * self.params.word_bytes) for first, words in self.islands}
        return self.constant_memory() | islands | {self.program_word: self.code()}

    def constant_memory(self) -> dict[int, bytes]:
        """What no instruction overwrites: the initial scratchpad and weight memory, and the constants."""
        p = self.params
        image = np.random.default_rng(self.seed).bytes((p.scratch_words + p.weight_words) * p.word_bytes)
        coded = (run.code.ljust(_coded_room(p) * p.word_bytes, b"\0") for run in _coded_runs(self.seed, p))
        records = constants(random.Random(self.seed), p)
        return {self.image_word: image, self.constants_word: b"".join([records, *coded])}


@dataclass
class _Order:
    """Waits from the hazards with all earlier instructions."""

    params: HardwareParams
    counts: dict[Unit, int] = field(default_factory=lambda: dict.fromkeys(QUEUED_UNITS, 0))
    earlier: list[tuple[Unit, int, Words]] = field(default_factory=list)

    def next(self, instruction: Instruction, lag: Sequence[int]) -> Instruction:
        """The instruction with its waits."""
        unit, words = instruction.unit, words_of(instruction, self.params)
        waits = {u: max(0, self.counts[u] - back) for u, back in zip(QUEUED_UNITS, lag, strict=True)}
        for other, number, before in self.earlier:
            if number > waits[other] and _conflict(unit, words, other, before):
                waits[other] = number
        self.counts[unit] += 1
        self.earlier.append((unit, self.counts[unit], words))
        return instruction.with_fields(**{f"wait_{u.name.lower()}": n for u, n in waits.items()})


def _meet(a: dict[str, NDArray[np.int64]], b: dict[str, NDArray[np.int64]]) -> bool:
    return any(bool(np.isin(a[name], b[name]).any()) for name in a.keys() & b.keys())


def _conflict(unit: Unit, words: Words, other: Unit, before: Words) -> bool:
    """Whether an instruction must wait for an earlier one: MAC and VEC write in order, and after their own reads."""
    if _meet(words.reads, before.writes):
        return True
    if unit is other and unit in (Unit.MAC, Unit.VEC):
        return False
    return _meet(words.writes, before.writes) or _meet(words.writes, before.reads)


def is_legal(i: Instruction, params: HardwareParams, islands: Sequence[tuple[int, int]]) -> bool:
    """Whether the addresses are in range, stores leave the program alone, and the result does not depend on timing."""
    words = words_of(i, params)
    scratch = [a["scratch"] for a in (words.reads, words.writes) if "scratch" in a]
    if any(a.size and int(a.max()) >= params.scratch_words for a in scratch):
        return False
    for accesses in (words.reads, words.writes):
        if "dram" in accesses and not _in_islands(accesses["dram"], islands):
            return False
    if i.kind is Kind.CONV and i["continue_sums"] and not continuable_pixels(i, params):
        return False
    if i.kind is Kind.VDEPTHWISE and i["a_ring"] and max(i["a_row_off"] + 1, i["a_row"]) > i["a_ring"]:
        return False
    # What an instruction reads of its own results depends on timing.
    if _meet(words.reads, words.writes):
        return False
    # The order in which one instruction writes its results is not defined, except for moves.
    return i.spec.pattern is AccessPattern.MOVE or len(np.unique(words.written)) == len(words.written)


def legal_instruction(
    maker: InstructionMaker, kind: Kind, wanted: Callable[[Instruction], bool] = lambda _: True
) -> Instruction | None:
    """A random legal instruction that is `wanted`, if some attempts find one; what it loads counts as loaded."""
    candidates = (maker.instruction(kind) for _ in range(_ATTEMPTS))
    legal = next((i for i in candidates if is_legal(i, maker.params, maker.islands) and wanted(i)), None)
    if legal is not None and loads_table(legal):
        maker.loaded.add(legal.unit)
    if legal is not None and legal.kind is Kind.CONV:
        maker.pixels = continuable_pixels(legal, maker.params)
    if legal is not None and legal.kind is Kind.VEXP:
        maker.exponentials.add(legal["part"])
    return legal


def _in_islands(addresses: NDArray[np.int64], islands: Sequence[tuple[int, int]]) -> bool:
    inside = np.zeros(len(addresses), bool)
    for first, words in islands:
        inside |= (addresses >= first) & (addresses < first + words)
    return bool(inside.all())


def loads_table(i: Instruction) -> bool:
    """Whether an instruction loads its unit's table."""
    return i.kind is Kind.VTABLE or (i.kind is Kind.CONV and i["table"] == TableUse.LOAD)


def record_words(params: HardwareParams) -> int:
    """Words of one record of constants: those of the residual addition, then those of the channels."""
    return params.residual_words + params.channel_words


_DEPTHWISE_ROWS = BY_KIND[Kind.VDEPTHWISE].field("kernel_h").maximum


def _record_area(params: HardwareParams) -> int:
    """Words of all records of constants: those of convolutions, and those of VDEPTHWISE on hardware that has it."""
    depthwise = constant_words(_DEPTHWISE_ROWS, TAPS) if params.vector_depthwise else 0
    return _RECORDS * (record_words(params) + depthwise)


def constant_area(params: HardwareParams) -> int:
    """Words of all constants: the records, and coded runs on hardware that decodes them."""
    return _record_area(params) + (2 * _CODED_PAIRS * _coded_room(params) if params.word_code else 0)


class _CodedRun(NamedTuple):
    words: int
    code: bytes


def _coded_room(params: HardwareParams) -> int:
    """The most words of memory that a coded run takes."""
    return _CODED_WORDS + ceil(_CODED_WORDS / (UNITS * group_words(params.rows)))


def _coded_runs(seed: int, params: HardwareParams) -> list[_CodedRun]:
    """Runs of words of any width on hardware that decodes them; every second one is the one before it, backwards."""
    rng = np.random.default_rng(seed + 2)
    runs: list[_CodedRun] = []
    for _ in range(_CODED_PAIRS if params.word_code else 0):
        count = int(rng.integers(1, _CODED_WORDS + 1))
        numbers = rng.integers(-128, 128, (count, params.rows)) >> rng.integers(rng.integers(8), 8, (count, 1))
        words = (numbers * (rng.random((count, 1)) < 0.8)).astype(np.int8)
        runs += [_CodedRun(count, encode_words(w.tobytes(), params.rows)) for w in (words, words[::-1])]
    return runs


def _coded_load(rng: random.Random, params: HardwareParams, runs: Sequence[_CodedRun], first: int) -> Instruction:
    """A LOAD of some of the coded runs, which begin at word `first`."""
    number, room = 2 * rng.randrange(len(runs) // 2), _coded_room(params)
    words, code = runs[number]
    # A pair of runs takes equally many words of memory.
    steps = [rng.choice((0, room)), 0]
    rng.shuffle(steps)
    local_s1, local_s2 = words + rng.randint(0, 3), 2 * words + rng.randint(0, 9)
    target = rng.choice([*LoadTarget])
    size = params.scratch_words if target is LoadTarget.SCRATCH else params.weight_words
    # The smallest weight memories do not hold four copies.
    extents = {(n1, n2): words + (n1 - 1) * local_s1 + (n2 - 1) * local_s2 for n1, n2 in product((1, 2), repeat=2)}
    (n1, n2), extent = rng.choice([item for item in extents.items() if item[1] <= size])
    return make(
        Kind.LOAD,
        target=target,
        dram=first + number * room,
        coded=len(code) // params.word_bytes,
        n0=words,
        n1=n1,
        n2=n2,
        dram_s1=steps[0],
        dram_s2=steps[1],
        local=rng.randint(0, size - extent),
        local_s1=local_s1,
        local_s2=local_s2,
    )


def _mantissa(rng: random.Random, bits: int) -> int:
    """Any mantissa: often a power of two, with which results tie, or a limit."""
    if rng.random() < 0.7:
        return rng.getrandbits(bits)
    return rng.choice((1 << bits - 1, 1 << rng.randrange(bits), 0, (1 << bits) - 1))


def _depthwise_record(rng: random.Random, params: HardwareParams) -> bytes:
    """Constants of a VDEPTHWISE with the largest kernel; those with a smaller one use the record's end."""
    channels, bits = range(params.rows), params.mantissa_bits
    # Without weights a result is the scaled bias: ties are then frequent.
    weighted = rng.random() < 0.75
    low, high = (-128, 127) if weighted else (0, 0)
    weights = [[[rng.randint(low, high) for _ in channels] for _ in range(TAPS)] for _ in range(_DEPTHWISE_ROWS)]
    extreme = rng.choice((3000, 3000, (1 << 31) - 1)) if weighted else 60
    biases = [rng.randint(-extreme, extreme) << (0 if weighted else rng.randrange(12)) for _ in channels]
    scales = [Scale(_mantissa(rng, bits), bits + rng.randint(2, 12)) for _ in channels]
    return pack_depthwise(weights, biases, scales, bits)


def constants(rng: random.Random, params: HardwareParams) -> bytes:
    """Records with which results are rarely saturated."""
    records = []
    for _ in range(_RECORDS):
        shift = rng.randint(0, MAX_AFFINE_SHIFT - 6)
        scale = (1 << min(shift, FACTOR_BITS - 1)) - 1
        m1, m2 = (rng.randint(-scale, scale) for _ in range(2))
        wide = rng.randint(-(1 << CONSTANT_BITS - 1), (1 << CONSTANT_BITS - 1) - 1)
        affine = Affine(m1, m2, wide if rng.random() < 0.3 else rng.randint(-60, 60) << shift, shift)
        records.append(pack_residual(affine).ljust(params.residual_words * params.word_bytes, b"\0"))
        biases = [rng.randint(-3000, 3000) if rng.random() < 0.8 else wide % (1 << 31) for _ in range(params.cols)]
        mantissas = (_mantissa(rng, params.mantissa_bits) for _ in range(params.cols))
        records.append(pack_channels(biases, [Scale(m, params.mantissa_bits + rng.randint(0, 12)) for m in mantissas]))
    if params.vector_depthwise:
        records += [_depthwise_record(rng, params) for _ in range(_RECORDS)]
    return b"".join(records)


def constant_loads(rng: random.Random, i: Instruction, params: HardwareParams, first: int) -> list[Step]:
    """Loads of constants that a CONV or VDEPTHWISE reads, from the records that begin at word `first`."""
    if i.kind is Kind.CONV:
        return _conv_loads(rng, i, params, first)
    if i.kind is Kind.VDEPTHWISE and rng.random() < 0.7:
        words, most = constant_words(i["kernel_h"], i["kernel_w"]), constant_words(_DEPTHWISE_ROWS, TAPS)
        end = first + _RECORDS * record_words(params) + (rng.randrange(_RECORDS) + 1) * most
        return [Step(make(Kind.LOAD, local=i["b_base"], dram=end - words, n0=words), NO_LAG)]
    return []


def _conv_loads(rng: random.Random, conv: Instruction, params: HardwareParams, first: int) -> list[Step]:
    """Loads of a record: the residual constants if the CONV reads them, the first block's channels in most cases."""
    stream = conv_stream(conv, params)
    record = first + rng.randrange(_RECORDS) * record_words(params)
    parts = [(stream.residual_start, record, params.residual_words)] if conv["residual"] else []
    if rng.random() < 0.7:
        parts.append((stream.blocks_start, record + params.residual_words, params.channel_words))
    local = [((conv["weights"] + at) % params.weight_words, dram, words) for at, dram, words in parts]
    loads = (make(Kind.LOAD, target=LoadTarget.WEIGHT, local=at, dram=dram, n0=words) for at, dram, words in local)
    return [Step(load, NO_LAG) for load in loads]


def _kinds(params: HardwareParams) -> list[Kind]:
    enabled = params.to_dict()
    queued = [s for s in BY_KIND.values() if s.unit in QUEUED_UNITS]
    return [s.kind for s in queued if not s.requires or enabled[s.requires]]


def _layout(rng: random.Random, params: HardwareParams, length: int) -> tuple[int, list[int]]:
    """A memory base, and word offsets of the image, the program and the islands: anywhere in the address space."""
    # LIMIT has as many bits as an offset: the last word that an offset can name is in no window.
    word, reach = params.word_bytes, min(memory_words(params), (1 << DRAM_BITS) - 1)
    sizes = [2 * params.scratch_words + params.weight_words, length * INSTRUCTION_BYTES // word + 64]
    sizes += [constant_area(params)] + [_ISLAND_WORDS] * _ISLANDS
    # Bases that need every bit of the address; offsets then stay below the end of the address space.
    space = 1 << min(params.axi_addr_bits, 40)
    base = rng.choice((0, space // 2, rng.randrange(space // 2), space // 4 * 3)) // 4096 * 4096
    reach = min(reach, (space - base) // word)
    near = min(reach, max(1 << 18, 2 * sum(sizes)))
    if params.axi_addr_bits > 40:
        base += rng.getrandbits(params.axi_addr_bits - 40) << 40
    while True:
        starts = [rng.choice((rng.randrange(reach - s), reach - s, rng.randrange(near - s))) for s in sizes]
        spans = sorted((at, at + s) for at, s in zip(starts, sizes, strict=True))
        if all(stop <= start for (_, stop), (start, _) in pairwise(spans)):
            return base, starts


def random_program(seed: int, params: HardwareParams, kinds: Sequence[Kind] = ()) -> RandomProgram:
    """The program of this seed, of `kinds` if there are any; equal seeds and parameters give equal programs."""
    rng = random.Random(seed)
    base, (image, program, constants_word, *islands) = _layout(rng, params, _MOST_STEPS * _LENGTH + 5)
    spans = [(first, _ISLAND_WORDS) for first in islands]
    maker = InstructionMaker(rng, params, spans)
    known = _kinds(params)
    # A program of few kinds has more hazards between neighbors of one unit.
    chosen = kinds or rng.choice((known, rng.sample(known, 3), [Kind.CONV, Kind.LOAD, Kind.STORE]))
    runs, first_run = _coded_runs(seed, params), constants_word + _record_area(params)
    steps = []
    for _ in range(rng.randint(1, _LENGTH)):
        kind = rng.choice(chosen)
        coded = runs and kind is Kind.LOAD and rng.random() < 0.5
        instruction = _coded_load(rng, params, runs, first_run) if coded else legal_instruction(maker, kind)
        if instruction is None:
            continue
        lag = (rng.choice((1 << 20, 1 << 20, rng.randrange(4))) for _ in QUEUED_UNITS)
        steps += constant_loads(rng, instruction, params, constants_word)
        steps.append(Step(instruction, (next(lag), next(lag), next(lag), next(lag))))
    return RandomProgram(seed, params, base, image, program, constants_word, tuple(spans), tuple(steps))
