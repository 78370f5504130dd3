"""A timing model of the accelerator: four units in order, waits, queues of limited depth.

It predicts cycles from the instruction stream. The constants below describe the hardware's pipelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.program.footprint import conv_tiles
from compiler.program.hazards import waits_of
from compiler.program.program import Provenance
from hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind, TableUse, Unit
from hw.spec.params import HardwareParams

DRAM_LATENCY = 100
"""Cycles from a read request to its first beat, and from a last write beat to its response."""
MOVE_OVERHEAD = 8
MAC_OVERHEAD = 24
"""Cycles before a CONV's first tile: its channel parameters and weights."""
MAC_LATENCY = 24
"""Cycles from a strip's last product to its last word's visibility, without the drain itself."""
VECTOR_OVERHEAD = 12


@dataclass(frozen=True)
class Prediction:
    """Predicted cycles: in all, and for each layer those by which it moves the end of the work done so far."""

    cycles: int
    layers: tuple[int, ...]
    mac_busy: int


@dataclass(frozen=True)
class Cost:
    """Cycles for which an instruction keeps its unit, and those after which its result can be used."""

    occupancy: int
    latency: int


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


def instruction_cost(i: Instruction, params: HardwareParams) -> Cost:
    """What one instruction takes."""
    match i.kind:
        case Kind.LOAD | Kind.STORE:
            words = i["n0"] * i["n1"] * i["n2"]
            return Cost(words + MOVE_OVERHEAD, words + MOVE_OVERHEAD + DRAM_LATENCY)
        case Kind.CONV:
            head = params.table_words if i["table"] == TableUse.LOAD else 0
            busy = conv_busy(i, params) + head
            last = min(params.strip, i["out_h"] * i["out_w"]) * params.cols // params.lanes
            return Cost(busy, busy + MAC_OVERHEAD + MAC_LATENCY + last)
        case Kind.VTABLE:
            return Cost(params.table_words + VECTOR_OVERHEAD, params.table_words + VECTOR_OVERHEAD)
        case Kind.VMAX | Kind.VAVG:
            words = i["out_h"] * i["out_w"] * i["blocks"] * i["kernel_h"] * i["kernel_w"]
            return Cost(words, words + VECTOR_OVERHEAD)
        case Kind.VCOPY | Kind.VADD | Kind.VMUL:
            words = i["out_h"] * i["out_w"] * i["blocks"]
            return Cost(words, words + VECTOR_OVERHEAD)
        case _:
            return Cost(0, 0)


class _Timeline:
    """When each unit is free, and when each of its instructions has finished."""

    def __init__(self, params: HardwareParams) -> None:
        self.params = params
        self.free = dict.fromkeys(QUEUED_UNITS, 0)
        self.done: dict[Unit, list[int]] = {u: [] for u in QUEUED_UNITS}
        self.started: dict[Unit, list[int]] = {u: [] for u in QUEUED_UNITS}
        self.fetched = DRAM_LATENCY
        self.fetch_step = max(1, INSTRUCTION_BYTES // params.word_bytes)

    def step(self, instruction: Instruction) -> int:
        """Time at which the instruction has finished."""
        waits = waits_of(instruction)
        ready = max((self.done[u][n - 1] for u, n in zip(QUEUED_UNITS, waits, strict=True) if n), default=0)
        unit = instruction.unit
        if unit is Unit.CONTROL:
            return max(ready, self.fetched)
        self.fetched += self.fetch_step
        place = len(self.started[unit]) - self.params.queue_depth
        if place >= 0:
            # The fetcher stands still until the unit's queue has room.
            self.fetched = max(self.fetched, self.started[unit][place])
        start = max(self.fetched, ready, self.free[unit])
        cost = instruction_cost(instruction, self.params)
        self.started[unit].append(start)
        self.free[unit] = start + cost.occupancy
        before = self.done[unit][-1] if self.done[unit] else 0
        self.done[unit].append(max(start + cost.latency, before))
        return self.done[unit][-1]


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
