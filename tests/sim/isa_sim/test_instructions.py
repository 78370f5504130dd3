"""Every instruction against its slow and plain statement, on random fields."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intloom.hw.spec.arith import RoundingMode, Scale
from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import SCRATCH_BITS, ConvMode, Instruction, Kind, Unit, make
from intloom.hw.spec.norm import CONSTANT_WORDS, GAMMA_FRACTION, RESULT_SHIFT, VALUE_BITS
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.hw.spec.vector_depthwise import pack_depthwise
from intloom.sim.isa_sim.machine import Machine, blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.instructions import InstructionMaker
from intloom.sim.random_programs.program import is_legal
from intloom.sim.random_programs.values import any_fields
from tests.support.slow_machine import SlowMachine

ODD = preset("small").replace(
    rows=16, axi_data_bits=128, cols=8, lanes=2, acc_bits=20, weight_sums=True, match=RoundingMode.EXACT
)
WIDE = preset("nano").replace(rows=4, cols=8, strip=16)
PARAMS = [preset("nano"), preset("base"), ODD, WIDE]
OUT = 1200
"""Where results go; operands lie below."""


def random_machine(params: HardwareParams, rng: np.random.Generator) -> Machine:
    machine = blank_machine(params, np.zeros(params.word_bytes, np.uint8))
    for memory in (machine.scratch, machine.weights):
        memory[:] = rng.integers(-128, 128, memory.shape, dtype=np.int8)
    machine.mac_table = rng.integers(-128, 128, 256, dtype=np.int8)
    machine.vector_table = rng.integers(-128, 128, 256, dtype=np.int8)
    return machine


def set_scales(machine: Machine, i: Instruction, rng: np.random.Generator) -> None:
    """Give every output block scales that keep results inside int8 now and then; random ones would always saturate."""
    p = machine.params
    at = i["weights"] + (p.table_words if i["table"] == 2 else 0) + (p.residual_words if i["residual"] else 0)
    tiles = conv_tiles(i)
    if i["residual"]:
        constants = np.zeros(max(16, p.word_bytes), np.uint8)
        constants[:8] = rng.integers(1 << 14, 1 << 16, 2).astype("<i4").view(np.uint8)
        constants[8:16] = rng.integers(-(1 << 20), 1 << 20, 1).astype("<i8").view(np.uint8)
        put(machine, at - p.residual_words, constants)
    for block in range(i["out_blocks"]):
        start = at + block * (p.channel_words + p.zero_point_words * i["weight_zero_points"] + tiles * p.cols)
        bias = rng.integers(-20000, 20000, p.cols).astype("<i4")
        scale = rng.integers(1 << 23, 1 << 24, p.cols) | rng.integers(31, 36, p.cols) << 24
        put(machine, start, np.concatenate([bias.view(np.uint8), scale.astype("<u4").view(np.uint8)]))


def put(machine: Machine, word: int, data: np.ndarray) -> None:
    rows = machine.params.rows
    for k, piece in enumerate(data.reshape(-1, rows)):
        machine.weights[(word + k) % len(machine.weights)] = piece.view(np.int8)


def check(machine: Machine, i: Instruction) -> None:
    slow = SlowMachine(machine)
    slow.execute(i)
    SEMANTICS[i.kind](machine, i)
    for name in ("scratch", "weights", "dram"):
        found, expected = getattr(machine, name), np.frombuffer(b"".join(getattr(slow, name)), np.int8)
        np.testing.assert_array_equal(found.reshape(-1), expected, err_msg=f"{name}: {dict(i.values)}")


seeds = st.integers(0, 2**32 - 1)
which = st.sampled_from(range(len(PARAMS)))


@settings(max_examples=20)
@given(which, seeds, st.sampled_from(("scratch", "weights", "store")))
def test_moves(index, seed, kind):
    """Runs that touch, overlap or lie apart, up and down; in the weight memory they wrap and may be longer than it."""
    rng = np.random.default_rng(seed)
    machine = random_machine(PARAMS[index], rng)
    machine.dram = rng.integers(-128, 128, (3 * len(machine.weights), machine.params.rows), np.int8)
    n0, n1, n2 = (int(n) for n in rng.integers(1, (40, 5, 4)))
    first = OUT
    if kind == "weights":
        first = int(rng.integers(2 * len(machine.weights)))
        n0 = int(rng.choice([n0, len(machine.weights) + n0]))
    steps = {f"local_{name}": int(rng.integers(-80, 80)) % (1 << SCRATCH_BITS) for name in ("s1", "s2")}
    steps |= {f"dram_{name}": int(rng.integers(80)) for name in ("s1", "s2")}
    target = {"target": int(kind == "weights")} if kind != "store" else {}
    move = Kind.STORE if kind == "store" else Kind.LOAD
    check(machine, make(move, dram=int(rng.integers(400)), local=first, n0=n0, n1=n1, n2=n2, **steps, **target))


@settings(max_examples=20)
@given(which, seeds)
def test_conv(index, seed):
    rng = np.random.default_rng(seed)
    params = PARAMS[index]
    machine = random_machine(params, rng)

    def some(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    in_h, in_w, out_h, out_w = some(1, 6), some(1, 6), some(1, 3), some(1, 3)
    mode = some(ConvMode.BLOCKS, ConvMode.PACKED if params.pixels_per_word > 1 else ConvMode.BLOCKS)
    row = some(in_w, in_w + 1)
    step = some(0, 1) * 50
    lanes = params.lanes
    loops = {name: some(1, 3) for name in ("kernel_h", "kernel_w", "stride_h", "stride_w")}
    loops |= {name: some(1, 2) for name in ("dilation_h", "dilation_w", "in_blocks", "out_blocks", "out_x")}
    source = {"in_base": some(100, 120), "in_row_off": some(0, row), "in_ring": row * (in_h + 2) * some(0, 1)}
    source |= {"in_plane": 50, "in_row": row, "in_block_step": step, "in_h": in_h, "in_w": in_w}
    source |= {"iy0": some(-2, 2), "ix0": some(-2, 2), "mode": mode, "weights": some(0, params.weight_words - 1)}
    result = {"out_h": out_h, "out_w": out_w, "out_base": OUT, "out_plane": 64, "out_row": out_w * 2 + 1}
    result |= {"out_lane": some(0, params.rows // lanes - 1) * lanes, "zp_out": some(-20, 20)}
    residual = {"res_base": some(500, 520), "res_plane": 40, "res_row": out_w, "res_shift": 17}
    continued = {"continue_sums": int(loops["out_blocks"] == 1)}
    machine.sums = rng.integers(-1 << 31, 1 << 31, (out_h * out_w, params.cols), np.int32) >> 32 - params.acc_bits
    fields = any_fields(random.Random(seed), Kind.CONV, params) | loops | source | result | residual | continued
    i = make(Kind.CONV, **fields)
    set_scales(machine, i, rng)
    check(machine, i)


@settings(max_examples=5)
@given(st.integers(-128, -100) | st.integers(100, 127), seeds)
def test_sums_and_corrections_leave_the_accumulators(zero_point, seed):
    """Weights of one sign: those of the whole range cancel each other."""
    rng = np.random.default_rng(seed)
    machine = random_machine(ODD, rng)
    machine.weights[:] = rng.integers(100, 128, machine.weights.shape, dtype=np.int8)
    machine.scratch[:] = rng.integers(-128, -99, machine.scratch.shape, dtype=np.int8)
    sizes = {"in_blocks": 3, "in_h": 3, "in_w": 4, "in_row": 4, "in_plane": 12, "kernel_h": 3, "kernel_w": 3}
    i = make(Kind.CONV, **sizes, out_w=2, out_base=OUT, zp_in=zero_point, subtract_zp_in=1)
    set_scales(machine, i, rng)
    check(machine, i)
    assert len(set(machine.scratch[OUT : OUT + 2].flat)) > 4, "a saturated result says little about its sum"


@pytest.mark.parametrize("kind", [Kind.VCOPY, Kind.VADD, Kind.VMUL, Kind.VMAX, Kind.VAVG, Kind.VSOFTMAX, Kind.VNORM])
@settings(max_examples=10)
@given(which, seeds)
def test_vector_instructions(kind, index, seed):
    rng = np.random.default_rng(seed)
    machine = random_machine(PARAMS[index], rng)
    # Sums of exponentials saturate now and then.
    machine.exponentials[:] = rng.integers(0, 256, machine.exponentials.shape)
    maker = InstructionMaker(random.Random(seed), machine.params, [])
    maker.loaded.add(Unit.VEC)
    maker.exponentials |= {*range(EXPONENTIAL_BYTES)}
    check(machine, next(i for i in iter(lambda: maker.instruction(kind), None) if is_legal(i, machine.params, [])))


@pytest.mark.parametrize("params", PARAMS)
def test_the_value_of_a_byte_beyond_the_channels_wraps(params):
    """Equal channels but one: the mean is many deviations away from the zero point, which such a byte counts as."""
    rng = np.random.default_rng(1)
    machine = random_machine(params, rng)
    blocks, last = 6, params.rows // 2
    machine.scratch[:blocks] = 127
    machine.scratch[0, 0] = 126
    constants = machine.scratch[600 : 600 + CONSTANT_WORDS * blocks].view(np.int16)
    constants[:] = rng.integers(-512, 512, constants.shape)
    channels = (blocks - 1) * params.rows + last
    deviations = (255 * channels - 1) / np.sqrt(channels - 1)
    assert deviations > 2 ** (VALUE_BITS - 1 - (RESULT_SHIFT - GAMMA_FRACTION))
    shape = {"blocks": blocks, "last_bytes": last, "a_plane": 1, "out_plane": 1, "out_h": 1, "out_w": 1}
    i = make(Kind.VNORM, **shape, a_base=0, b_base=600, out_base=OUT, center=1, zp_in=-128, epsilon=0)
    check(machine, i)
    assert len(set(machine.scratch[OUT + blocks - 1, last:].flat)) > 1


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("channels", [200, 256, 257, 600])
def test_the_sum_of_exponentials_saturates(params, channels):
    """Each channel is the largest. With 600, a sum of more bits or one that wraps gives another result."""
    machine = random_machine(params, np.random.default_rng(2))
    blocks = -(-channels // params.rows)
    machine.scratch[:blocks] = 5
    machine.exponentials[:] = 255
    shape = {"blocks": blocks, "last_bytes": (channels - 1) % params.rows + 1, "a_plane": 1, "out_plane": 1}
    check(machine, make(Kind.VSOFTMAX, **shape, a_base=0, out_base=OUT, out_h=1, out_w=1, zp_out=-128))


def put_depthwise_constants(machine: Machine, at: int, kernel: tuple[int, int], rng: np.random.Generator) -> None:
    """Constants of a VDEPTHWISE; results saturate now and then, and one channel has a scale of 0."""
    p = machine.params
    mantissas = rng.integers(1 << p.mantissa_bits - 1, 1 << p.mantissa_bits, p.rows)
    scales = [
        Scale(int(m), int(s))
        for m, s in zip(mantissas, rng.integers(p.mantissa_bits + 6, p.mantissa_bits + 12, p.rows), strict=True)
    ]
    scales[0] = Scale(0, 0)
    weights = rng.integers(-128, 128, (*kernel, p.rows)).tolist()
    biases = [int(b) for b in rng.integers(-20000, 20000, p.rows)]
    data = np.frombuffer(pack_depthwise(weights, biases, scales, p.mantissa_bits), np.int8).reshape(-1, p.rows)
    machine.scratch[at : at + len(data)] = data


@settings(max_examples=20)
@given(which, seeds)
def test_depthwise(index, seed):
    rng = np.random.default_rng(seed)
    machine = random_machine(PARAMS[index], rng)

    def some(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    in_w, kernel_h, kernel_w, table = some(1, 9), some(1, 5), some(1, 5), some(0, 1)
    out_h, out_w, out_x = some(1, 4), some(1, 5), some(1, 2)
    row = some(in_w, in_w + 1)
    ring = row * some(1, 6) * some(0, 1)
    # Some constants are random bytes: any shift, and mantissas that are not normalized.
    if some(0, 3):
        put_depthwise_constants(machine, 600, (kernel_h, kernel_w), rng)
    out = {"out_h": out_h, "out_w": out_w, "out_base": OUT, "out_row": out_w * out_x + 1, "out_x": out_x}
    i = make(
        Kind.VDEPTHWISE, a_base=some(100, 300), a_row_off=some(0, ring - 1 if ring else 20), a_ring=ring, a_row=row,
        in_h=some(1, 9), in_w=in_w, iy0=some(-4, 4), ix0=some(-4, 4), kernel_h=kernel_h, kernel_w=kernel_w,
        stride_h=some(1, 4), stride_w=some(1, 4), b_base=600, zp_in=some(-128, 127), zp_out=some(-128, 127),
        table=table, **out,
    )  # fmt: skip
    check(machine, i)


def test_exponentials_are_loaded_by_byte():
    rng = np.random.default_rng(3)
    machine = random_machine(PARAMS[0], rng)
    for part in range(3):
        SEMANTICS[Kind.VEXP](machine, make(Kind.VEXP, a_base=100 * part, part=part))
    for part in range(3):
        assert machine.exponentials[part].tobytes() == machine.scratch[100 * part :].tobytes()[:256]


def test_every_instruction_has_semantics():
    assert set(SEMANTICS) == set(Kind)
