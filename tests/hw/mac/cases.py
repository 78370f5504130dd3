"""Random legal CONV instructions that fit a small scratchpad, with the constants they need."""

import random
from dataclasses import dataclass

import numpy as np

from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import ConvMode, Instruction, Kind, TableUse, make
from intloom.hw.spec.params import HardwareParams
from intloom.sim.random_programs.values import any_fields

SCRATCH_WORDS = 4096
_INPUT_WORDS = SCRATCH_WORDS // 2
_MOST_MACS = 3000


@dataclass
class Case:
    """A program and its memories: inputs and residuals in the scratchpad's lower half, outputs in the upper one."""

    program: list[Instruction]
    scratch: np.ndarray
    weights: np.ndarray


def _shape(rng: random.Random, p: HardwareParams) -> dict[str, int]:
    """Sizes of a convolution whose input, output and weights are small."""
    while True:
        small = rng.random() < 0.5
        f = {
            "out_h": rng.randint(1, 3 if small else 12),
            "out_w": rng.randint(1, 3 if small else 14),
            "kernel_h": rng.choice((1, 1, 2, 3, 5)),
            "kernel_w": rng.choice((1, 1, 2, 3, 4)),
            "stride_h": rng.randint(1, 4),
            "stride_w": rng.randint(1, 4),
            "dilation_h": rng.choice((1, 1, 2, 3)),
            "dilation_w": rng.choice((1, 1, 2)),
            "in_blocks": rng.choice((1, 1, 2, 3)),
            "out_blocks": rng.choice((1, 1, 2, 3)),
            "weight_zero_points": int(rng.random() < 0.4),
            "mode": ConvMode.PACKED if rng.random() < 0.25 else ConvMode.BLOCKS,
        }
        if p.depthwise and rng.random() < 0.5 and f["out_h"] * f["out_w"] <= p.strip:
            f["mode"] = rng.choice((ConvMode.DEPTHWISE, ConvMode.DEPTHWISE_ROWS))
        tiles = conv_tiles(make(Kind.CONV, **f))
        block = p.channel_words + p.zero_point_words + tiles * p.cols
        words = p.table_words + p.residual_words + f["out_blocks"] * block
        if tiles * f["out_blocks"] * f["out_h"] * f["out_w"] <= _MOST_MACS and words <= p.weight_words:
            return f


