"""One time-parallel run: simulates segments and overlaps, checks the seams, extends overlaps that are too short."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace

import numpy as np

from intloom.common.errors import SimulationError
from intloom.compiler.program.memory import initial_memory
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.parallel.plan import Plan, Planner
from intloom.sim.parallel.seam import Seam, find_seam, same_until
from intloom.sim.parallel.segment import Segment, expected_memory, make_segment, whole_memory
from intloom.sim.parallel.state import states
from intloom.sim.parallel.stitch import SegmentRun, stitch
from intloom.sim.parallel.workers import Key, Task, Workers
from intloom.sim.result import Arrays, Progress, ProgressCallback
from intloom.sim.rtl.backend import limit_of, make_job
from intloom.sim.rtl.completion import require_completed
from intloom.sim.rtl.layers import boundaries
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.recording import LoadedJob, Recording

_POLL_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class SegmentSettings:
    """How the segments of a program are simulated."""

    verilog: str
    options: RtlOptions
    """With the limits of the whole program: a segment may take as long."""
    log_writes: bool

    def task(self, segment: Segment) -> Task:
        """The simulation of a segment."""
        job = make_job(segment.program, self.options, segment.ends)
        job = replace(job, log_writes=self.log_writes, log_bus=True)
        return Task(verilog=self.verilog, loaded=LoadedJob(job, segment.image))


class ParallelRun:
    """Runs one program.

    Parameters
    ----------
    planner
        Chooses and extends the overlaps of the program.
    inputs
        The program's inputs.
    workers
        Where segments are simulated.
    settings
        How segments are simulated.
    progress
        Called a few times a second.
    """

    def __init__(
        self,
        planner: Planner,
        inputs: Arrays,
        workers: Workers,
        settings: SegmentSettings,
        progress: ProgressCallback | None = None,
    ) -> None:
        self._program = planner.program
        self._inputs = inputs
        self._planner = planner
        self._workers = workers
        self._settings = settings
        self._progress = progress
        self._started = time.monotonic()
        self._layers = len(boundaries(self._program))
        self._segments: dict[Key, Segment] = {}
        self._after: dict[int, Machine] = {}
        self._recordings: dict[Key, Recording] = {}

    def run(self, plan: Plan) -> tuple[Plan, Recording]:
        """The plan whose seams all meet, and the recording of the whole program.

        Raises
        ------
        SimulationError
            A segment does not complete, or its memory differs from that of the instruction simulator.
        """
        while True:
            self._record([*plan.segments, *plan.overlaps])
            checked = self._extend(plan)
            if checked == plan:
                return plan, self._stitched(plan)
            plan = checked

    def _extend(self, plan: Plan) -> Plan:
        """The plan with longer overlaps at all seams that do not meet."""
        number = 0
        while number < len(plan.cuts):
            # After a change at an earlier cut this segment must run again first.
            if plan.segments[number] not in self._recordings:
                return plan
            self._record([plan.overlaps[number]])
            if self._seam(plan, number).met:
                number += 1
            else:
                plan = self._planner.extended(plan, number)
        return plan

    def _seam(self, plan: Plan, number: int) -> Seam:
        earlier, overlap = plan.segments[number], plan.overlaps[number]
        return find_seam(self._segments[earlier], self._recordings[earlier], self._recordings[overlap])

    def _stitched(self, plan: Plan) -> Recording:
        parts = [SegmentRun(self._segments[plan.segments[0]], self._recordings[plan.segments[0]])]
        for number, (key, overlap) in enumerate(zip(plan.segments[1:], plan.overlaps, strict=True)):
            seam, alone, recording = self._seam(plan, number), self._recordings[overlap], self._recordings[key]
            if not same_until(seam.equal_to - seam.offset, alone, recording):
                raise SimulationError(f"two simulations of instruction {key[0]} and following differ in their timing")
            parts.append(SegmentRun(self._segments[key], recording, seam, alone))
        whole = stitch(parts, time.monotonic() - self._started)
        original = initial_memory(self._program, self._inputs)
        return replace(whole, memory=whole_memory(self._program, whole.memory, original))

    def _record(self, keys: Iterable[Key]) -> None:
        """Simulate all of `keys` that have no recording yet."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._recordings]
        if not missing:
            return
        waiting = {
            self._workers.submit(key, self._settings.task(segment)): key for key, segment in self._segments_of(missing)
        }
        while waiting:
            done, _ = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
            for future in done:
                self._keep(waiting.pop(future), self._workers.result(future))
            if self._progress is not None:
                self._progress(self._state(missing))

    def _segments_of(self, keys: list[Key]) -> Iterator[tuple[Key, Segment]]:
        """Each key with its segment as soon as the instruction simulator has the state at its start.

        Overlaps come last: they are short, and a segment that starts late would end late.
        """
        overlaps: list[Key] = []
        for position, state in states(self._program, self._inputs, {p for key in keys for p in key if p < self._count}):
            self._after[position] = state
            for number, key in enumerate(sorted((k for k in keys if k[0] == position), reverse=True)):
                self._segments[key] = make_segment(self._program, *key, state)
                if number:
                    overlaps.append(key)
                else:
                    yield key, self._segments[key]
        yield from ((key, self._segments[key]) for key in overlaps)

    def _keep(self, key: Key, recording: Recording) -> None:
        """Keep a recording whose program completed with the memory of the instruction simulator."""
        segment = self._segments[key]
        require_completed(
            segment.program, recording.report, recording.status, limit_of(self._program, self._settings.options)
        )
        if key[1] < self._count:
            expected = expected_memory(self._program, segment, self._after[key[1]]).reshape(-1)
            if differing := np.flatnonzero(expected != recording.memory).tolist():
                word = differing[0] // self._program.params.word_bytes
                raise SimulationError(
                    f"memory after instruction {key[1] - 1} must be that of the instruction simulator, but "
                    f"{len(differing)} bytes differ, the first in word {word}"
                )
        self._recordings[key] = recording

    @property
    def _count(self) -> int:
        return len(self._program.instructions)

    def _state(self, keys: list[Key]) -> Progress:
        seconds, cycle = time.monotonic() - self._started, self._workers.cycles()
        hertz = cycle / seconds
        expected = sum(self._planner.cycles(*key) for key in (*keys, *self._recordings))
        # A layer that ends in an overlap is counted in both segments.
        done = min(self._workers.layers(), self._layers)
        return Progress(
            cycle=cycle,
            layer=self._program.layers[min(done, len(self._program.layers) - 1)].name,
            layers_done=done,
            layers=self._layers,
            sim_hz=hertz,
            seconds_left=max(0.0, (expected - cycle) / hertz) if hertz else 0.0,
        )
