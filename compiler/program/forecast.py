"""Forecast of a program's cycles: four units with queues and waits, and a memory port with latency and bandwidth.

This is an event simulation. Events are the arrival of an instruction, a free unit, and the start and end of a transfer.
Module `cost` has the cycles of single instructions.
"""

import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil
from weakref import WeakKeyDictionary

from intloom.compiler.program.cost import Cost, instruction_cost
from intloom.compiler.program.hazards import waits_of
from intloom.compiler.program.layers import layer_cycles
from intloom.compiler.program.mac_pipeline import MacPipeline, conv_shape
from intloom.compiler.program.memory_port import MemoryPort
from intloom.compiler.program.program import MemoryTiming, Program, Provenance
from intloom.hw.spec import timing as hardware
from intloom.hw.spec.formats import memory_words
from intloom.hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, AccessPattern, ConvMode, Instruction, Unit
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True)
class Forecast:
    """Predicted cycles: total, per layer by the rule of `layer_cycles`, and start and end of every instruction."""

    cycles: int
    layers: tuple[int, ...]
    started: tuple[tuple[int, ...], ...]
    done: tuple[tuple[int, ...], ...]


_COMPUTING = (Unit.MAC, Unit.VEC)
_PACKED = 64
"""Packed CONVs that may begin during one VDEPTHWISE, at most."""


@dataclass
class _Unit:
    """A unit's queue and the times of its instructions."""

    queue: deque[int] = field(default_factory=deque)
    started: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    finished: int = 0
    """Number of finished instructions."""
    free: int = 0
    """The earliest start of the next instruction."""


def _walk_end(start: int, cost: Cost, packed: Iterable[tuple[int, int]]) -> int:
    """The end of a VDEPTHWISE, with these periods of packed CONVs."""
    at, left = float(start), float(cost.work)
    for first, stop in packed:
        if stop <= at:
            continue
        alone = min(left, max(0.0, first - at))
        at, left = at + alone, left - alone
        slowed = min(left, max(0.0, stop - at) / (1 + cost.slower))
        at, left = at + slowed * (1 + cost.slower), left - slowed
    return ceil(at + left) + cost.tail


