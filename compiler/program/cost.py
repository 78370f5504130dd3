"""Cycles of a single instruction of the MAC or vector unit, from the latencies in `hw.spec.timing`."""

from dataclasses import dataclass, replace
from functools import cache

from intloom.hw.spec import timing
from intloom.hw.spec.formats import CHANNEL_BYTES, RESIDUAL_BYTES, TABLE_BYTES, conv_tiles, memory_run
from intloom.hw.spec.isa import AccessPattern, Fields, Instruction, Kind, TableUse
from intloom.hw.spec.norm import PASSES as NORM_PASSES
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import PASSES
from intloom.hw.spec.vector_depthwise import first_walk_cycles, result_cycles, walk_cycles, walk_words

_CONSTANT_BYTES = 4
"""Residual and channel constants are loaded this many bytes a cycle, a table one byte a cycle."""


@dataclass(frozen=True)
class Cost:
    """Cycles of an instruction after its start; `mac_pipeline` has the exact times of a CONV.

    `work` is the time to its last product or word, `tail` from there to its end.
    """

    work: int
    tail: int
    readout: float = 0.0
    """Fraction of `work` in which results are written, if they are fewer than the operands."""
    slower: float = 0.0
    """Cycles by which a cycle of a VDEPTHWISE is longer on average while the array works on packed pixels."""
    joined: int = 0
    """Cycles before its end in which the next instruction may start, if both are VDEPTHWISE."""

    @property
    def cycles(self) -> int:
        """From its start to its end."""
        return self.work + self.tail


