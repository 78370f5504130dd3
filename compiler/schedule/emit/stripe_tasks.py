"""A group in stripes as a list of tasks, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from intloom.compiler.schedule.emit.tasks import Fill, Region, Step, Task, constant_requests, make_task, make_tasks
from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.plan.groups import Goal, Group, find_groups
from intloom.compiler.schedule.plan.residency import Residency, Slot
from intloom.compiler.schedule.plan.stripes import LocalBuffer, Stripes
from intloom.compiler.schedule.plan.tiling import Tiling
from intloom.compiler.schedule.stages.placement import Buffer, Rect
from intloom.compiler.schedule.stages.stage import Stage
from intloom.compiler.schedule.stages.weights import ConstantImage
from intloom.hw.spec.params import HardwareParams


class _StageStripes:
    """The stripes of one stage: chunks, tables, and the rows at which ring buffers wrap."""

    def __init__(self, slot: Slot, stage: Stage, image: ConstantImage, rows: Sequence[int]) -> None:
        self._slot = slot
        self._stage = stage
        self._number = 0
        self._rings = self._find_rings()
        pieces = (self._pieces(low, high) for low, high in pairwise([0, *rows]) if low < high)
        heights = [bottom - top for cut in pieces for top, bottom in cut]
        self._chunks = stage.chunks(_chunk_size(stage, resident=slot.resident_weights), heights)
        self._constants = constant_requests(stage, self._chunks, image)

    def _find_rings(self) -> list[tuple[LocalBuffer, int]]:
        """Rings in which a tile must not wrap, and their rows for each row of the result."""
        stage, found = self._stage, []
        for operand, view in enumerate(stage.operands):
            if rows := stage.ring_rows(operand):
                found.append((view.buffer, rows))
        if stage.keep_result:
            found.append((stage.out.buffer, 1))
        found += [(c.target.buffer, c.factors[0]) for c in stage.copies]
        local = self._slot.local
        return [(local[b], factor) for b, factor in found if not local[b].whole]

    def _pieces(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        cuts = {low, high}
        for ring, factor in self._rings:
            cuts.update(stop // factor for _, stop in ring.pieces(low * factor, high * factor))
        rows = sorted(cuts)
        yield from pairwise(rows)

    def tasks(self, step: int, low: int, high: int) -> Iterator[Task]:
        """The tasks of rows `low` to `high`."""
        width = self._stage.extent[1]
        visit = 0 if self._slot.resident_weights else step
        for chunk in self._chunks:
            for top, bottom in self._pieces(low, high):
                rect = Rect(top, bottom, 0, width)
                yield make_task(self._slot, self._stage, self._number, rect, chunk, visit, self._constants)
                self._number += 1


def _chunk_size(stage: Stage, *, resident: bool) -> int:
    """All blocks; or, if weights are streamed, as many as leave space for the next chunk's weights."""
    sizes = stage.chunk_sizes()
    if resident:
        return sizes[0]
    return next((s for s in sizes if stage.weight_words(s) <= stage.params.weight_words // 2), sizes[-1])


def _fills(slot: Slot, stripes: Stripes, stage: Stage, step: int) -> Iterator[Fill]:
    """The loads of a step that follow a stage: those of buffers that no other stage of the step still reads."""
    for buffer, rows in stripes.arrivals.items():
        low, high = (int(rows[step - 1]) if step else 0), int(rows[step])
        if low < high and _first_reader(slot, buffer) is stage:
            yield fill(slot, slot.local[buffer], stage, step, (low, high))


def fill(slot: Slot, local: LocalBuffer, stage: Stage, number: int, rows: tuple[int, int]) -> Fill:
    """The load of some rows of all blocks that come from DRAM."""
    buffer = local.buffer
    regions = [
        Region(buffer, first, count, Rect(top, bottom, 0, buffer.columns))
        for top, bottom in local.pieces(*rows)
        for first, count in local.loaded
    ]
    return Fill(stage, number, slot, regions)


def _first_reader(slot: Slot, buffer: Buffer) -> Stage:
    return next(s for s in slot.stages if any(v.buffer is buffer for v in s.operands))


def stripe_tasks(slot: Slot, stripes: Stripes, image: ConstantImage) -> list[Step]:
    """All tasks of a group: in each step the last stage first.

    The rows that a buffer gets from DRAM for the next step are loaded as soon as the last reader of the step has run.
    """
    progress = (rows.tolist() for rows in stripes.progress)
    stages = [
        (stage, _StageStripes(slot, stage, image, rows)) for stage, rows in zip(slot.stages, progress, strict=True)
    ]
    steps: list[Step] = []
    for step in range(stripes.steps + 1):
        for (stage, tasks), rows in zip(stages[::-1], stripes.progress[::-1], strict=True):
            low, high = (int(rows[step - 1]) if step else 0), int(rows[step])
            if low < high:
                steps += tasks.tasks(step, low, high)
            steps += _fills(slot, stripes, stage, step)
    return steps


def schedule_slots(
    stages: Sequence[Stage],
    params: HardwareParams,
    tilings: Sequence[Tiling],
    goal: Goal | None,
) -> list[Slot]:
    """The slots of all stages in order; without a goal, every tensor goes through DRAM."""
    flow = Dataflow(stages)
    groups = [Group(k, k + 1, 0.0) for k in range(len(stages))]
    if goal is not None:
        groups = find_groups(flow, params, tilings, goal)
    residency = Residency(flow, groups, params)
    if goal is not None:
        residency.keep_between_groups(tilings)
        residency.start_vector_results_early(tilings)
    residency.allocate(tilings)
    return residency.slots


def slot_tasks(slot: Slot, image: ConstantImage) -> Iterator[Step]:
    """The tasks of a slot, in order."""
    if slot.stripes is not None:
        yield from stripe_tasks(slot, slot.stripes, image)
        return
    stage = slot.stages[0]
    for number, local in enumerate(
        dict.fromkeys(slot.local[v.buffer] for v in stage.operands if v.buffer in slot.local)
    ):
        if local.loaded and local.first_reader is stage:
            yield fill(slot, local, stage, number, (0, local.buffer.height))
    assert slot.tiling is not None  # set with the addresses
    yield from make_tasks(slot, slot.tiling, image)
