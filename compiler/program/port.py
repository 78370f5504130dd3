"""The memory port of the forecast: two streams of words, reads and writes, that share its beats."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil, inf

from hw.spec.isa import Instruction, Target, Unit
from hw.spec.params import HardwareParams

from .cost import LOAD_LATENCY, STORE_LATENCY, move_bursts, move_words

WAITING_BURSTS = 2
"""Bursts that a move may have in registers while as many as the bus allows are under way."""
HOLE_SHARE = 0.5
"""Words written for each beat that reads leave free: the memory notices a free beat one cycle late."""

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
    burst: float
    """Words of one of its bursts."""
    scratch: bool
    """It writes the scratchpad, where the array's results go first."""


@dataclass
class _Drain:
    """The array's results take the scratchpad's banks from `start` to `stop`, for `share` of the time."""

    start: int
    stop: int
    rate: float
    """Words a cycle that a load still gets in, behind words that stay at a bank for several cycles."""


class MemoryPort:
    """Works off the moves that it is given, each direction in order."""

    def __init__(self, timing: MemoryTiming, params: HardwareParams) -> None:
        self.timing = timing
        self._params = params
        self._streams: dict[Unit, deque[_Move]] = {Unit.LOAD: deque(), Unit.STORE: deque()}
        self._drains: deque[_Drain] = deque()
        self._now = 0.0

    def drain(self, start: int, stop: int, share: float) -> None:
        """The array works from `start` to `stop`, and its results drain for `share` of that time.

        A result word whose channels come in several cycles stays at its bank as long, and a load, which goes from
        bank to bank in every cycle, falls in behind it.
        """
        cycles = self._params.cols // self._params.lanes
        if cycles > 1:
            self._drains.append(_Drain(start, stop, 1 / (1 + share * (cycles - 1))))

    def request(self, unit: Unit, time: int, instruction: Instruction) -> None:
        """A move starts at `time`."""
        words = move_words(instruction)
        load = unit is Unit.LOAD
        latency = self.timing.read_latency if load else self.timing.write_latency
        lead = latency + LOAD_LATENCY if load else STORE_LATENCY
        tail = 0 if load else latency
        beats = words / move_bursts(instruction, self._params)
        rate = min(1.0, beats * self._params.axi_outstanding / (latency + LOAD_LATENCY))
        scratch = load and instruction["target"] == Target.SCRATCH
        self._streams[unit].append(_Move(unit, time + lead, words, rate, tail, beats, scratch))

    def takes(self, unit: Unit) -> bool:
        """Whether a unit may start its next move: all bursts of those before must have been asked for."""
        return self._surplus(unit) < _SLACK

    def _surplus(self, unit: Unit) -> float:
        """Bursts under way beyond those with which a unit may start its next move."""
        bursts = sum(m.words / m.burst for m in self._streams[unit])
        return bursts - self._params.axi_outstanding - WAITING_BURSTS

    def next_change(self) -> int | None:
        """When the next move is due or through, or a unit may start another one; None if there is no move."""
        times: list[float] = []
        for unit, stream in self._streams.items():
            if not stream:
                continue
            if stream[0].scratch:
                times += [t for d in self._drains for t in (d.start, d.stop) if t > self._now]
            if stream[0].due > self._now:
                times.append(stream[0].due)
            elif (rate := self._rate(unit)) > 0:
                surplus = self._surplus(unit)
                words = surplus * stream[0].burst if surplus >= _SLACK else inf
                times.append(self._now + min(stream[0].words, words) / rate)
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
        while self._drains and self._drains[0].stop <= time:
            self._drains.popleft()
        return through

    def _active(self, unit: Unit) -> bool:
        stream = self._streams[unit]
        return bool(stream) and stream[0].due <= self._now

    def _rate(self, unit: Unit) -> float:
        """Words a cycle of a direction: reads that are due go first, writes fill the gaps."""
        if not self._active(unit):
            return 0.0
        own = min(self._streams[unit][0].rate, self._behind_drain(unit))
        bandwidth = self.timing.bandwidth
        if bandwidth <= 0 or bandwidth >= 2:
            return own
        if unit is Unit.LOAD:
            return min(own, bandwidth)
        if self._active(Unit.LOAD):
            return max(0.0, bandwidth - self._rate(Unit.LOAD)) * HOLE_SHARE
        return min(own, 1 / (ceil(1 / bandwidth) + 1)) if bandwidth <= 1 else own

    def _behind_drain(self, unit: Unit) -> float:
        """Words a cycle that the scratchpad takes from a load, or from anything else."""
        busy = bool(self._drains) and self._drains[0].start <= self._now
        return self._drains[0].rate if busy and self._streams[unit][0].scratch else 1.0
