"""The tasks of every slot in order, and the vector tasks that move forward in it.

A group in stripes runs its last stage first in each step. Otherwise stages run one after the other, so the tasks of a
pool or an addition would start after the last task of the convolution before it. Each such task moves to `tuning.LAG`
tasks behind the last one that writes what it reads, so that the vector unit works in parallel with the array.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.emit.tasks import Fill, Region, Step, Task, stage_tasks, whole_rect
from intloom.compiler.schedule.plan.dataflow import LocalBuffer
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.plan.stripes import Stripes, column_parts, columns_read
from intloom.compiler.schedule.plan.tiling import tile_rects
from intloom.compiler.schedule.stages.placement import Buffer, Rect
from intloom.compiler.schedule.stages.stage import Chunk, Stage
from intloom.hw.spec.isa import Unit


def slot_tasks(slots: Iterable[Slot], needed: Mapping[Buffer, frozenset[int]]) -> list[Step]:
    """The tasks of all slots in order; `needed` as in `stage_tasks`."""
    return [task for slot in slots for task in (_tiled if slot.tiling else _striped)(slot, needed)]


def image_constants(stages: Iterable[Stage], tasks: Iterable[Step]) -> Iterator[bytes]:
    """What the constant image must hold for the tasks, stage by stage: weights, then tables, then other constants."""
    tasks_of: dict[Stage, list[Task]] = defaultdict(list)
    for task in tasks:
        if isinstance(task, Task):
            tasks_of[task.stage].append(task)
    for own in map(tasks_of.__getitem__, stages):
        tables = [request for task in own for request in task.tables.values()]
        for request in (*(task.weights for task in own), *tables, *(task.constants for task in own)):
            yield from request.constants if request is not None else ()


def _tiled(slot: Slot, needed: Mapping[Buffer, frozenset[int]]) -> Iterator[Step]:
    """A stage tile by tile."""
    stage, tiling = slot.stages[0], slot.tiling
    assert tiling is not None  # else the slot is `_striped`
    rects, chunks = tile_rects(stage, tiling.tile_h, tiling.tile_w), stage.layout(tiling.chunk)
    if tiling.chunks_outside:
        tiles = [(rect, chunk, 0) for chunk in chunks for rect in rects]
    else:
        # Weights that come once serve all tiles; else each tile loads them again.
        once = len(chunks) == 1
        tiles = [(rect, chunk, 0 if once else k) for k, rect in enumerate(rects) for chunk in chunks]
    operands = dict.fromkeys(slot.local[v.buffer] for v in stage.operands if v.buffer in slot.local)
    for number, local in enumerate(operands):
        if local.loaded and local.inside.reads[0].stage is stage:
            yield fill(slot, local, stage, number, whole_rect(local.buffer))
    for tasks in stage_tasks(slot, stage, needed, [tiles]):
        yield from tasks


def _striped(slot: Slot, needed: Mapping[Buffer, frozenset[int]]) -> Iterator[Step]:
    """A group in stripes: in each step the last stage first.

    The rows that a buffer gets from DRAM for the next step are loaded as soon as the last reader of the step has run.
    """
    stripes = slot.stripes
    assert stripes is not None  # a slot has a tiling or stripes
    tasks = [
        stage_tasks(slot, stage, needed, _steps(slot, stripes, stage, done.rows[: stripes.steps + 1].tolist()))
        for stage, done in zip(slot.stages, stripes.progress, strict=True)
    ]
    every = [column_parts(stage, stripes.parts) for stage in slot.stages]
    arrivals = _arrivals(slot, stripes)
    for part in range(stripes.parts):
        for step in range(stripes.steps + 1):
            for stage, own, columns in reversed(list(zip(slot.stages, tasks, every, strict=True))):
                yield from next(own)
                yield from _fills(slot, stripes, stage, arrivals[stage], columns[part], step)


def _steps(slot: Slot, stripes: Stripes, stage: Stage, rows: Sequence[int]) -> Iterator[list[tuple[Rect, Chunk, int]]]:
    """The tasks of a stage in each step of each part, after which these rows are finished, for `stage_tasks`."""
    rings, resident = list(_rings(slot, stage)), stripes.resident_weights
    pieces = [list(_pieces(rings, low, high)) for low, high in pairwise([0, *rows])]
    chunks = stage.layout(_chunk_size(stage, resident=resident))
    for columns in column_parts(stage, stripes.parts):
        for number, step in enumerate(pieces):
            rects = [Rect(top, bottom, *columns) for top, bottom in step]
            yield [(rect, chunk, 0 if resident else number) for chunk in chunks for rect in rects]


def _pieces(rings: Iterable[tuple[LocalBuffer, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    cuts = {low, high}
    for ring, factor in rings:
        cuts.update(stop // factor for _, stop in ring.pieces(low * factor, high * factor))
    return pairwise(sorted(cuts))


def _rings(slot: Slot, stage: Stage) -> Iterator[tuple[LocalBuffer, int]]:
    """Rings in which a tile must not wrap, and their rows for each row of the result."""
    buffers = [(v.buffer, rows) for k, v in enumerate(stage.operands) if (rows := stage.ring_rows(k))]
    if stage.keep_result:
        buffers.append((stage.out.buffer, 1))
    buffers += [(c.target.buffer, c.motion.factors[0]) for c in stage.copies]
    return ((slot.local[b], factor) for b, factor in buffers if not slot.local[b].whole)


def _chunk_size(stage: Stage, *, resident: bool) -> int:
    """All blocks; or, if weights are streamed, as many as leave space for the next chunk's weights."""
    sizes = stage.chunk_sizes()
    if resident:
        return sizes[0]
    return next((s for s in sizes if stage.weight_words(s) <= stage.params.weight_words // 2), sizes[-1])


def _arrivals(slot: Slot, stripes: Stripes) -> Mapping[Stage, Sequence[LocalBuffer]]:
    """For each stage, the rings with rows from DRAM of which it is the first reader."""
    arrivals: dict[Stage, list[LocalBuffer]] = {stage: [] for stage in slot.stages}
    readers = {v.buffer: stage for stage in reversed(slot.stages) for v in stage.operands}
    for buffer, ring in stripes.rings.items():
        if ring.arrival is not None:
            arrivals[readers[buffer]].append(slot.local[buffer])
    return arrivals


def _fills(
    slot: Slot, stripes: Stripes, stage: Stage, rings: Iterable[LocalBuffer], columns: tuple[int, int], step: int
) -> Iterator[Fill]:
    """The loads of a step that follow a stage: of rings that no other stage of the step still reads.

    `columns` are those of the stage's result in this part of the image.
    """
    for ring in rings:
        rows = stripes.rings[ring.buffer].arrival
        assert rows is not None  # as in `_arrivals`
        low, high = int(rows[step - 1]) if step else 0, int(rows[step])
        if low < high:
            start, stop = 0, ring.buffer.columns
            if stripes.parts > 1:
                operand = [v.buffer for v in stage.operands].index(ring.buffer)
                start, stop = columns_read(stage, operand, columns)
            yield fill(slot, ring, stage, step, Rect(low, high, start, stop))


def fill(slot: Slot, local: LocalBuffer, stage: Stage, number: int, rect: Rect) -> Fill:
    """The load of a rectangle of all blocks that come from DRAM."""
    buffer = local.buffer
    regions = [
        Region(buffer, first, count, rect._replace(y0=top, y1=bottom))
        for top, bottom in local.pieces(rect.y0, rect.y1)
        for first, count in local.loaded
    ]
    return Fill(stage, number, slot, regions)


_Writers = dict[Buffer, list[tuple[Region, int]]]


def _ready(task: Task, writers: _Writers) -> int | None:
    """Position of the last task that writes what `task` reads, or None if every input is in DRAM from the start."""
    last = -1
    for region in task.reads:
        # Most positions ascend, so the last writers first: others need no comparison of their words.
        for written, at in reversed(writers[region.buffer]):
            if at > last and written.overlaps(region):
                last = at
    return None if last < 0 else last


def _may_move(task: Task, slots: Sequence[Slot]) -> bool:
    """Whether a task may run in the first of these slots; the last one is its own."""
    used = {r.buffer for r in (*task.reads, *task.results)} & task.slot.local.keys()
    if any(s.stripes is not None or not used <= s.local.keys() for s in slots):
        return False
    if any(s.local[b] is not task.slot.local[b] for s in slots for b in used):
        return False
    own = sum(n.words for n in task.requests(Memory.SCRATCH))
    return max(s.low for s in slots) + 2 * own <= task.stage.params.scratch_words


def interleave(tasks: Sequence[Step], slots: Sequence[Slot]) -> tuple[list[Step], dict[Buffer, int]]:
    """The tasks in another order, and the slot during which each buffer is first written in that order.

    Every read still follows the writes that it depends on.
    """
    writers: _Writers = defaultdict(list)
    first_writes: dict[Buffer, int] = {}
    keys: list[tuple[int, bool, int]] = []
    for number, task in enumerate(tasks):
        position, moved = number, False
        if isinstance(task, Task) and task.stage.unit is Unit.VEC:
            ready = _ready(task, writers)
            if ready is not None and ready + tuning.LAG < number:
                first = tasks[ready + tuning.LAG].slot.index
                if _may_move(task, slots[first : task.slot.index + 1]):
                    position, moved = ready + tuning.LAG, True
        slot = tasks[position].slot.index
        for region in task.results:
            # The new position counts, so that a vector task that reads the result of a moved one can move as well.
            writers[region.buffer].append((region, position))
            first_writes[region.buffer] = min(first_writes.get(region.buffer, slot), slot)
        # At equal positions the task that stays comes first, and moved tasks keep their order.
        keys.append((position, moved, number))
    return [tasks[number] for _, _, number in sorted(keys)], first_writes