def _input(rng: random.Random, p: HardwareParams, f: dict[str, int]) -> dict[str, int] | None:
    """Placement of the input: sometimes smaller than the kernel's extent, sometimes in a ring of rows."""
    pixels = p.pixels_per_word if f["mode"] == ConvMode.PACKED else 1
    reach_h = (f["out_h"] - 1) * f["stride_h"] + (f["kernel_h"] - 1) * f["dilation_h"] + 1
    reach_w = (f["out_w"] - 1) * f["stride_w"] + ((f["kernel_w"] - 1) * f["dilation_w"] + 1) * pixels
    in_h, in_w = max(1, reach_h + rng.randint(-3, 2)), max(1, reach_w + rng.randint(-3, 2))
    row = -(-in_w // pixels) + rng.randint(0, 2)
    iy0, ix0 = rng.randint(-2, 2), rng.randint(-3, 3)
    first = max(0, iy0) if rng.random() < 0.5 else iy0
    plane = row * (in_h + 1) + rng.randint(0, 3)
    blocks = f["in_blocks"] + f["out_blocks"]
    if plane * blocks > _INPUT_WORDS:
        return None
    ring = row * rng.randint(1, in_h) + rng.choice((0, 0, rng.randrange(3))) if rng.random() < 0.4 else 0
    offset = first * row if not ring else rng.randrange(ring)
    return {
        "in_h": in_h,
        "in_w": in_w,
        "iy0": iy0 if ring or first == iy0 else first,
        "ix0": ix0,
        "in_base": rng.randint(0, _INPUT_WORDS - plane * blocks),
        "in_row_off": (offset + rng.choice((0, 0, ring))) % (1 << 20),
        "in_ring": ring,
        "in_plane": plane,
        "in_row": row,
        "in_block_step": rng.choice((0, plane)),
    }


def _output(rng: random.Random, p: HardwareParams, f: dict[str, int]) -> dict[str, int]:
    x = rng.choice((1, 1, 2))
    row = f["out_w"] * x + rng.randint(0, 3)
    plane = row * f["out_h"] + rng.randint(0, 3)
    lane = rng.randrange(0, p.rows, p.lanes)
    planes = -(-(lane + f["out_blocks"] * p.cols) // p.rows)
    res_row = f["out_w"] + rng.randint(0, 2)
    res_plane = res_row * f["out_h"]
    return {
        "out_x": x,
        "out_row": row,
        "out_plane": plane,
        "out_lane": lane,
        "out_base": _INPUT_WORDS + rng.randint(0, max(0, _INPUT_WORDS - plane * planes)),
        "residual": int(rng.random() < 0.4),
        "res_base": rng.randint(0, max(0, _INPUT_WORDS - res_plane * planes)),
        "res_plane": res_plane,
        "res_row": res_row,
        "res_shift": rng.randint(10, 40),
    }


def _constants(rng: random.Random, p: HardwareParams, f: dict[str, int]) -> bytes:
    """Table, residual constants, and per block parameters and tiles, as in the weight memory."""
    parts = []
    if f["table"] == TableUse.LOAD:
        parts.append(rng.randbytes(256))
    if f["residual"]:
        m = 1 << f["res_shift"]
        numbers = [(rng.randint(-m, m) & 0xFFFFFFFF).to_bytes(4, "little") for _ in range(2)]
        c = (rng.randint(-30 * m, 30 * m) & (1 << 64) - 1).to_bytes(8, "little")
        parts.append(b"".join([*numbers, c]).ljust(p.residual_words * p.rows, b"\0"))
    tiles = conv_tiles(make(Kind.CONV, **f))
    size = 74 * 74 * (tiles * p.rows) ** 0.5
    for _ in range(f["out_blocks"]):
        parts += [rng.randint(-int(size), int(size)).to_bytes(4, "little", signed=True) for _ in range(p.cols)]
        for _ in range(p.cols):
            shift = rng.randint(8, 30)
            mantissa = min((1 << p.mantissa_bits) - 1, max(1, round(2**shift * 60 / size * rng.random())))
            parts.append((mantissa | shift << 24).to_bytes(4, "little"))
        if f["weight_zero_points"]:
            zero_points = bytes(rng.choice((0, 1, 127, 128, 129, 255, rng.randrange(256))) for _ in range(p.cols))
            parts.append(zero_points.ljust(p.zero_point_words * p.rows, b"\0"))
        parts.append(rng.randbytes(tiles * p.cols * p.rows))
    return b"".join(parts)


def random_case(seed: int, p: HardwareParams, length: int) -> Case:
    """A program of some instructions."""
    rng = random.Random(seed)
    weights = np.zeros(p.weight_words * p.rows, np.int8)
    noise = np.random.default_rng(seed)
    scratch = noise.integers(-128, 128, SCRATCH_WORDS * p.rows, dtype=np.int8)
    program: list[Instruction] = []
    used = 0
    for number in range(length):
        f = _shape(rng, p)
        while (where := _input(rng, p, f)) is None:
            f = _shape(rng, p)
        f = any_fields(rng, Kind.CONV, p) | f | where | _output(rng, p, f)
        f["table"] = rng.choice((TableUse.NONE, TableUse.LOAD, TableUse.KEEP if number else TableUse.LOAD))
        data = np.frombuffer(_constants(rng, p, f), np.int8)
        if used + data.size > weights.size:
            break
        # The first one's constants wrap at the end of the memory.
        start = (used // p.rows - 5) % p.weight_words
        at = (start * p.rows + np.arange(data.size)) % weights.size
        weights[at] = data
        program.append(make(Kind.CONV, **f | {"weights": start}))
        used += data.size
    return Case(program, scratch, weights)
