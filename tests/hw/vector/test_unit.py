"""Vector unit against the instruction simulator, whose instructions `tests/sim/isa_sim` compares with plain loops."""

import random

import numpy as np
import pytest

from intloom.compiler.program.cost import instruction_cost
from intloom.hw.affine import AffineLane
from intloom.hw.spec.arith import Scale
from intloom.hw.spec.isa import Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import Cause
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.hw.spec.vector_depthwise import GROUPS, constant_words, pack_depthwise, walk_cycles, walk_words
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.depthwise_columns import DepthwiseColumns
from intloom.hw.vector.depthwise_epilogue import DepthwiseEpilogue
from intloom.hw.vector.operand_fetcher import OperandFetcher
from intloom.hw.vector.operand_stage import OperandStage
from intloom.hw.vector.operation import VECTOR_KINDS, kinds_of
from intloom.hw.vector.raster_walker import RasterWalker
from intloom.hw.vector.sequencer import Sequencer
from intloom.sim.isa_sim.machine import blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from tests.hw.instructions import BenchInstructions
from tests.hw.vector.bench import Bench, Outcome
from tests.support.nightly import with_nightly

NANO = preset("nano").replace(scratch_kib=4, vector_lanes=4)
SMALL = preset("small").replace(scratch_kib=8, vector_lanes=8)
NORM = NANO.replace(vector_norm=True)
DEPTHWISE = NANO.replace(vector_depthwise=True)
EVERY = NANO.replace(vector_softmax=True, vector_norm=True, vector_depthwise=True)
"""All kinds of instructions: one design for many tests, since it takes longer to compile than to simulate."""
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
    "small_with_softmax": SMALL.replace(vector_softmax=True, vector_norm=True, vector_lanes=2),
    "small_with_depthwise": SMALL.replace(vector_depthwise=True, vector_lanes=2, match="exact", mantissa_bits=11),
}


def _words(rng: random.Random, params: HardwareParams) -> list[bytes]:
    return [rng.randbytes(params.word_bytes) for _ in range(params.scratch_words)]


def _constants(rng: random.Random, params: HardwareParams, i: Instruction) -> bytes:
    """Constants of a depthwise convolution with which most results are within the bytes' range."""
    lanes = range(params.rows)
    weights = [[[rng.randint(-128, 127) for _ in lanes] for _ in range(i["kernel_w"])] for _ in range(i["kernel_h"])]
    biases = [rng.choice((0, rng.randint(-1 << 14, 1 << 14))) for _ in lanes]
    bits = params.mantissa_bits
    scales = [Scale(rng.getrandbits(bits) | 1 << bits - 1, bits + rng.randint(6, 10)) for _ in lanes]
    return pack_depthwise(weights, biases, scales, bits)


