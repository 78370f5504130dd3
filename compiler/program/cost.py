"""What single instructions take on the accelerator: the constants describe the hardware's pipelines."""

from __future__ import annotations

from dataclasses import dataclass

from intloom.hw.spec import timing
from intloom.hw.spec.formats import CHANNEL_BYTES, RESIDUAL_BYTES, TABLE_BYTES, conv_tiles
from intloom.hw.spec.isa import AccessPattern, Instruction, Kind, TableUse
from intloom.hw.spec.params import HardwareParams

_CONSTANT_BYTES = 4
"""Residual and channel constants are loaded this many bytes a cycle, a table one byte a cycle."""


@dataclass(frozen=True)
class Cost:
    """What a computing instruction takes after its start.

    `work` is the time until its last word or product is through, `tail` the time from then until its result is ready.
    `occupancy` is the time until the next one of its unit may start.
    """

    work: int
    tail: int
    occupancy: int
    late: int = 0
    """Cycles that are lost inside if its constants are asked for when it starts, not before; may be negative."""
    constants: int = 0
    """Cycles from the request for its constants to its last word, if all its sums wait for them; else 0."""
    drain: float = 0.0
    """The share of the work's time in which the array's results are written."""


def move_bursts(i: Instruction, params: HardwareParams) -> int:
    """Bursts of a LOAD or STORE; runs that follow each other in memory share them."""
    run, runs = i["n0"], i["n1"] * i["n2"]
    if i["n1"] == 1 or i["dram_s1"] == run:
        run, runs = run * i["n1"], i["n2"]
        if i["dram_s2"] == run:
            run, runs = run * runs, 1
    return runs * -(-run // params.axi_burst)


def _strips(pixels: int, params: HardwareParams) -> list[tuple[int, int]]:
    """The strips of a tile as (how many, pixels)."""
    strips = -(-pixels // params.strip)
    short, longer = divmod(pixels, strips)
    return [(longer, short + 1), (strips - longer, short)]


def conv_busy(i: Instruction, params: HardwareParams) -> int:
    """Cycles in which the array works on a CONV, its padding included."""
    strips = _strips(i["out_h"] * i["out_w"], params)
    tile = sum(n * max(length, params.cols) for n, length in strips)
    # A strip is not done before the previous one has drained.
    drain = params.cols // params.lanes
    least = max(sum(n * length * drain for n, length in strips), 2 * params.cols + timing.CONSTANTS_GAP)
    return i["out_blocks"] * (max(conv_tiles(i) * tile, least) + _late_tile(strips[-1][1], params))


def _late_tile(pixels: int, params: HardwareParams) -> int:
    """Cycles that a block's first weight tile comes late: its constants are read through the same port.

    What two tiles' pixels leave free of the port serves them.
    """
    spare = max(0, 2 * (pixels - params.cols) - 1)
    return max(0, params.channel_words + 1 - spare)


def _first_constants(i: Instruction, params: HardwareParams) -> int:
    """Cycles in which the table, the residual constants and the first block's channel constants are loaded."""
    words = RESIDUAL_BYTES * i["residual"] + CHANNEL_BYTES * params.cols
    return TABLE_BYTES * (i["table"] == TableUse.LOAD) + words // _CONSTANT_BYTES


def _late_constants(i: Instruction, params: HardwareParams) -> int:
    """Cycles that the array waits for a CONV's constants, if they are asked for when it starts.

    They are taken apart a piece a cycle. The second block's weights come behind the first one's constants; and of a
    single block, the third strip finds no bank before the first has drained, which takes them all.
    """
    pixels = i["out_h"] * i["out_w"]
    pieces = _first_constants(i, params)
    length = -(-pixels // -(-pixels // params.strip))
    tile = max(length, params.cols)
    if i["out_blocks"] > 1:
        return pieces + params.cols + timing.SECOND_BLOCK - conv_tiles(i) * -(-pixels // params.strip) * tile
    if pixels > 2 * params.strip:
        return pieces + length * (params.cols // params.lanes) - 2 * conv_tiles(i) * tile
    return 0


def window_words(i: Instruction) -> int:
    """Cycles in which a pool takes a word; maxima along one axis take each word of a line once."""
    windows, taps = i["out_h"] * i["out_w"] * i["blocks"], i["kernel_h"] * i["kernel_w"]
    if i.kind is Kind.VMAX and taps <= timing.SLIDING_TAPS:
        if i["kernel_h"] == 1 and i["stride_w"] == 1:
            return i["blocks"] * i["out_h"] * (i["out_w"] + taps - 1)
        if i["kernel_w"] == 1 and i["stride_h"] == 1:
            return i["blocks"] * i["out_w"] * (i["out_h"] + taps - 1)
    return windows * taps


def _vector(words: int, params: HardwareParams) -> Cost:
    cycles = words * params.vector_slices
    return Cost(cycles, timing.VECTOR_END, cycles + timing.VECTOR_END)


def instruction_cost(i: Instruction, params: HardwareParams) -> Cost:
    """What one instruction of the array or the vector unit takes."""
    match i.spec.pattern:
        case AccessPattern.CONV:
            busy = conv_busy(i, params)
            pixels = i["out_h"] * i["out_w"]
            last = pixels // -(-pixels // params.strip)
            each = params.cols // params.lanes
            tail = timing.MAC_END + timing.RESIDUAL * i["residual"] + last * (each - 1)
            late = _late_constants(i, params)
            constants = _first_constants(i, params) + pixels * each + timing.MAC_END if i["out_blocks"] == 1 else 0
            return Cost(busy, tail, busy, late, constants, drain=i["out_blocks"] * pixels * each / busy)
        case AccessPattern.TABLE:
            return Cost(TABLE_BYTES, timing.VECTOR_TABLE_LOAD, TABLE_BYTES + timing.VECTOR_TABLE_LOAD)
        case AccessPattern.WINDOW:
            return _vector(window_words(i), params)
        case AccessPattern.COPY | AccessPattern.ELEMENTWISE:
            return _vector(i["out_h"] * i["out_w"] * i["blocks"], params)
        case _:
            return Cost(0, 0, 0)
