"""Merges the results of a model's regions, which run one after the other, into one result."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.sim.result import RunResult
from intloom.sim.rtl.status import Pulses


def merge_results(results: Sequence[RunResult]) -> RunResult:
    """Sum of the regions' results; their cycles follow each other.

    What the host does between regions is not simulated and takes no cycles.
    """
    if len(results) == 1:
        return replace(results[0], regions=tuple(results))
    cycles = sum(r.cycles for r in results)
    counters = sum((Counter(dict(r.counters)) for r in results), Counter[str]())
    # Rates are not additive, but times are.
    simulated = sum(r.cycles / r.sim_hz for r in results if r.sim_hz)
    return replace(
        results[0],
        outputs={name: array for r in results for name, array in r.outputs.items()},
        wall_s=sum(r.wall_s for r in results),
        build_s=sum(r.build_s for r in results),
        cycles=cycles,
        macs=sum(r.macs for r in results),
        vector_macs=sum(r.vector_macs for r in results),
        # A mean weighted by cycles; the plain mean would count short regions too much.
        mac_use=sum(r.mac_use * r.cycles for r in results) / cycles if cycles else 0.0,
        sim_hz=cycles / simulated if simulated else 0.0,
        dram_bytes=sum(r.dram_bytes for r in results),
        counters=counters,
        clock_stopped=_clock_stopped(results, cycles),
        layers=tuple(layer for r in results for layer in r.layers),
        tensors={name: array for r in results for name, array in r.tensors.items()},
        memory=None,
        pulses=_pulses(results),
        regions=tuple(results),
    )


def _clock_stopped(results: Sequence[RunResult], cycles: int) -> dict[str, float]:
    """The shares of all regions, each weighted by its cycles."""
    names = results[0].clock_stopped
    return {n: sum(r.clock_stopped.get(n, 0.0) * r.cycles for r in results) / cycles for n in names} if cycles else {}


def _pulses(results: Sequence[RunResult]) -> Pulses | None:
    """All pulses on one cycle count; each region starts at the cycle at which the previous one ended."""
    known = [r.pulses for r in results if r.pulses is not None]
    if len(known) < len(results):
        return None
    starts = np.cumsum([0, *(r.cycles for r in results[:-1])])
    shifts = [int(start) - r.origin + results[0].origin for start, r in zip(starts, results, strict=True)]
    started = _moved([p.started for p in known], shifts)
    return Pulses(started, _moved([p.done for p in known], shifts))


def _moved(sides: Sequence[Sequence[NDArray[np.uint64]]], shifts: Sequence[int]) -> tuple[NDArray[np.uint64], ...]:
    """For each unit the cycles of all regions, each shifted by the start of its region."""
    return tuple(
        np.concatenate(
            [(cycles.astype(np.int64) + s).astype(np.uint64) for cycles, s in zip(unit, shifts, strict=True)]
        )
        for unit in zip(*sides, strict=True)
    )