def _memory(rng: random.Random, params: HardwareParams, instructions: list[Instruction]) -> list[bytes]:
    words = _words(rng, params)
    for i in instructions:
        if i.kind is Kind.VDEPTHWISE:
            data, size = _constants(rng, params, i), params.word_bytes
            for k in range(0, len(data), size):
                words[i["b_base"] + k // size] = data[k : k + size]
    return words


def _check(
    params: HardwareParams,
    rng: random.Random,
    instructions: list[Instruction],
    grant: float = 1.0,
    offer: float = 1.0,
    write_grant: float | None = None,
    **reset: int,
) -> Outcome:
    """Run on hardware and instruction simulator; every byte of memory must agree."""
    words = _memory(rng, params, instructions)
    machine = blank_machine(params, np.zeros(0, np.uint8))
    machine.scratch[:] = np.frombuffer(b"".join(words), np.int8).reshape(machine.scratch.shape)
    for instruction in instructions:
        SEMANTICS[instruction.kind](machine, instruction)
    outcome = Bench(params, words, rng, grant, offer, write_grant).run(instructions, **reset)
    assert outcome.fault is None
    assert len(outcome.done) == len(outcome.started) == len(instructions)
    expected = [word.tobytes() for word in machine.scratch]
    wrong = [k for k, (got, want) in enumerate(zip(outcome.words, expected, strict=True)) if got != want]
    assert not wrong, (wrong[:5], [i.values for i in instructions])
    assert outcome.idle
    return outcome


_COLLECTING = {Kind.VSOFTMAX: 2 * GROUPS, Kind.VNORM: GROUPS, Kind.VDEPTHWISE: GROUPS}


def _begin_again(kind: Kind, lanes: int, rng: random.Random, cycles: int) -> None:
    """A soft reset some cycles after the first write, when a unit is in the middle of slices, groups or windows."""
    params = EVERY.replace(vector_lanes=lanes)
    maker = BenchInstructions(rng, params, exponentials=False)
    # With exponentials of 0 all results of a Softmax are equal, in whatever order they come.
    before = [Kind.VTABLE, *[Kind.VEXP] * (EXPONENTIAL_BYTES if kind is Kind.VSOFTMAX else 0)]
    _check(params, rng, [maker.instruction(each) for each in (*before, kind, kind)], reset_after_write=cycles)


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize("lanes", with_nightly((4, 2, 1), (2,)))
def test_each_kind_begins_again_after_a_soft_reset(kind: Kind, lanes: int, rng: random.Random) -> None:
    _begin_again(kind, lanes, rng, rng.randrange(10))


@pytest.mark.parametrize(
    ("kind", "cycles"),
    # A Softmax collects in one of three passes only.
    [(kind, k) for kind, count in _COLLECTING.items() for k in range(count)],
)
def test_slices_of_groups_begin_again_after_a_soft_reset(kind: Kind, cycles: int, rng: random.Random) -> None:
    """In each cycle in which a part of a slice may have been collected; a slice of a whole word has most groups."""
    _begin_again(kind, NANO.vector_lanes, rng, cycles)


@pytest.mark.parametrize(
    ("params", "grant"),
    [(BASE.replace(vector_lanes=8, vector_softmax=True), 0.5), (EVERY.replace(vector_lanes=1), 1.0)],
    ids=["groups of half a word", "bytes"],
)
def test_a_softmax_uses_the_exponentials_loaded_before(
    params: HardwareParams, grant: float, rng: random.Random
) -> None:
    maker = BenchInstructions(rng, params)
    parts = [make(Kind.VEXP, a_base=3 + 40 * part, part=part) for part in range(EXPONENTIAL_BYTES)]
    kinds = (*[Kind.VSOFTMAX] * 3, Kind.VADD, Kind.VTABLE, Kind.VSOFTMAX)
    # In the order of the program: only instructions after the VTABLE use the table.
    first, *others = [maker.instruction(kind) for kind in kinds]
    # In one of them all bytes count.
    _check(params, rng, [*parts, first.with_fields(last_bytes=params.rows), *others], grant, grant)


@pytest.mark.parametrize(
    "kind", with_nightly((Kind.VCOPY, Kind.VMAX, Kind.VSOFTMAX, Kind.VNORM, Kind.VDEPTHWISE), (Kind.VCOPY, Kind.VMAX))
)
def test_results_wait_for_their_writes(kind: Kind, rng: random.Random) -> None:
    """The memory takes a write in 30 cycles: no word issues without an entry in the FIFO of results."""
    parts = [make(Kind.VEXP, a_base=3 + 40 * part, part=part) for part in range(EXPONENTIAL_BYTES)]
    own = {"last_bytes": 3} if kind in (Kind.VSOFTMAX, Kind.VNORM) else {}
    own |= {"in_h": 8, "in_w": 12} if kind in (Kind.VMAX, Kind.VDEPTHWISE) else {}
    work = make(kind, out_h=8, out_w=12, out_base=512, out_row=12, a_base=256, a_row=12, **own)
    outcome = _check(EVERY, rng, [*parts, work] if kind is Kind.VSOFTMAX else [work], write_grant=1 / 30)
    assert outcome.stalled > outcome.busy, "a write that waits is no work"


DAILY = ("base_in_halves", "small_without_options", "small_with_softmax", "small_with_depthwise")
"""Shapes of the daily random programs; the other tests have whole words, halves and bytes of `nano`."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", with_nightly(SHAPES, SHAPES.keys() - set(DAILY)))
@pytest.mark.parametrize("count", [9, pytest.param(24, marks=pytest.mark.nightly)])
def test_random_programs(count: int, shape: str, rng: random.Random) -> None:
    params = SHAPES[shape]
    maker = BenchInstructions(rng, params, exponentials=False)
    kinds = kinds_of(params)
    instructions = [maker.instruction(rng.choice(kinds)) for _ in range(count)]
    grant = rng.choice((1.0, 0.4))
    _check(params, rng, instructions, grant, offer=grant)


LONG = {"out_h": 4, "out_w": 16, "out_base": 512, "out_row": 16}
"""An operation of 64 words."""
_WALKS = 6
"""Cycles in the walkers, the slicer and the pool, and of the write."""
OVERHEAD = Sequencer.LATENCY + OperandFetcher.LATENCY + Datapath.LATENCY + _WALKS
"""Cycles that an instruction may cost besides its words."""


def _cycles(outcome: Outcome) -> int:
    return outcome.done[0] - outcome.started[0]


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (make(Kind.VCOPY, **LONG, a_row=16), 64),
        (make(Kind.VCOPY, **LONG, a_row=8, up_h=2, up_w=2), 64),
        (make(Kind.VADD, **LONG, a_row=16, b_base=256, b_row=16, m1=1, m2=1), 64),
        (make(Kind.VADD, **LONG, a_row=16, b_base=3, b_row=16, m1=1, m2=1), 64),
        (make(Kind.VMUL, **LONG, a_row=16, b_base=256, b_row=16, m1=1, m2=1), 64),
        (make(Kind.VMAX, **LONG, a_row=16, in_h=4, in_w=16, ix0=-2, kernel_w=5), 4 * 20),
        (make(Kind.VMAX, **LONG, a_row=16, in_h=4, in_w=16, iy0=-2, kernel_h=5), 16 * 8),
        (make(Kind.VMAX, **LONG, a_row=16, in_h=4, in_w=16, iy0=-1, ix0=-1, kernel_h=3, kernel_w=3), 64 * 9),
        (make(Kind.VAVG, out_base=512, a_row=16, in_h=4, in_w=16, kernel_h=4, kernel_w=16, m1=1, m2=1, shift=6), 64),
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


DEPTHWISE_START = Sequencer.CONSTANTS + RasterWalker.LATENCY + OperandFetcher.LATENCY
"""Cycles to the first word of the constants."""
DEPTHWISE_END = DepthwiseColumns.LATENCY + DepthwiseEpilogue.LATENCY + Datapath.BYTES_LATENCY + 1
"""Cycles from a last word to the end: its write comes one cycle after the result, and ends the instruction."""
_LAYER = {"in_h": 9, "in_w": 60, "a_row": 60, "iy0": -1, "ix0": -1, "out_base": 700, "b_base": 620}
"""A depthwise convolution."""


@pytest.mark.parametrize(
    "shape",
    [
        {"kernel_h": 3, "out_h": 3, "out_w": 9},
        {"kernel_h": 3, "out_h": 2, "out_w": 7, "stride_h": 2, "stride_w": 2},
        {"kernel_h": 1, "out_h": 3, "out_w": 12},
        {"kernel_h": 1, "out_h": 8, "out_w": 1, "stride_h": 4, "stride_w": 4},
        {"kernel_h": 15, "out_h": 2, "out_w": 2},
        {"kernel_h": 2, "out_h": 3, "out_w": 1},
        {"kernel_h": 5, "kernel_w": 5, "out_h": 2, "out_w": 4},
        {"kernel_h": 1, "kernel_w": 1, "out_h": 3, "out_w": 5},
        {"kernel_h": 3, "kernel_w": 2, "out_h": 3, "out_w": 4, "stride_h": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("lanes", [4, 1])
def test_cycles_of_a_depthwise_convolution(shape: dict[str, int], lanes: int, rng: random.Random) -> None:
    instruction = make(Kind.VDEPTHWISE, **{"kernel_w": 3} | _LAYER | shape, out_row=shape["out_w"], zp_in=7)
    outcome = _check(DEPTHWISE.replace(vector_lanes=lanes), rng, [instruction])
    weights = instruction["kernel_h"] * instruction["kernel_w"]
    saved = max(0, GROUPS - weights)
    # Biases and scales are loaded while the first window is walked, which takes as long.
    start = DEPTHWISE_START + max(weights, constant_words(0, 0) + 1)
    assert _cycles(outcome) == start + walk_cycles(instruction) - saved + DEPTHWISE_END
    assert outcome.busy + outcome.stalled == _cycles(outcome)
    assert outcome.reads["a"] <= walk_words(instruction)
    assert outcome.reads["b"] == constant_words(instruction["kernel_h"], instruction["kernel_w"])


_JOINED: list[dict[str, int]] = [
    {"kernel_h": 3, "out_h": 3, "out_w": 9},
    {"kernel_h": 3, "out_h": 2, "out_w": 7, "stride_h": 2, "stride_w": 2},
    {"kernel_h": 1, "kernel_w": 1, "out_h": 1, "out_w": 1},
    {"kernel_h": 1, "kernel_w": 1, "out_h": 1, "out_w": 3},
    {"kernel_h": 1, "out_h": 3, "out_w": 1, "stride_h": 4, "stride_w": 4},
    {"kernel_h": 5, "kernel_w": 5, "out_h": 2, "out_w": 2},
]


@pytest.mark.parametrize("grant", [1.0, 0.1])
@pytest.mark.parametrize("first", _JOINED, ids=str)
def test_a_depthwise_convolution_joins_the_one_before(first: dict[str, int], grant: float, rng: random.Random) -> None:
    """The fields that the drain still needs differ, and so do shapes."""
    shapes = [first, *rng.sample(_JOINED, 2), first]
    params = _depthwise_shape(rng)
    instructions = [maker.instruction(Kind.VTABLE) for maker in [BenchInstructions(rng, params)]]
    for number, shape in enumerate(shapes):
        own = {"zp_in": rng.randint(-128, 127), "zp_out": rng.randint(-20, 20), "table": rng.randint(0, 1)}
        at = {"out_base": 700 + 32 * number, "b_base": 400 + 35 * number, "out_row": shape["out_w"]}
        instructions.append(make(Kind.VDEPTHWISE, **{"kernel_w": 3} | _LAYER | shape | at | own | {"in_h": 6}))
    _check(params, rng, instructions, grant, offer=rng.choice((0.1, 1.0)), write_grant=rng.choice((grant, 0.1)))


@pytest.mark.parametrize("word", range(17))
@pytest.mark.parametrize("write_grant", [1.0, 0.1])
def test_constants_that_are_results_of_the_instruction_before(
    word: int, write_grant: float, rng: random.Random
) -> None:
    """The last result is a word of the next instruction's constants, which are read while it is in flight."""
    shape = {"kernel_h": 3, "kernel_w": 3, "out_h": 1, "out_w": 9, "iy0": 0}
    first = make(Kind.VDEPTHWISE, **_LAYER | shape | {"b_base": 400, "out_base": 620 + word - 8})
    second = make(Kind.VDEPTHWISE, **_LAYER | shape, out_row=9)
    _check(DEPTHWISE, rng, [first, second], write_grant=write_grant)


@pytest.mark.parametrize("write_grant", [1.0, 0.05])
@pytest.mark.parametrize("faults", [None, 0, 1])
def test_a_fault_while_two_depthwise_convolutions_are_in_flight(
    faults: int | None, write_grant: float, rng: random.Random
) -> None:
    """Constants outside the scratchpad are read in the drain; the fault is that of the second instruction.

    The first one ends before. If its last write is outside, the fault is its own.
    """
    shape = {"kernel_h": 3, "kernel_w": 3, "out_h": 1, "out_w": 2}
    beyond = DEPTHWISE.scratch_words
    first = make(Kind.VDEPTHWISE, **_LAYER | shape | ({"out_base": beyond - 1} if faults == 0 else {}))
    second = make(Kind.VDEPTHWISE, **_LAYER | shape | ({} if faults is None else {"b_base": beyond + 5}))
    words = _memory(rng, DEPTHWISE, [first])
    outcome = Bench(DEPTHWISE, words, rng, write_grant=write_grant).run([first, second])
    assert outcome.fault == (None if faults is None else (Cause.SCRATCH_RANGE, 100 + faults))
    assert len(outcome.done) == (2 if faults is None else faults)


def _depthwise_shape(rng: random.Random) -> HardwareParams:
    return rng.choice([DEPTHWISE, *(SHAPES[name] for name in ("base", "base_in_halves", "small_with_depthwise"))])


@pytest.mark.parametrize("grant", with_nightly((0.3, 0.8), (0.8,)))
def test_depthwise_convolutions_wait_for_grants(grant: float, rng: random.Random) -> None:
    params = _depthwise_shape(rng)
    maker = BenchInstructions(rng, params)
    kinds = (Kind.VTABLE, Kind.VDEPTHWISE, Kind.VCOPY, Kind.VDEPTHWISE, Kind.VADD, Kind.VDEPTHWISE)
    _check(params, rng, [maker.instruction(kind) for kind in kinds], grant)


@pytest.mark.parametrize("cycle", [0, 16, 40, 90])
def test_a_soft_reset_ends_a_depthwise_convolution(cycle: int, rng: random.Random) -> None:
    params = EVERY.replace(vector_lanes=rng.choice((1, 2, 4)))
    maker = BenchInstructions(rng, params)
    convolution = make(Kind.VDEPTHWISE, **_LAYER, kernel_h=3, kernel_w=3, out_h=2, out_w=9)
    instructions = [convolution, maker.instruction(Kind.VADD)]
    _check(params, rng, instructions, rng.choice((0.5, 1.0)), reset_at=cycle + rng.randrange(20))


@pytest.mark.parametrize("grant", [1.0, 0.4])
@pytest.mark.parametrize("cycle", [25, 45, 80])
def test_a_halt_stops_a_depthwise_convolution(cycle: int, grant: float, rng: random.Random) -> None:
    instructions = [make(Kind.VDEPTHWISE, **_LAYER, kernel_h=3, out_h=8, out_w=30, out_row=30), make(Kind.VCOPY)]
    outcome = Bench(DEPTHWISE, _words(rng, DEPTHWISE), rng, grant).run(instructions, halt_at=cycle)
    assert len(outcome.started) == 1
    assert outcome.idle and not outcome.done
    assert outcome.reads["a"] < cycle


@pytest.mark.parametrize("cycle", [60, 61, 62, 63])
def test_a_halted_unit_is_idle_once_its_write_is_granted(cycle: int, rng: random.Random) -> None:
    """The bench sees that no request waits then."""
    add = make(Kind.VADD, **{**LONG, "a_row": 32, "b_row": 32})
    outcome = Bench(NANO, _words(rng, NANO), rng, write_grant=0.05).run([add], halt_at=cycle, settle=400)
    assert outcome.idle and not outcome.done


@pytest.mark.parametrize("port", ["a_base", "b_base", "out_base"])
def test_a_depthwise_convolution_past_the_end_stops_the_unit(port: str, rng: random.Random) -> None:
    fields = {**_LAYER, "kernel_h": 3, "out_h": 2, "out_w": 30, port: DEPTHWISE.scratch_words - 10}
    outcome = Bench(DEPTHWISE, _words(rng, DEPTHWISE), rng).run([make(Kind.VDEPTHWISE, **fields)], settle=400)
    assert outcome.fault == (Cause.SCRATCH_RANGE, 100)
    assert outcome.idle


@pytest.mark.parametrize("fields", [{"blocks": 65}, {"last_bytes": 17}])
def test_a_normalization_of_too_many_channels_is_refused(fields: dict[str, int], rng: random.Random) -> None:
    params = BASE.replace(vector_norm=True)
    outcome = Bench(params, _words(rng, params), rng).run([make(Kind.VNORM, **fields)])
    assert outcome.fault == (Cause.BAD_FIELD, 100)
    assert not outcome.done


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 1), (2, 32, 1), (4, 5, 8), (1, 3, 32)])
@pytest.mark.parametrize("params", [NORM, BASE.replace(vector_lanes=8, vector_norm=True)], ids=["nano", "base"])
def test_cycles_of_a_normalization(shape: tuple[int, int, int], params: HardwareParams, rng: random.Random) -> None:
    """The forecast: two passes, and a gap between those of a short line."""
    height, width, blocks = shape
    tile = {"out_h": height, "out_w": width, "blocks": blocks, "out_row": width, "out_plane": height * width}
    tile |= {"a_row": width, "a_plane": height * width, "last_bytes": params.rows, "b_base": 300, "out_base": 512}
    instruction = make(Kind.VNORM, **tile)
    outcome = _check(params, rng, [instruction])
    cost = instruction_cost(instruction, params)
    # The constants delay the second pass if the first one is shorter.
    assert abs(_cycles(outcome) - cost.cycles) <= 3 + 4 * blocks
    assert outcome.busy + outcome.stalled == _cycles(outcome)
    assert outcome.reads == {"a": 2 * height * width * blocks, "b": 4 * blocks}


