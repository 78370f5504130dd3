"""The forecast's memory port: a read stream and a write stream that share its bandwidth."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf

from intloom.compiler.program.cost import move_bursts, waiting_bursts
from intloom.compiler.program.program import MemoryTiming
from intloom.hw.spec import timing as hardware
from intloom.hw.spec.formats import memory_run, memory_words, move_words
from intloom.hw.spec.isa import Instruction, LoadTarget, Unit
from intloom.hw.spec.params import HardwareParams

_OTHER = {Unit.LOAD: Unit.STORE, Unit.STORE: Unit.LOAD}
_FEW = 8
"""Bursts in flight up to which each is an event; with more, their mean rate is close, and quicker to compute."""
_SLACK = 1e-3
"""A remainder below this many words is rounding error."""


@dataclass
class _Move:
    """A load, a store, or words of the program at the port."""

    unit: Unit
    due: float
    words: float
    rate: float
    """Upper limit, in words per cycle, from its bursts."""
    tail: int
    burst: float
    """Words per burst; the first one may be shorter."""
    count: int
    """Its bursts."""
    held: int
    """Bursts of its last run after the first one: the unit starts its next move before they are requested."""
    scratch: bool
    """It accesses the scratchpad, where the MAC and vector units have priority."""
    behind: float = 0.0
    """Words that loads have read in all before words of the program arrive."""
    left: float = inf
    """Words until its burst ends and the next one may have to wait; infinite: bursts are not followed."""

    @property
    def bursts(self) -> float:
        """Remaining bursts."""
        return self.words / self.burst


@dataclass
class _Contention:
    """Scratchpad contention from `start` to `stop`: a unit of higher priority accesses the banks."""

    start: int
    stop: int
    rates: Mapping[Unit, float]
    """Words per cycle left for a LOAD and for a STORE."""


def _contended_rate(cycles: int) -> float:
    """Words per cycle of a move while a unit of higher priority accesses a word every `cycles` cycles.

    Both access consecutive banks. An access every second cycle is the worst case: the move and the unit conflict again
    after every step, so the move proceeds at the unit's rate until the unit pauses. A unit that accesses a word every
    four cycles or less often shares a path with the moves and costs them one cycle.
    """
    if cycles == 2:
        return hardware.CONTENDED_RATE
    return 1 - 1 / cycles if cycles > 1 else 1.0


class MemoryPort:
    """Executes the moves of each direction in order."""

    def __init__(self, timing: MemoryTiming, params: HardwareParams) -> None:
        self.timing = timing
        self._params = params
        self._word_beats = params.word_beats
        self._streams: dict[Unit, deque[_Move]] = {Unit.LOAD: deque(), Unit.STORE: deque()}
        self._queued_bursts = {Unit.LOAD: 0.0, Unit.STORE: 0.0}
        """Bursts of all queued moves of a stream except the first."""
        self._fetches: deque[_Move] = deque()
        """Bursts of the program that have been requested, before their data."""
        self._read = 0.0
        """Words that loads have read."""
        self._contention: dict[Unit, deque[_Contention]] = {Unit.MAC: deque(), Unit.VEC: deque()}
        self._now = 0.0
        self._few = params.axi_outstanding <= _FEW
        # While a burst is awaited, the memory saves a beat.
        saved = max(0.0, 1 / timing.bandwidth - 1) if timing.bandwidth > 0 else 0.0
        self._trips = {
            Unit.LOAD: timing.read_latency + hardware.LOAD_TRIP - saved,
            Unit.STORE: timing.write_latency + hardware.STORE_TRIP - saved,
        }
        """Cycles from the end of a burst to the first word of the burst that takes its place."""
        self._ends = {unit: deque([-inf] * params.axi_outstanding, params.axi_outstanding) for unit in self._streams}
        """Ends of the last bursts, as many as may be in flight."""
        self._change: int | None = None
        self._rates: dict[Unit, float] = {}
        """Words per cycle of the moves that transfer until `_change`."""
        self._changed = True
        """Whether `_change`, the time of the next event, and `_rates` must be computed again."""

    def write_results(self, start: int, stop: int, share: float) -> None:
        """The MAC unit executes from `start` to `stop` and writes results for the fraction `share` of that time.

        A result word that is written in several cycles occupies its bank in each of them. A load accesses
        consecutive banks and waits for it.
        """
        waits = share * (self._params.cols // self._params.lanes - 1)
        if self._few:
            waits *= hardware.RESULT_CONFLICTS
        if waits:
            self._changed = True
            rates = {Unit.LOAD: 1 / (1 + waits), Unit.STORE: 1.0}
            self._contention[Unit.MAC].append(_Contention(start, stop, rates))

    def compute(self, start: int, stop: int, share: float) -> None:
        """The vector unit executes from `start` to `stop`, and writes results for the fraction `share` of that time.

        A load accesses consecutive banks and waits for each of them. If `share` is 0, the unit writes as many words
        as it reads.
        """
        rate = _contended_rate(self._params.vector_slices)
        if rate < 1:
            self._changed = True
            rates = {Unit.LOAD: 1 - share if share else rate, Unit.STORE: rate}
            self._contention[Unit.VEC].append(_Contention(start, stop, rates))

    def convolve(self, start: int, stop: int) -> None:
        """The vector unit executes a depthwise convolution from `start` to `stop`."""
        self._changed = True
        rates = {Unit.LOAD: hardware.DEPTHWISE_LOAD_RATE, Unit.STORE: hardware.DEPTHWISE_STORE_RATE}
        self._contention[Unit.VEC].append(_Contention(start, stop, rates))

    def request(self, unit: Unit, time: int, instruction: Instruction) -> None:
        """A move starts at `time`."""
        words = memory_words(instruction)
        load = unit is Unit.LOAD
        latency = self.timing.read_latency if load else self.timing.write_latency
        lead = latency + hardware.LOAD if load else hardware.STORE
        tail = 0 if load else latency
        addresses = hardware.RUN * instruction["n1"] * instruction["n2"]
        local = move_words(instruction)
        if words < local:
            runs = instruction["n1"] * instruction["n2"]
            addresses = max(addresses, local + hardware.CODED_RUN * runs)
        rate, left = min(1 / self._word_beats, words / addresses), inf
        held = 0
        if self._few:
            left, count = waiting_bursts(instruction, self._params)
            held = (memory_run(instruction) - 1) // self._params.burst_words
        else:
            count = move_bursts(instruction, self._params)
            # By Little's formula, at most `axi_outstanding` bursts are in flight during one round trip.
            rate = min(rate, words / count * self._params.axi_outstanding / (latency + hardware.LOAD))
        scratch = not load or instruction["target"] == LoadTarget.SCRATCH
        burst = (words - left) / (count - 1) if left < words else words / count
        move = _Move(unit, time + lead, words, rate, tail, burst, count, held, scratch, left=left)
        # `_queued_bursts` excludes the first move, whose remaining bursts change with every advance.
        if self._streams[unit]:
            self._queued_bursts[unit] += move.bursts
        self._streams[unit].append(move)
        self._changed = True

    def fetch(self, due: int, words: int) -> None:
        """Request words of the program, which arrive at `due` at the earliest, and after the loads in flight."""
        ahead, bursts = 0.0, float(self._params.axi_outstanding)
        for move in self._streams[Unit.LOAD]:
            ahead += min(move.words, bursts * move.burst)
            bursts -= move.bursts
            if bursts <= 0:
                break
        behind = self._read + ahead
        rate = 1 / self._word_beats
        burst = min(words, self._params.burst_words)
        count, left = words // burst, burst if self._few else inf
        self._fetches.append(_Move(Unit.CONTROL, due, words, rate, 0, burst, count, 0, False, behind, left))
        self._changed = True

    def takes(self, unit: Unit) -> bool:
        """Whether a unit may start its next move: the last runs of all earlier moves must be on their way."""
        return self._surplus(unit) < _SLACK

    def _surplus(self, unit: Unit) -> float:
        """Outstanding bursts above the limit for the next move."""
        stream = self._streams[unit]
        first = stream[0].bursts - stream[-1].held if stream else 0.0
        return first + self._queued_bursts[unit] - self._params.axi_outstanding - hardware.QUEUED_BURSTS

    def next_change(self) -> int | None:
        """Time of the next event: a move starts or ends, or a unit may start another one; None without moves."""
        if self._changed:
            self._change, self._changed = self._compute_change(), False
        return self._change

    def _compute_change(self) -> int | None:
        now, first_change = self._now, inf
        ahead = [periods[0] for periods in self._contention.values() if periods]
        self._rates = self._current_rates([h for h in ahead if h.start <= now])
        if (fetch := self._next_fetch()) is not None:
            rate, behind = self._rates.get(Unit.LOAD, 0.0), max(0.0, fetch.behind - self._read)
            loads = self._streams[Unit.LOAD]
            # Bursts of loads that were requested before it wait for nothing but their data.
            waits = behind > _SLACK and loads and loads[0].due <= now
            first_change = max(fetch.due, now + behind / rate if rate else inf if waits else now)
        for unit, stream in self._streams.items():
            if not stream:
                continue
            move = stream[0]
            if move.scratch:
                for h in ahead:
                    first_change = min(first_change, h.start if h.start > now else h.stop if h.stop > now else inf)
            if (due := self._due(unit)) > now:
                first_change = min(first_change, due)
            elif rate := self._rates[unit]:
                surplus = self._surplus(unit)
                words = min(move.words, move.left)
                words = min(words, surplus * move.burst) if surplus >= _SLACK else words
                first_change = min(first_change, now + words / rate)
        return ceil(first_change) if first_change < inf else None

    def _due(self, unit: Unit) -> float:
        """When the first word of the burst at the port arrives at the earliest."""
        due = self._streams[unit][0].due
        return max(due, self._ends[unit][0] + self._trips[unit]) if self._few else due

    def _current_rates(self, contention: Sequence[_Contention]) -> dict[Unit, float]:
        """Words per cycle of the moves that transfer; beats that both directions request alternate."""
        own = {}
        for unit, stream in self._streams.items():
            if stream and self._due(unit) <= self._now:
                own[unit] = stream[0].rate
                # The words per cycle that the scratchpad accepts from a load or returns to a store.
                if stream[0].scratch and contention:
                    own[unit] = min(own[unit], *(h.rates[unit] for h in contention))
        bandwidth = self.timing.bandwidth / self._word_beats
        # Each direction has its own beat in every cycle, so they do not compete.
        if not 0 < self.timing.bandwidth < 2:
            return own
        rest = {u: max(bandwidth - own.get(_OTHER[u], 0.0), bandwidth / 2) for u in own}
        return {u: min(rate, rest[u]) for u, rate in own.items()}

    def advance(self, time: int) -> list[tuple[Unit, int]]:
        """Advance to `time`; returns the moves that transferred their last word, each with the cycles until it ends."""
        self.next_change()  # the rates
        passed = time - self._now
        through = []
        for unit, rate in self._rates.items():
            stream = self._streams[unit]
            move = stream[0]
            move.words -= rate * passed
            move.left -= rate * passed
            if move.unit is Unit.LOAD:
                self._read += rate * passed
            if move.left < _SLACK and move.words >= _SLACK:
                self._ends[unit].append(time + move.left / rate)
                if self._due(unit) > time:
                    # Nothing is transferred after the burst.
                    move.words, move.left = move.words - move.left, 0.0
                move.left += move.burst
            if move.words < _SLACK:
                self._end(unit, move, time, rate)
                through.append((move.unit, move.tail))
                stream.popleft()
                self._queued_bursts[unit] -= stream[0].bursts if stream else 0.0
        self._now = time
        self._begin_fetch()
        self._changed = True
        for periods in self._contention.values():
            while periods and periods[0].stop <= time:
                periods.popleft()
        return through

    def _end(self, unit: Unit, move: _Move, time: int, rate: float) -> None:
        """Note the ends of a move's last bursts."""
        if move.left < inf:
            self._ends[unit].append(time)
        else:
            last = min(self._params.axi_outstanding, move.count)
            self._ends[unit].extend(time - n * move.burst / rate for n in reversed(range(last)))

    def _next_fetch(self) -> _Move | None:
        """The next words of the program, unless others are at the port."""
        loads = self._streams[Unit.LOAD]
        return None if not self._fetches or (loads and loads[0].unit is not Unit.LOAD) else self._fetches[0]

    def _begin_fetch(self) -> None:
        """Words of the program pass before those of loads that were requested later."""
        fetch, loads = self._next_fetch(), self._streams[Unit.LOAD]
        if fetch is None or fetch.due > self._now:
            return
        if fetch.behind - self._read > _SLACK and loads and loads[0].due <= self._now:
            return
        if loads:
            self._queued_bursts[Unit.LOAD] += loads[0].bursts
        loads.appendleft(self._fetches.popleft())
