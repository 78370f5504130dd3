"""The memory port of the forecast: two streams of words, reads and writes, that share its beats."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil

from hw.spec.isa import Instruction, Unit
from hw.spec.params import HardwareParams

from .cost import LOAD_LATENCY, STORE_LATENCY, move_bursts, move_words

_SLACK = 1e-3
"""Less than this of a word is nothing but rounding."""


@dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """How the memory behind the port behaves; the defaults are those of a run."""

    read_latency: int = 100
    """Cycles from a read request to its first beat."""
    write_latency: int = 20
    """Cycles from a burst's last beat to its response."""
    bandwidth: float = 1.0
    """Beats a cycle, reads and writes together; 0: a beat a cycle each way."""


@dataclass
class _Move:
    """A load or store at the port."""

    unit: Unit
    due: float
    words: float
    rate: float
    """The most words a cycle that its bursts allow."""
    tail: int


class MemoryPort:
    """Works off the moves that it is given, each direction in order."""

    def __init__(self, timing: MemoryTiming, params: HardwareParams) -> None:
        self.timing = timing
        self._params = params
        self._streams: dict[Unit, deque[_Move]] = {Unit.LOAD: deque(), Unit.STORE: deque()}
        self._now = 0.0

    def request(self, unit: Unit, time: int, instruction: Instruction) -> None:
        """A move starts at `time`."""
        words = move_words(instruction)
        load = unit is Unit.LOAD
        latency = self.timing.read_latency if load else self.timing.write_latency
        lead = latency + LOAD_LATENCY if load else STORE_LATENCY
        tail = 0 if load else latency
        beats = words / move_bursts(instruction, self._params)
        rate = min(1.0, beats * self._params.axi_outstanding / (latency + LOAD_LATENCY))
        self._streams[unit].append(_Move(unit, time + lead, words, rate, tail))

    def next_change(self) -> int | None:
        """When the next move is due or through, or None if there is none."""
        times = []
        for unit, stream in self._streams.items():
            if not stream:
                continue
            if stream[0].due > self._now:
                times.append(stream[0].due)
            elif (rate := self._rate(unit)) > 0:
                times.append(self._now + stream[0].words / rate)
        return ceil(min(times)) if times else None

    def advance(self, time: int) -> list[tuple[Unit, int]]:
        """Work up to `time`; gives the moves that are through, each with what it takes until it is done."""
        passed = time - self._now
        rates = {unit: self._rate(unit) for unit in self._streams}
        through = []
        for unit, stream in self._streams.items():
            if not stream or stream[0].due > self._now:
                continue
            stream[0].words -= rates[unit] * passed
            if stream[0].words < _SLACK:
                move = stream.popleft()
                through.append((unit, move.tail))
        self._now = time
        return through

    def _active(self, unit: Unit) -> bool:
        stream = self._streams[unit]
        return bool(stream) and stream[0].due <= self._now

    def _rate(self, unit: Unit) -> float:
        """Words a cycle of a direction: reads that are due go first, writes fill the gaps."""
        if not self._active(unit):
            return 0.0
        own = self._streams[unit][0].rate
        bandwidth = self.timing.bandwidth
        if bandwidth <= 0 or bandwidth >= 2:
            return own
        if unit is Unit.LOAD:
            return min(own, bandwidth)
        if self._active(Unit.LOAD):
            return max(0.0, bandwidth - self._rate(Unit.LOAD))
        return min(own, 1 / (ceil(1 / bandwidth) + 1)) if bandwidth <= 1 else own