@pytest.mark.parametrize(
    "params", [NANO, NANO.replace(vector_lanes=1), SMALL.replace(vector_lanes=2)], ids=["words", "bytes", "quarters"]
)
@pytest.mark.parametrize(("width", "blocks"), [(5, 1), (1, 64)])
def test_cycles_of_a_softmax(params: HardwareParams, width: int, blocks: int, rng: random.Random) -> None:
    """The forecast, and the queue of the last pixel, as two bytes share a divider; also with pixels of many words."""
    params = params.replace(vector_softmax=True)
    tile = {"out_w": width, "blocks": blocks, "out_plane": width, "a_plane": width, "out_base": 512}
    instruction = make(Kind.VSOFTMAX, **tile, last_bytes=params.rows)
    parts = [make(Kind.VEXP, a_base=k * 64, part=k) for k in range(EXPONENTIAL_BYTES)]
    loaded, done = _check(params, rng, [*parts, instruction]).done[-2:]
    # It is taken a cycle after the one before has ended, and sets up in the next.
    queue = 1 if params.softmax_lanes == 1 else 1 + blocks * params.word_bytes // params.softmax_lanes
    # The forecast has a latency for all, with a queue of as many groups as the cycles of operands and affine lanes.
    queue -= OperandStage.LATENCY + AffineLane.LATENCY
    assert done - loaded == instruction_cost(instruction, params).cycles + 2 + queue


