"""A timing model of the accelerator: four units in order, waits, queues of limited depth.

It predicts cycles from the instruction stream. The constants below describe the hardware's pipelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.program.footprint import conv_tiles
from compiler.program.hazards import waits_of
from compiler.program.program import Provenance
from hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind, Unit
from hw.spec.params import HardwareParams

DRAM_LATENCY = 100
"""Cycles from a read request to its first beat, and from a last write beat to its response."""
FIRST_FETCH = 24
"""Cycles from the start command to the first instruction's start, without the memory's latency."""
START = 2
"""Cycles from the last wait's fulfilment to the start of a load, store or vector instruction."""
MAC_START = 13
"""The same for a CONV whose predecessor has ended: its first weight tile must be read."""
LOAD_LATENCY = 6
"""Cycles that a load adds to the memory's latency."""
STORE_LATENCY = 8
"""Cycles that a store adds to the memory's latency."""
MAC_LATENCY = 28
"""Cycles from a CONV's last product to the visibility of its last word."""
RESIDUAL_LATENCY = 5
"""What the residual adds to that."""
VECTOR_LATENCY = 21
"""Cycles from a vector instruction's last word read to its end."""
TABLE_LATENCY = 9
"""What loading a vector table takes besides its words."""
SLIDING_TAPS = 5
"""The longest window of a maximum along one axis that slides."""


@dataclass(frozen=True)
class Prediction:
    """Predicted cycles: in all, and for each layer those by which it moves the end of the work done so far."""

    cycles: int
    layers: tuple[int, ...]
    mac_busy: int


@dataclass(frozen=True)
class Cost:
    """What an instruction takes after its start.

    `occupancy` is the time until the next one of its unit may start. Its result is ready `tail` cycles after its words
    or products are through; `lead` cycles pass before the first. Words of successive moves follow each other without
    gaps, so leads and tails overlap.
    """

    lead: int
    work: int
    tail: int
    occupancy: int


def conv_busy(i: Instruction, params: HardwareParams) -> int:
    """Cycles in which the array works on a CONV, its padding included."""
    pixels = i["out_h"] * i["out_w"]
    strips = -(-pixels // params.strip)
    short, longer = divmod(pixels, strips)
    tile = longer * max(short + 1, params.cols) + (strips - longer) * max(short, params.cols)
    # A strip is not done before the previous one has drained.
    drain = params.cols // params.lanes
    least = longer * (short + 1) * drain + (strips - longer) * short * drain
    return i["out_blocks"] * max(conv_tiles(i) * tile, least)


def window_words(i: Instruction) -> int:
    """Cycles in which a pool takes a word; maxima along one axis take each word of a line once."""
    windows, taps = i["out_h"] * i["out_w"] * i["blocks"], i["kernel_h"] * i["kernel_w"]
    if i.kind is Kind.VMAX and taps <= SLIDING_TAPS:
        if i["kernel_h"] == 1 and i["stride_w"] == 1:
            return i["blocks"] * i["out_h"] * (i["out_w"] + taps - 1)
        if i["kernel_w"] == 1 and i["stride_h"] == 1:
            return i["blocks"] * i["out_w"] * (i["out_h"] + taps - 1)
    return windows * taps


def _vector(words: int) -> Cost:
    return Cost(0, words, VECTOR_LATENCY, words + VECTOR_LATENCY)


def instruction_cost(i: Instruction, params: HardwareParams) -> Cost:
    """What one instruction takes."""
    match i.kind:
        case Kind.LOAD:
            return Cost(DRAM_LATENCY + LOAD_LATENCY, i["n0"] * i["n1"] * i["n2"], 0, START)
        case Kind.STORE:
            return Cost(0, i["n0"] * i["n1"] * i["n2"], DRAM_LATENCY + STORE_LATENCY, START)
        case Kind.CONV:
            busy = conv_busy(i, params)
            pixels = i["out_h"] * i["out_w"]
            last = pixels // -(-pixels // params.strip)
            drain = last * (params.cols // params.lanes - 1)
            return Cost(0, busy, MAC_LATENCY + RESIDUAL_LATENCY * i["residual"] + drain, busy)
        case Kind.VTABLE:
            words = params.table_words
            return Cost(0, words, TABLE_LATENCY, words + TABLE_LATENCY)
        case Kind.VMAX | Kind.VAVG:
            return _vector(window_words(i))
        case Kind.VCOPY | Kind.VADD | Kind.VMUL:
            return _vector(i["out_h"] * i["out_w"] * i["blocks"])
        case _:
            return Cost(0, 0, 0, 0)


class _Timeline:
    """When each unit may start its next instruction, has passed its last word, and has finished each instruction."""

    def __init__(self, params: HardwareParams) -> None:
        self.params = params
        self.free = dict.fromkeys(QUEUED_UNITS, 0)
        self.passed = dict.fromkeys(QUEUED_UNITS, 0)
        self.done: dict[Unit, list[int]] = {u: [] for u in QUEUED_UNITS}
        self.started: dict[Unit, list[int]] = {u: [] for u in QUEUED_UNITS}
        self.fetched = DRAM_LATENCY + FIRST_FETCH
        self.fetch_step = max(1, INSTRUCTION_BYTES // params.word_bytes)

    def step(self, instruction: Instruction) -> int:
        """Time at which the instruction has finished."""
        waits = waits_of(instruction)
        ready = max((self.done[u][n - 1] for u, n in zip(QUEUED_UNITS, waits, strict=True) if n), default=0)
        unit = instruction.unit
        if unit is Unit.CONTROL:
            return max(ready, self.fetched)
        self._fetch(unit)
        start = max(self.fetched, ready + (MAC_START if unit is Unit.MAC else START), self.free[unit])
        cost = instruction_cost(instruction, self.params)
        self.started[unit].append(start)
        self.free[unit] = start + cost.occupancy
        self.passed[unit] = max(start + cost.lead, self.passed[unit]) + cost.work
        self.done[unit].append(self.passed[unit] + cost.tail)
        return self.done[unit][-1]

    def _fetch(self, unit: Unit) -> None:
        """Fetch an instruction, as soon as the unit's queue has room for it."""
        self.fetched += self.fetch_step
        place = len(self.started[unit]) - self.params.queue_depth
        if place >= 0:
            self.fetched = max(self.fetched, self.started[unit][place])


def predict(
    instructions: Sequence[Instruction], provenance: Sequence[Provenance], params: HardwareParams, layers: int
) -> Prediction:
    """Predict a program's cycles."""
    timeline = _Timeline(params)
    ends = [0] * layers
    total = busy = 0
    for instruction, origin in zip(instructions, provenance, strict=True):
        end = timeline.step(instruction)
        total = max(total, end)
        if 0 <= origin.layer < layers:
            ends[origin.layer] = max(ends[origin.layer], end)
        if instruction.kind is Kind.CONV:
            busy += conv_busy(instruction, params)
    spans, before = [], 0
    for end in ends:
        spans.append(max(0, end - before))
        before = max(before, end)
    return Prediction(total, tuple(spans), busy)