class _Simulation:
    """State of one forecast."""

    def __init__(self, instructions: Sequence[Instruction], params: HardwareParams, timing: MemoryTiming) -> None:
        self.instructions = instructions
        self.unit_of = [i.unit for i in instructions]
        self.params = params
        self.timing = timing
        self.units = [_Unit() for _ in QUEUED_UNITS]
        self.by_unit = tuple(zip(QUEUED_UNITS, self.units, strict=True))
        self.waits = [[(unit, n) for unit, n in zip(QUEUED_UNITS, waits_of(i), strict=True) if n] for i in instructions]
        self.port = MemoryPort(timing, params)
        self.array = MacPipeline()
        self.packed: deque[tuple[int, int]] = deque(maxlen=_PACKED)
        """Periods of the last packed CONVs."""
        self.queued = [0] * len(instructions)
        """When each instruction entered its queue."""
        self.joined = 0
        """Cycles by which a VDEPTHWISE may start before the end of the one before it."""
        self.walk: tuple[int, Cost] | None = None
        """Start and cost of a VDEPTHWISE in progress."""
        self.now = 0
        self.next = 0
        self.fetch_step = max(1, INSTRUCTION_BYTES // params.word_bytes)
        self.chunk = max(1, params.burst_words // self.fetch_step)
        """Instructions that are fetched together."""
        self.chunks = max(2 * params.burst_words // self.fetch_step, hardware.PREFETCH_INSTRUCTIONS) // self.chunk
        """How many of them the prefetch queue holds."""
        self.requested = self.arrived = 0
        """Chunks of the program."""
        self.fetched = timing.read_latency + hardware.FIRST_FETCH
        self.events: list[tuple[int, int, int]] = []
        """Time, unit and its number of finished instructions; unit -1 for a wake-up without completion."""
        self.last = 0

    def run(self) -> None:
        """Run until every instruction has finished."""
        self._wake(self.fetched)
        self._prefetch(self.fetched)
        while True:
            dispatched = self._dispatch()
            # A started instruction frees the queue slot that the next one waits for.
            if self._start() and not dispatched and self._dispatch():
                self._start()
            ahead = self.port.next_change()
            if self.events and (ahead is None or self.events[0][0] <= ahead):
                self.now = max(self.now, self.events[0][0])
                while self.events and self.events[0][0] <= self.now:
                    self._event(*heappop(self.events))
            elif ahead is not None:
                self._move(ahead)
            else:
                return

    def _wake(self, time: int) -> None:
        heappush(self.events, (time, -1, 0))

    def _event(self, time: int, unit: int, count: int) -> None:
        if unit < 0:
            return
        state = self.units[unit]
        if unit == Unit.VEC and self.walk is not None and not self._walked(*self.walk, state):
            return
        state.finished = max(state.finished, count)
        self.last = max(self.last, time)

    def _walked(self, start: int, cost: Cost, state: _Unit) -> bool:
        """Whether a VDEPTHWISE has ended; CONVs that began after it may have delayed it."""
        end = _walk_end(start, cost, self.packed)
        if end > self.now:
            heappush(self.events, (end, int(Unit.VEC), len(state.done)))
            return False
        state.done[-1] = state.free = self.now
        self.walk = None
        return True

    def _move(self, time: int) -> None:
        """Advance the port to `time`; a move that has transferred its last word finishes after its tail."""
        self.now = max(self.now, time)
        for unit, tail in self.port.advance(time):
            if unit is Unit.CONTROL:
                self.arrived += 1
                continue
            state = self.units[unit]
            state.done.append(time + tail)
            heappush(self.events, (time + tail, int(unit), len(state.done)))

    def _dispatch(self) -> bool:
        """Enqueue the next instruction if it has been fetched and its queue has a free slot."""
        # The first chunk is used as it arrives.
        if self.fetched > self.now or self.next >= min(len(self.instructions), max(1, self.arrived) * self.chunk):
            return False
        unit = self.unit_of[self.next]
        if unit is not Unit.CONTROL:
            queue = self.units[unit].queue
            if len(queue) >= self.params.queue_depth:
                return False
            queue.append(self.next)
            self.queued[self.next] = self.now
        self.next += 1
        # An instruction may be wider than a bus word; its fetch then takes several beats.
        self.fetched = self.now + self.fetch_step
        self._wake(self.fetched)
        self._prefetch(self.now + self.timing.read_latency + hardware.LOAD)
        return True

    def _prefetch(self, due: int) -> None:
        """Request the next chunks of the program for which the queue has space."""
        while self.requested < self.next // self.chunk + self.chunks:
            left = len(self.instructions) - self.requested * self.chunk
            if left <= 0:
                return
            self.requested += 1
            self.port.fetch(due, min(left, self.chunk) * self.fetch_step)

    def _start(self) -> bool:
        """Start the next instruction of every unit that can issue one."""
        begun = False
        now = self.now
        for unit, state in self.by_unit:
            if not state.queue or state.free > now:
                continue
            # Whether the waits are satisfied and, for a move, the port accepts another one.
            for other, count in self.waits[state.queue[0]]:
                if self.units[other].finished < count:
                    break
            else:
                if unit in _COMPUTING or self.port.takes(unit):
                    self._begin(unit, state.queue.popleft())
                    begun = True
        return begun

    def _begin(self, unit: Unit, number: int) -> None:
        state, instruction = self.units[unit], self.instructions[number]
        if unit in (Unit.LOAD, Unit.STORE):
            start = self.now + hardware.UNIT_START
            state.started.append(start)
            state.free = start
            self._wake(start)
            self.port.request(unit, start, instruction)
            return
        cost = instruction_cost(instruction, self.params)
        if unit is Unit.MAC:
            start = self._convolve(state, instruction)
            if instruction["mode"] == ConvMode.PACKED:
                self.packed.append((start, start + cost.work))
            self.port.write_results(start, start + cost.work, cost.readout)
            return
        start = self.now + hardware.UNIT_START
        depthwise = instruction.spec.pattern is AccessPattern.DEPTHWISE
        if depthwise and self.joined:
            satisfied = (self.units[other].done[count - 1] for other, count in self.waits[number])
            start -= min(self.joined, self.now - max(self.queued[number], *satisfied, 0))
        self.joined = cost.joined
        state.free = start + cost.cycles
        self._compute(unit, state, start, state.free)
        if depthwise:
            self.walk = start, cost
            # Until `_walked` knows its end.
            state.free = sys.maxsize
            self.port.convolve(max(start, self.now), start + cost.work)
        elif instruction.spec.pattern is not AccessPattern.TABLE:
            self.port.compute(start, start + cost.work, cost.readout)

    def _convolve(self, state: _Unit, instruction: Instruction) -> int:
        """Start a CONV; returns its start. The MAC unit decodes its next instruction during the current one."""
        start, done = self.array.run(conv_shape(instruction, self.params), self.now + hardware.MAC_START)
        state.free = start
        self._compute(Unit.MAC, state, start, done)
        return start

    def _compute(self, unit: Unit, state: _Unit, start: int, done: int) -> None:
        state.started.append(start)
        state.done.append(done)
        self._wake(state.free)
        heappush(self.events, (done, int(unit), len(state.done)))


@dataclass(frozen=True)
class Bound:
    """Cycles for which each unit is busy with a program's instructions; a run takes at least as many as the largest."""

    array: float = 0
    vector: float = 0
    bus: float = 0

    @property
    def cycles(self) -> float:
        """The largest of them."""
        return max(self.array, self.vector, self.bus)


def bound(program: Program) -> Bound:
    """The bound of a program, from the costs of its instructions alone: no waits, latencies or starts."""
    work, words, params = {Unit.MAC: 0, Unit.VEC: 0}, 0, program.params
    for instruction in program.instructions:
        if instruction.unit in work:
            work[instruction.unit] += instruction_cost(instruction, params).work
        elif instruction.unit is not Unit.CONTROL:
            words += memory_words(instruction)
    beats, bandwidth = words * params.word_beats, program.memory.bandwidth
    return Bound(work[Unit.MAC], work[Unit.VEC], beats / bandwidth if bandwidth else 0)


def run_times(
    instructions: Sequence[Instruction], params: HardwareParams, timing: MemoryTiming
) -> tuple[int, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Cycles of a run, and the starts and ends of each unit's instructions."""
    simulation = _Simulation(instructions, params, timing)
    simulation.run()
    started = tuple(tuple(u.started) for u in simulation.units)
    done = tuple(tuple(u.done) for u in simulation.units)
    return simulation.last, started, done


def forecast(
    instructions: Sequence[Instruction],
    provenance: Sequence[Provenance],
    layers: int,
    params: HardwareParams,
    timing: MemoryTiming | None = None,
) -> Forecast:
    """Forecast a program of `layers` layers; the default timing is that of the default memory model."""
    cycles, started, done = run_times(instructions, params, timing or MemoryTiming())
    spans = layer_cycles(instructions, provenance, layers, (started, done), (0, cycles))
    return Forecast(cycles, tuple(spans), started, done)


_OF_PROGRAMS: WeakKeyDictionary[Program, Forecast] = WeakKeyDictionary()
"""Forecasts of programs behind the memory of their schedule."""


def remember_forecast(program: Program, known: Forecast) -> None:
    """Keep the forecast of a program behind the memory of its schedule, for `forecast_of`."""
    _OF_PROGRAMS[program] = known


def forecast_of(program: Program, memory: MemoryTiming) -> Forecast:
    """The forecast of a program; behind the memory of its schedule, the one that was made with it."""
    if memory == program.memory and program in _OF_PROGRAMS:
        return _OF_PROGRAMS[program]
    return forecast(program.instructions, program.provenance, len(program.layers), program.params, memory)