@pytest.mark.parametrize("grant", [0.3, 0.8])
def test_normalizations_wait_for_grants(grant: float, rng: random.Random) -> None:
    params = rng.choice([NORM, SHAPES["base_in_halves"].replace(vector_norm=True), SHAPES["small_with_softmax"]])
    maker = BenchInstructions(rng, params)
    kinds = (Kind.VNORM, Kind.VCOPY, Kind.VNORM, Kind.VNORM, Kind.VADD)
    _check(params, rng, [maker.instruction(kind) for kind in kinds], grant)


@pytest.mark.parametrize("cycle", [0, 20, 40, 60, 100])
def test_a_soft_reset_ends_a_normalization(cycle: int, rng: random.Random) -> None:
    """Nothing of the pixels between their passes is left."""
    params = EVERY.replace(vector_lanes=rng.choice((1, 2, 4)))
    maker = BenchInstructions(rng, params)
    tile = {"out_h": 2, "out_w": 7, "a_row": 7, "out_base": 512, "out_row": 7, "blocks": 2, "a_plane": 14}
    instructions = [make(Kind.VNORM, **tile, out_plane=14, last_bytes=2), maker.instruction(Kind.VNORM)]
    _check(params, rng, instructions, rng.choice((0.5, 1.0)), reset_at=cycle + rng.randrange(20))


