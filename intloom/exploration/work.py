"""What a program does on its hardware: cycles by what limits them, and accesses of each memory, from the forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from intloom.compiler.program.cost import array_strips, instruction_cost, window_words
from intloom.compiler.program.forecast import forecast_of
from intloom.compiler.program.hazards import waits_of
from intloom.compiler.program.program import MemoryTiming, Program
from intloom.hw.spec.formats import conv_tiles, memory_words, move_words
from intloom.hw.spec.isa import QUEUED_UNITS, AccessPattern, Instruction, Kind, LoadTarget, Unit
from intloom.hw.spec.params import HardwareParams

VECTOR, MEMORY, WEIGHTS, START = "vector", "memory", "weights", "start"
"""What the array waits for: names of the fields of `Cycles`."""
_GAPS = {Unit.VEC: VECTOR, Unit.LOAD: MEMORY, Unit.STORE: MEMORY}


@dataclass(frozen=True)
class Cycles:
    """Cycles of a run by what the array does, or waits for."""

    array: float = 0
    """Useful products."""
    partial: float = 0
    """Products of lanes without a channel, and cycles of tiles that are shorter than the array."""
    vector: float = 0
    memory: float = 0
    """Loads of activations, and stores."""
    weights: float = 0
    start: float = 0
    """Start and end of the program, and of each layer."""

    @property
    def total(self) -> float:
        """All of them."""
        return float(sum(asdict(self).values()))


@dataclass(frozen=True)
class Work:
    """What one run of a model does; the unit of accesses is a word."""

    cycles: Cycles
    macs: int
    vector_macs: int
    scratch: int
    weight_words: int
    sums: int
    """Updates of one column's accumulator."""
    dram: int

    def __add__(self, other: Work) -> Work:
        parts = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "cycles"}
        both = (asdict(w.cycles) for w in (self, other))
        first, second = both
        return Work(cycles=Cycles(**{k: first[k] + second[k] for k in first}), **parts)

    def times(self, factor: float) -> Work:
        """A multiple of it."""
        parts = {f.name: getattr(self, f.name) * factor for f in fields(self) if f.name != "cycles"}
        return Work(cycles=Cycles(**{k: v * factor for k, v in asdict(self.cycles).items()}), **parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Work:
        """The inverse of `to_dict`."""
        return Work(**{**values, "cycles": Cycles(**values["cycles"])})


def work_of(programs: Iterable[Program], memory: MemoryTiming | None = None) -> Work:
    """The work of a model whose regions run one after the other; default memory: the one of its schedule."""
    first, *rest = (_work(program, memory or program.memory) for program in programs)
    return sum(rest, first)


def _work(program: Program, memory: MemoryTiming) -> Work:
    counts: Counter[str] = Counter()
    for instruction in program.instructions:
        counts.update(_accesses(instruction, program.params))
    return Work(
        cycles=cycles_of(program, memory),
        macs=program.macs,
        vector_macs=program.vector_macs,
        scratch=counts["scratch"],
        weight_words=counts["weights"],
        sums=counts["sums"],
        dram=counts["dram"],
    )


def _accesses(i: Instruction, params: HardwareParams) -> dict[str, int]:
    """Words that an instruction reads and writes in each memory."""
    if i.unit in (Unit.LOAD, Unit.STORE):
        local = "weights" if i.kind is Kind.LOAD and i["target"] == LoadTarget.WEIGHT else "scratch"
        return {"dram": memory_words(i), local: move_words(i)}
    if i.unit is Unit.MAC:
        blocks, tiles, strips = i["out_blocks"], conv_tiles(i), array_strips(i, params)
        pixels = blocks * sum(strip for strip, _, _ in strips)
        written = pixels * params.cols // params.rows
        return {
            "scratch": pixels * tiles + written * (1 + i["residual"]),
            "weights": blocks * tiles * params.tile_words * len(strips),
            "sums": pixels * tiles * params.cols,
        }
    if i.unit is not Unit.VEC or i.spec.pattern is AccessPattern.TABLE:
        return {}
    words = i["out_h"] * i["out_w"] * (i["blocks"] if "blocks" in i.values else 1)
    reads = {AccessPattern.ELEMENTWISE: 2 * words, AccessPattern.CHANNELS: 3 * words}
    if i.spec.pattern is AccessPattern.WINDOW:
        return {"scratch": words + window_words(i)}
    return {"scratch": words + reads.get(i.spec.pattern, words)}


def cycles_of(program: Program, memory: MemoryTiming) -> Cycles:
    """The forecast's cycles: each gap of the array belongs to the unit that the next CONV waited for last."""
    params, told = program.params, forecast_of(program, memory)
    convs = [i for i in program.instructions if i.unit is Unit.MAC]
    loads = [i for i in program.instructions if i.unit is Unit.LOAD]
    lost: Counter[str] = Counter()
    end, busy = 0, 0
    for conv, start in zip(convs, told.started[QUEUED_UNITS.index(Unit.MAC)], strict=True):
        if start > end:
            lost[_waited_for(conv, end, told.done, loads)] += start - end
        work = instruction_cost(conv, params).work
        # A CONV may begin before the last product of the one before it.
        busy += max(0, start + work - max(start, end))
        end = max(end, start + work)
    useful = min(busy, program.macs / params.macs)
    rest = max(0, told.cycles - end)
    # Of what ends after the last product, the unit that ends last.
    last = max((ends[-1], unit) for unit, ends in zip(QUEUED_UNITS, told.done, strict=True) if ends)[1]
    lost[_GAPS.get(last, START)] += rest
    return Cycles(array=useful, partial=busy - useful, **lost)


def _waited_for(conv: Instruction, end: int, done: tuple[tuple[int, ...], ...], loads: list[Instruction]) -> str:
    """What ended last of that which a CONV waits for, if it ended after the array's last product."""
    waited = [
        (done[row][count - 1], unit, count)
        for row, (unit, count) in enumerate(zip(QUEUED_UNITS, waits_of(conv), strict=True))
        if count and done[row][count - 1] > end
    ]
    if not waited:
        return START
    _, unit, count = max(waited)
    if unit is Unit.LOAD and loads[count - 1]["target"] == LoadTarget.WEIGHT:
        return WEIGHTS
    return _GAPS.get(unit, START)
