"""The exploration of a space: forecasts of all points, area, energy, budgets, the Pareto front and what to change."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from intloom.common.errors import ParameterError, UsageError
from intloom.exploration.device import Clock, Device, clock_of
from intloom.exploration.energy import Technology, energy
from intloom.exploration.limits import Change, changes_of, explain
from intloom.exploration.points import (
    Network,
    Outcome,
    Task,
    folded_for,
    memory_of,
    open_network,
    pooled,
    unused_functions,
)
from intloom.exploration.space import Space
from intloom.exploration.work import Work
from intloom.hw.area.model import area_of, total
from intloom.hw.spec.params import HardwareParams, preset_name
from intloom.sim.processes import Processes

Tell = Callable[[str, int, int], None]
_SMALLEST, _LARGEST = 1e-9, 1e9
"""Of frames per second, MB/s and MHz: rates in beats per cycle stay far from the limits of a float."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The device and what is asked of it."""

    device: Device
    technology: Technology
    fps: float | None = None
    """Frames per second; a frame is one run of every model, as often as its weight says."""
    bandwidth: float | None = None
    """MB/s of the memory port; None: a word per cycle."""
    latency: int = 100
    """Cycles of a memory read."""
    mhz: float | None = None
    """The clock; None: the measured one of the nearest routed design."""
    accelerators: int = 1
    """Accelerators on the memory port, each with frames of its own."""

    def __post_init__(self) -> None:
        for name, number in (("fps", self.fps), ("bandwidth", self.bandwidth), ("clock", self.mhz)):
            if number is not None and not _SMALLEST <= number <= _LARGEST:
                raise UsageError(f"{name} must be a number from {_SMALLEST:g} to {_LARGEST:g}, not {number:g}")