@pytest.mark.parametrize(("height", "width"), [(1, 5), (5, 1), (1, 2), (3, 1)])
def test_a_sliding_maximum_reads_each_word_once(height: int, width: int, rng: random.Random) -> None:
    window = {"kernel_h": height, "kernel_w": width, "iy0": -(height // 2), "ix0": -(width // 2)}
    outcome = _check(NANO, rng, [make(Kind.VMAX, **LONG, a_row=32, in_h=8, in_w=32, **window)])
    assert outcome.reads["a"] <= 256


@pytest.mark.parametrize("port", ["a_base", "b_base", "out_base"])
@pytest.mark.parametrize("grant", [1.0, 0.3])
def test_an_address_past_the_end_stops_the_unit(port: str, grant: float, rng: random.Random) -> None:
    fields = {**LONG, "a_row": 32, "b_row": 32, port: NANO.scratch_words - 50}
    good = make(Kind.VCOPY, out_w=3)
    outcome = Bench(NANO, _words(rng, NANO), rng, grant).run([good, make(Kind.VADD, **fields), good], settle=400)
    assert outcome.fault == (Cause.SCRATCH_RANGE, 101)
    assert len(outcome.done) == 1
    assert outcome.idle


@pytest.mark.parametrize("kind", [Kind.VMUL, Kind.VAVG, Kind.VEXP, Kind.VSOFTMAX, Kind.VNORM, Kind.VDEPTHWISE])
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