def move_bursts(i: Instruction, params: HardwareParams) -> int:
    """Bursts of a LOAD or STORE; runs that are contiguous in memory share bursts."""
    run, runs = memory_run(i), i["n1"] * i["n2"]
    # The local strides do not matter: bursts follow DRAM addresses only.
    if i["n1"] == 1 or i["dram_s1"] == run:
        run, runs = run * i["n1"], i["n2"]
        if i["dram_s2"] == run:
            run, runs = run * runs, 1
    return runs * -(-run // params.burst_words)


def waiting_bursts(i: Instruction, params: HardwareParams) -> tuple[int, int]:
    """The words of the first burst of a LOAD or STORE that waits for the memory, and its bursts if each has one run.

    A burst stays in a block of `burst_words` words. Runs that are contiguous share a burst until the FIFO of runs is
    full; from then on each run issues as data makes space for it.
    """
    run, n1, n2, block = memory_run(i), i["n1"], i["n2"], params.burst_words
    starts = (i["dram"] + y * i["dram_s2"] + x * i["dram_s1"] for y in range(n2) for x in range(n1))
    shared = 1 if n1 > 1 and i["dram_s1"] != run else n1 if n2 > 1 and i["dram_s2"] != run * n1 else n1 * n2
    first = min(block - i["dram"] % block, run * min(shared, params.runs_in_flight))
    return first, sum((start % block + run - 1) // block + 1 for start in starts)


def _strips(pixels: int, params: HardwareParams) -> list[tuple[int, int]]:
    """The strips of a tile as (count, pixels)."""
    strips = -(-pixels // params.strip)
    short, longer = divmod(pixels, strips)
    return [(longer, short + 1), (strips - longer, short)]


def conv_busy(i: Fields, params: HardwareParams) -> int:
    """Cycles of the array for a CONV among equal ones, including padding; `mac_pipeline` also counts what precedes."""
    strips = _strips(i["out_h"] * i["out_w"], params)
    tile = sum(n * max(length, params.cols) for n, length in strips)
    # A strip ends only after the previous one is read out of the other accumulator bank.
    readout = params.cols // params.lanes
    least = max(sum(n * length * readout for n, length in strips), 2 * params.cols + timing.CONSTANTS_GAP)
    return i["out_blocks"] * (max(conv_tiles(i) * tile, least) + late_tile(i, params))


@cache
def array_cycles(params: HardwareParams, tiles: int, pixels: int, blocks: int = 1, *, zero_points: bool = False) -> int:
    """`conv_busy` of a CONV with this many weight tiles for each of its output blocks, and output pixels.

    The scheduler's choices ask for it, before there are instructions.
    """
    fields = dict.fromkeys(("kernel_h", "kernel_w", "out_h"), 1)
    fields |= {"in_blocks": tiles, "out_w": pixels, "out_blocks": blocks}
    return conv_busy(fields | {"weight_zero_points": int(zero_points)}, params)


def array_strips(i: Instruction, params: HardwareParams) -> list[tuple[int, int, int]]:
    """For each strip of an output block: pixels, cycles of all its weight tiles, cycles of one of them."""
    strips = []
    for count, pixels in _strips(i["out_h"] * i["out_w"], params):
        tile = max(pixels, params.cols)
        strips += [(pixels, conv_tiles(i) * tile, tile)] * count
    return strips


def late_tile(i: Fields, params: HardwareParams) -> int:
    """Stall cycles before an output block's first weight tile: its constants and zero points use the same port.

    They use the port cycles that two tiles leave free.
    """
    pixels = _strips(i["out_h"] * i["out_w"], params)[-1][1]
    spare = max(0, 2 * (pixels - params.cols) - 1)
    zero_points = (params.zero_point_words + timing.ZERO_POINTS) * i["weight_zero_points"]
    return max(0, params.channel_words + 1 + zero_points - spare)


def first_constants(i: Instruction, params: HardwareParams) -> int:
    """Cycles in which the table, the residual constants and the first block's channel constants are loaded."""
    words = RESIDUAL_BYTES * i["residual"] + CHANNEL_BYTES * params.cols
    return TABLE_BYTES * (i["table"] == TableUse.LOAD) + words // _CONSTANT_BYTES


def window_words(i: Instruction) -> int:
    """Words that a window instruction processes; a sliding maximum along one axis reads each word of a line once."""
    windows, taps = i["out_h"] * i["out_w"] * i["blocks"], i["kernel_h"] * i["kernel_w"]
    if i.kind is Kind.VMAX and taps <= timing.SLIDING_TAPS:
        if i["kernel_h"] == 1 and i["stride_w"] == 1:
            return i["blocks"] * i["out_h"] * (i["out_w"] + taps - 1)
        if i["kernel_w"] == 1 and i["stride_h"] == 1:
            return i["blocks"] * i["out_w"] * (i["out_h"] + taps - 1)
    return windows * taps


def _vector(words: int, params: HardwareParams) -> Cost:
    return Cost(words * params.vector_slices, timing.VECTOR_END)


def _depthwise(i: Instruction) -> Cost:
    weights = i["kernel_h"] * i["kernel_w"]
    # Biases and scales arrive while the first columns are read.
    late = max(0, timing.DEPTHWISE_FIRST - first_walk_cycles(i))
    cycles = timing.DEPTHWISE_START + weights + late + walk_cycles(i)
    slower = max(0.0, timing.DEPTHWISE_PACKED * walk_words(i) / walk_cycles(i) - 1)
    # The next one is taken when two results are left to write.
    few = i["out_h"] * i["out_w"] <= 2
    joined = timing.DEPTHWISE_JOINED - (late > 0) if few else min(timing.DEPTHWISE_JOINED, 2 * result_cycles(i) - 1)
    return Cost(cycles, timing.DEPTHWISE_END, slower=slower, joined=joined)


def instruction_cost(i: Instruction, params: HardwareParams) -> Cost:
    """The cost of one instruction of the MAC or vector unit."""
    match i.spec.pattern:
        case AccessPattern.CONV:
            busy = conv_busy(i, params)
            pixels = i["out_h"] * i["out_w"]
            each = params.cols // params.lanes
            # At most: the forecast counts how constants and readout overlap with the array.
            tail = first_constants(i, params) + params.strip * each + timing.MAC_END + timing.RESIDUAL * i["residual"]
            return Cost(busy, tail, readout=i["out_blocks"] * pixels * each / busy)
        case AccessPattern.TABLE:
            return Cost(TABLE_BYTES, timing.VECTOR_TABLE_LOAD)
        case AccessPattern.WINDOW:
            cost = _vector(window_words(i), params)
            return replace(cost, readout=i["out_h"] * i["out_w"] * i["blocks"] / cost.work)
        case AccessPattern.CHANNELS:
            cycles = PASSES * i["out_h"] * i["out_w"] * i["blocks"] * params.word_bytes // params.softmax_lanes
            return Cost(cycles, timing.SOFTMAX_END)
        case AccessPattern.NORM:
            pixel = i["blocks"] * params.word_bytes // params.softmax_lanes
            gap = max(0, timing.NORM_FACTORS + (params.softmax_lanes - 1).bit_length() - (i["out_w"] - 1) * pixel)
            cycles = i["out_h"] * (NORM_PASSES * i["out_w"] * pixel + gap)
            return Cost(cycles, timing.NORM_END)
        case AccessPattern.DEPTHWISE:
            return _depthwise(i)
        case AccessPattern.COPY | AccessPattern.ELEMENTWISE:
            return _vector(i["out_h"] * i["out_w"] * i["blocks"], params)
        case _:
            return Cost(0, 0)
