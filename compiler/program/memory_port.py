"""The memory port of the forecast: two streams of words, reads and writes, that share its beats."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil, inf

from intloom.compiler.program.cost import move_bursts
from intloom.hw.spec import timing as hardware
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Instruction, Target, Unit
from intloom.hw.spec.params import HardwareParams

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
    """It reads or writes the scratchpad, where the array and the vector unit go first."""

    @property
    def bursts(self) -> float:
        """Bursts that are still to come."""
        return self.words / self.burst


@dataclass
class _Contention:
    """From `start` to `stop` the scratchpad's banks are in use by what comes before loads and stores."""

    start: int
    stop: int
    load: float
    """Words a cycle that a load still gets in."""
    store: float
    """Words a cycle that a store still gets out."""

    def rate(self, unit: Unit) -> float:
        """The same for either."""
        return self.load if unit is Unit.LOAD else self.store


def _beside(cycles: int) -> float:
    """Words a cycle that get past someone more important who takes a word every `cycles` cycles.

    Both go from bank to bank. Every second cycle is the worst: each step ahead meets the other one again, so that the
    move goes at its pace until the other one pauses. Whoever takes four cycles or more has a path in common with the
    moves, and costs them one.
    """
    if cycles == 2:
        return hardware.CONTENDED_RATE
    return 1 - 1 / cycles if cycles > 1 else 1.0


class MemoryPort:
    """Works off the moves that it is given, each direction in order."""

    def __init__(self, timing: MemoryTiming, params: HardwareParams) -> None:
        self.timing = timing
        self._params = params
        self._streams: dict[Unit, deque[_Move]] = {Unit.LOAD: deque(), Unit.STORE: deque()}
        self._behind = {Unit.LOAD: 0.0, Unit.STORE: 0.0}
        """Bursts of all moves of a stream but the first."""
        self._contention: dict[Unit, deque[_Contention]] = {Unit.MAC: deque(), Unit.VEC: deque()}
        self._now = 0.0

    def drain(self, start: int, stop: int, share: float) -> None:
        """The array works from `start` to `stop`, and its results drain for `share` of that time.

        A result word whose channels come in several cycles stays at its bank as long, and a load, which goes from
        bank to bank in every cycle, falls in behind it.
        """
        cycles = self._params.cols // self._params.lanes
        if cycles > 1:
            self._contention[Unit.MAC].append(_Contention(start, stop, 1 / (1 + share * (cycles - 1)), 1.0))

    def compute(self, start: int, stop: int, *, writes: bool) -> None:
        """The vector unit works from `start` to `stop`; `writes` says that it writes as many words as it reads."""
        rate = _beside(self._params.vector_slices)
        if rate < 1:
            self._contention[Unit.VEC].append(_Contention(start, stop, rate if writes else 1.0, rate))

    def request(self, unit: Unit, time: int, instruction: Instruction) -> None:
        """A move starts at `time`."""
        words = move_words(instruction)
        load = unit is Unit.LOAD
        latency = self.timing.read_latency if load else self.timing.write_latency
        lead = latency + hardware.LOAD if load else hardware.STORE
        tail = 0 if load else latency
        beats = words / move_bursts(instruction, self._params)
        addresses = hardware.RUN * instruction["n1"] * instruction["n2"]
        rate = min(1.0, words / addresses, beats * self._params.axi_outstanding / (latency + hardware.LOAD))
        scratch = not load or instruction["target"] == Target.SCRATCH
        move = _Move(unit, time + lead, words, rate, tail, beats, scratch)
        if self._streams[unit]:
            self._behind[unit] += move.bursts
        self._streams[unit].append(move)

    def takes(self, unit: Unit) -> bool:
        """Whether a unit may start its next move: all bursts of those before must have been asked for."""
        return self._surplus(unit) < _SLACK

    def _surplus(self, unit: Unit) -> float:
        """Bursts under way beyond those with which a unit may start its next move."""
        stream = self._streams[unit]
        first = stream[0].bursts if stream else 0.0
        return first + self._behind[unit] - self._params.axi_outstanding - hardware.QUEUED_BURSTS

    def next_change(self) -> int | None:
        """When the next move is due or through, or a unit may start another one; None if there is no move."""
        times: list[float] = []
        for unit, stream in self._streams.items():
            if not stream:
                continue
            if stream[0].scratch:
                times += [t for h in self._next_contention() for t in (h.start, h.stop) if t > self._now]
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
                through.append((unit, stream.popleft().tail))
                self._behind[unit] -= stream[0].bursts if stream else 0.0
        self._now = time
        for periods in self._contention.values():
            while periods and periods[0].stop <= time:
                periods.popleft()
        return through

    def _active(self, unit: Unit) -> bool:
        stream = self._streams[unit]
        return bool(stream) and stream[0].due <= self._now

    def _rate(self, unit: Unit) -> float:
        """Words a cycle of a direction: beats that both want go to each in turn."""
        if not self._active(unit):
            return 0.0
        own, bandwidth = self._own_rate(unit), self.timing.bandwidth
        if bandwidth <= 0 or bandwidth >= 2:
            return own
        other = Unit.STORE if unit is Unit.LOAD else Unit.LOAD
        rest = bandwidth - self._own_rate(other) if self._active(other) else bandwidth
        return min(own, max(rest, bandwidth / 2))

    def _own_rate(self, unit: Unit) -> float:
        """Words a cycle of a direction that has the memory to itself."""
        return min(self._streams[unit][0].rate, self._scratch_rate(unit))

    def _next_contention(self) -> list[_Contention]:
        """Of each unit the one at work, or the next."""
        return [periods[0] for periods in self._contention.values() if periods]

    def _scratch_rate(self, unit: Unit) -> float:
        """Words a cycle that the scratchpad takes from a load or gives to a store."""
        if not self._streams[unit][0].scratch:
            return 1.0
        return min((h.rate(unit) for h in self._next_contention() if h.start <= self._now), default=1.0)