@dataclass(frozen=True, eq=False)
class Point:
    """One configuration with its forecast."""

    params: HardwareParams
    clock: Clock
    work: Work
    """Of a frame on one accelerator."""
    works: tuple[Work, ...]
    """Of one run of each model."""
    area: Mapping[str, Mapping[str, float]]
    """Cells of each component by kind."""
    energy: Mapping[str, float]
    """Microjoules of a frame, estimated."""
    budget: Budget

    @property
    def seconds(self) -> float:
        """Seconds of a frame on one accelerator."""
        return self.work.cycles.total / (self.clock.mhz * 1e6)

    @property
    def fps(self) -> float:
        """Frames per second of all accelerators."""
        return self.budget.accelerators / self.seconds

    @property
    def dram_bytes(self) -> float:
        """Bytes of a frame that cross the memory port."""
        return self.work.dram * self.params.word_bytes

    @property
    def memory_kib(self) -> int:
        """Scratchpad and weight memory of all accelerators."""
        return self.budget.accelerators * (self.params.scratch_kib + self.params.weight_kib)

    @cached_property
    def cells(self) -> dict[str, float]:
        """Cells of all accelerators by kind."""
        return {kind: number * self.budget.accelerators for kind, number in total(self.area).items()}

    @cached_property
    def shares(self) -> dict[str, float]:
        """Each budget's share that is used; above 1 does not fit."""
        device, fps = self.budget.device, self.budget.fps
        shares = {kind: self.cells.get(kind, 0) / there for kind, there in device.cells.items()}
        return shares | ({} if fps is None else {"frames/s": fps / self.fps})

    @property
    def fits(self) -> bool:
        """Whether it is within all budgets."""
        return max(self.shares.values(), default=0) <= 1

    @cached_property
    def objectives(self) -> tuple[float, ...]:
        """What a better configuration has less of: time, mean share of the device or gates and memory, and energy."""
        cells = self.budget.device.cells
        area = [self.cells.get("gates", 0.0), float(self.memory_kib)]
        if cells:
            area = [fmean(self.cells.get(kind, 0) / there for kind, there in cells.items())]
        return (1 / self.fps, *area, sum(self.energy.values()))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one per column of a table."""
        p = self.params
        return {
            "rows": p.rows, "cols": p.cols, "scratch_kib": p.scratch_kib, "weight_kib": p.weight_kib,
            "vector_lanes": p.vector_lanes, "lanes": p.lanes, "strip": p.strip,
            "cycles": round(self.work.cycles.total), "mhz": self.clock.mhz, "clock": self.clock.source,
            "fps": self.fps,
            **{kind: round(number) for kind, number in sorted(self.cells.items())},
            "memory_kib": self.memory_kib, "dram_bytes": round(self.dram_bytes),
            "energy_uj": sum(self.energy.values()), "fits": self.fits,
        }  # fmt: skip


@dataclass(frozen=True)
class Exploration:
    """All points, the Pareto front of those that fit, and what was left out."""

    points: tuple[Point, ...]
    front: tuple[Point, ...]
    """In the order of frames per second, fastest first."""
    refused: Mapping[str, str]
    """Reason by configuration: it is invalid, or a model does not compile for it."""
    budget: Budget
    networks: tuple[str, ...]
    varied: tuple[str, ...]
    """Fields with several values."""
    unused: tuple[str, ...] = ()
    """Functions that all configurations lack, because no model uses them."""
    advice: Mapping[HardwareParams, Sequence[Change]] = field(default_factory=dict)
    """What one change of a point of the front does."""

    @property
    def misses(self) -> tuple[Point, ...]:
        """The nearest points if none fits."""
        nearest = sorted(self.points, key=lambda point: max(point.shares.values(), default=0))
        return () if self.front else tuple(nearest[:5])

    def why(self, point: Point) -> str:
        """What limits a point, and the change that would lift it, in words."""
        return explain(point.work.cycles, self.advice.get(point.params, ()))

    def rows(self) -> list[dict[str, Any]]:
        """A row per point, front first: a table that pandas reads."""
        shown = [*self.front, *(p for p in self.points if p not in self._in_front)]
        return [
            {**point.to_dict(), "front": point in self._in_front, "limit": self.why(point), "name": self.name(point)}
            for point in shown
        ]

    @cached_property
    def _in_front(self) -> set[Point]:
        return set(self.front)

    def name(self, point: Point) -> str:
        """The fields that the space varies."""
        return point_name(point.params, self.varied)

    def to_csv(self) -> str:
        """The rows as CSV."""
        text, rows = io.StringIO(), self.rows()
        table = csv.DictWriter(text, rows[0] if rows else [], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        asked = self.budget
        return {
            "networks": list(self.networks),
            "device": asked.device.name,
            "cells": dict(asked.device.cells),
            "technology": asked.technology.name,
            "fps": asked.fps,
            "bandwidth": asked.bandwidth,
            "latency": asked.latency,
            "accelerators": asked.accelerators,
            "unused": list(self.unused),
            "points": self.rows(),
            "refused": dict(self.refused),
            "misses": [{"name": self.name(p), "misses": ", ".join(misses_of(p))} for p in self.misses],
        }

    def _repr_html_(self) -> str:
        from intloom.report.exploration import table_html

        return table_html(self)


def point_name(params: HardwareParams, varied: Sequence[str]) -> str:
    """Parameters by the fields that differ, or their preset."""
    known = preset_name(params)
    values = ", ".join(f"{name}={getattr(params, name)}" for name in varied)
    return f"{known}: {values}" if values and known != "custom" else values or known


def misses_of(point: Point) -> list[str]:
    """By how much a point misses each budget, the furthest first."""
    return [
        f"{point.fps:.2f} of {point.budget.fps:g} frames/s"
        if kind == "frames/s"
        else f"{kind} {point.cells.get(kind, 0):,.0f} of {point.budget.device.cells[kind]:,.0f} ({share - 1:+.0%})"
        for kind, share in sorted(point.shares.items(), key=lambda item: -item[1])
        if share > 1
    ]


def explore(
    models: Sequence[tuple[Path, float]],
    space: Space,
    budget: Budget,
    *,
    dims: Mapping[str, int] | None = None,
    where: Processes | None = None,
    tell: Tell | None = None,
) -> Exploration:
    """Forecast every point of a space for models with their weights; functions that no model uses are left out.

    Forecasts are kept in the cache as they come, so that an interrupted exploration resumes.

    Raises
    ------
    ParameterError
        No point of the space is valid, or no model compiles for any.
    """
    told = tell or (lambda _stage, _done, _all: None)
    space.points()  # a space without a valid point is told before any model is read
    told("fold", 0, 1)

    opened = [open_network(path, weight, dims or {}) for path, weight in models]
    based = [(folded_for(network, model, [space.base]), model) for network, model in opened]
    without = dict.fromkeys(unused_functions([network for network, _ in based], space.base), False)
    fitted = space.with_defaults(without)
    valid, refused = fitted.points()
    networks = tuple(folded_for(network, model, valid) for network, model in based)
    told("fold", 1, 1)
    search = _Search(networks, budget, where or Processes(), told)
    outcomes = search.outcomes(valid, "forecast")
    points = tuple(search.point(params, outcome) for params, outcome in outcomes.items() if not outcome.reason)
    varied = tuple(name for name, values in space.alternatives.items() if len(values) > 1)
    refused |= {point_name(p, varied): outcome.reason for p, outcome in outcomes.items() if outcome.reason}
    if not points:
        name, reason = next(iter(refused.items()))
        raise ParameterError(f"no point of the space compiles; for example {name}: {reason}")
    front = pareto([point for point in points if point.fits])
    names = tuple(network.name for network in networks)
    unused = tuple(name for name in without if getattr(fitted.base, name) != getattr(space.base, name))
    return Exploration(points, front, refused, budget, names, varied, unused, search.advice(front))


def pareto(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that no other point beats in every objective, fastest first; of equal ones the first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: p.objectives):
        if not any(all(a <= b for a, b in zip(k.objectives, point.objectives, strict=True)) for k in kept):
            kept.append(point)
    return tuple(kept)


@dataclass(frozen=True)
class _Search:
    """Forecasts of configurations under a budget."""

    networks: tuple[Network, ...]
    budget: Budget
    where: Processes
    tell: Tell

    def outcomes(self, points: Sequence[HardwareParams], stage: str) -> dict[HardwareParams, Outcome]:
        """The forecast of each configuration; equal ones are computed once."""
        tasks = {params: self._task(params) for params in points}
        keys = {task.key: task for task in tasks.values()}
        done: dict[str, Outcome] = {}
        self.tell(stage, 0, len(keys))
        for task, outcome in pooled(self.networks).results([*keys.values()], self.where):
            done[task.key] = outcome
            self.tell(stage, len(done), len(keys))
        return {params: done[task.key] for params, task in tasks.items()}

    def _task(self, params: HardwareParams) -> Task:
        clock = clock_of(params.macs, self.budget.mhz)
        memory = memory_of(params, clock.mhz, self.budget.bandwidth, self.budget.latency)
        # Accelerators have the same rate when all transfer.
        return Task(params, replace(memory, bandwidth=memory.bandwidth / self.budget.accelerators))

    def point(self, params: HardwareParams, outcome: Outcome) -> Point:
        """A configuration with its forecast, area and energy."""
        weights = [network.weight for network in self.networks]
        first, *rest = (work.times(weight) for work, weight in zip(outcome.works, weights, strict=True))
        work = sum(rest, first)
        spent = energy(work, params, self.budget.technology)
        area = area_of(params, self.budget.device.family)
        return Point(params, clock_of(params.macs, self.budget.mhz), work, outcome.works, area, spent, self.budget)

    def advice(self, front: Sequence[Point]) -> dict[HardwareParams, list[Change]]:
        """What single changes of each point of the front do."""
        wanted = {point.params: changes_of(point.params, point.work.cycles) for point in front}
        outcomes = self.outcomes([*dict.fromkeys(p for changes in wanted.values() for p in changes.values())], "advice")

        def change(name: str, old: Point, params: HardwareParams) -> Change:
            new = self.point(params, outcomes[params])
            return Change(name, old.work, new.work, old.params, params, next(iter(misses_of(new)), ""))

        return {
            point.params: [
                change(name, point, params)
                for name, params in wanted[point.params].items()
                if not outcomes[params].reason
            ]
            for point in front
        }
