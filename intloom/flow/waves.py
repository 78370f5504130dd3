"""Waves of a window of cycles, recorded by a second simulation of the fast bench."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

from intloom.common.errors import UsageError
from intloom.compiler.program.program import Program
from intloom.sim.result import RunResult
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import RunFiles
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.shell import ACCELERATOR
from intloom.sim.trace import events
from intloom.sim.trace.gtkwave import write_save_file

_MARGIN = 500
"""Cycles before and after a wrong write."""
_LENGTH = 2000
"""Cycles of a window whose end is not given."""


@dataclass(frozen=True)
class Window:
    """The first and the last cycle, from the start of a region."""

    region: int
    first: int
    last: int


def choose_window(
    programs: Sequence[Program],
    result: RunResult,
    cycles: tuple[int, int] | None = None,
    from_layer: str | None = None,
) -> Window:
    """The cycles to record: those named, those from the start of a layer, those around the first wrong write.

    Without any of them, the first 2,000 cycles. `cycles` count through all regions.

    Raises
    ------
    UsageError
        The run has fewer cycles, or the layer no instruction.
    """
    if from_layer is not None:
        return _from_layer(programs, result, from_layer, None if cycles is None else cycles[1])
    if cycles is not None:
        return _in_region(result, *cycles)
    divergence = result.first_divergence
    if divergence is not None and divergence.cycle is not None:
        return Window(divergence.region, max(0, divergence.cycle - _MARGIN), divergence.cycle + _MARGIN)
    return Window(0, 0, _LENGTH)


def _in_region(result: RunResult, first: int, last: int) -> Window:
    starts = [0, *accumulate(region.cycles for region in result.regions)]
    for index, (start, end) in enumerate(pairwise(starts)):
        if start <= first < end:
            return Window(index, first - start, min(last, end) - start)
    raise UsageError(f"--cycles must begin before cycle {starts[-1]:,}, where the run ends, not at {first:,}")


def _from_layer(programs: Sequence[Program], result: RunResult, layer: str, last: int | None) -> Window:
    for index, (program, region) in enumerate(zip(programs, result.regions, strict=True)):
        starts = [e.start for e in events(program, region) if e.layer == layer]
        if starts:
            first = min(starts)
            return Window(index, first, first + _LENGTH if last is None else max(first, last))
    raise UsageError(f"--from-layer must name a layer that runs instructions, which {layer!r} does not")


def check_layer(programs: Sequence[Program], layer: str) -> None:
    """Raise `UsageError` if the programs have no such layer."""
    names = [one.name for program in programs for one in program.layers]
    if layer not in names:
        raise UsageError(f"--from-layer must be one of the layers {', '.join(names[:8])} …, not {layer!r}")


def record_waves(program: Program, result: RunResult, window: Window, options: RtlOptions, folder: Path) -> Path:
    """Simulate a region again and leave the waves of `window` in `folder`; `result` is that of the region.

    Stalls are seeded, so both runs are equal cycle by cycle.
    """
    backend = RtlBackend(replace(options, bench=FastBench(waves=True), folder=folder))
    cycles = (max(1, window.first + result.origin), window.last + result.origin)
    backend.observe(program, result.inputs, waves=cycles)
    waves = RunFiles(folder).waves
    write_save_file(waves, program, ACCELERATOR)
    return waves
