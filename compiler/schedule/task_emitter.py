"""Emits the tasks: loads are prefetched as far as local memory allows; each task then computes and stores.

Loads of later tasks are emitted before the work of earlier ones, in task order for each memory. A task's input may be
loaded ahead only if no task in between still has to store it. Memory is given back when the last task that uses it has
been emitted; the emitter's waits keep the hardware from reusing it too early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from intloom.common.errors import CapacityError
from intloom.compiler.emit.emitter import Emitter
from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.program import Provenance
from intloom.compiler.schedule.geometry import Tile
from intloom.compiler.schedule.local_memory import LocalMemory, ScratchMemory, WeightMemory
from intloom.compiler.schedule.tasks import BufferRequest, Region, Task, load_fields, tile_of
from intloom.compiler.schedule.tile_context import LoadedTables, TileContext
from intloom.hw.spec.isa import Kind

PREFETCH_DEPTH = 4
"""Tasks ahead of the current one whose loads may be emitted before its instructions."""


class TaskEmitter:
    """Emission state: what is in local memory, and how far loads have run ahead."""

    def __init__(self, emitter: Emitter, layers: Sequence[int], image_at: int) -> None:
        self._emitter = emitter
        self._layers = layers
        self._image_at = image_at
        self._scratch = ScratchMemory(emitter.params.scratch_words, self._load)
        self._weights = WeightMemory(emitter.params.weight_words, self._load)
        self._held = LoadedTables()
        self.last_store: dict[int, int] = {}

    @property
    def _stores(self) -> tuple[LocalMemory, ...]:
        return self._weights, self._scratch

    def run(self, tasks: Sequence[Task], progress: Callable[[int, int], None] | None) -> None:
        """Emit all tasks."""
        for store in self._stores:
            store.expect(tasks)
        heads = dict.fromkeys(self._stores, 0)
        for index, task in enumerate(tasks):
            # Before the forced load, so that the task gets its memory without an eviction where possible.
            self._prefetch(tasks, index, heads)
            for store, head in heads.items():
                if head <= index:
                    self._force(task, store)
                    heads[store] = index + 1
            # Again, because an eviction may have made space.
            self._prefetch(tasks, index, heads)
            self._work(task)
            if progress is not None:
                progress(index + 1, len(tasks))

    def _prefetch(self, tasks: Sequence[Task], index: int, heads: dict[LocalMemory, int]) -> None:
        """Emit loads of tasks up to PREFETCH_DEPTH ahead, the nearest task first, until memory is full."""
        limit = min(len(tasks), index + PREFETCH_DEPTH + 1)
        going = list(self._stores)
        while going:
            store = min(going, key=lambda s: heads[s])
            ahead = heads[store]
            if ahead < limit and self._may_load(tasks, index, ahead, store) and store.acquire(tasks[ahead]):
                heads[store] += 1
            else:
                going.remove(store)

    @staticmethod
    def _may_load(tasks: Sequence[Task], index: int, ahead: int, store: LocalMemory) -> bool:
        """Whether no task that is still to be emitted stores what the one at `ahead` loads."""
        # Weights are constants, which no task stores.
        if store.memory is Memory.WEIGHT or not tasks[ahead].reads:
            return True
        pending = [w for t in tasks[index:ahead] for w in t.writes]
        return not any(r.overlaps(w) for r in tasks[ahead].reads for w in pending)

    @staticmethod
    def _force(task: Task, store: LocalMemory) -> None:
        """Make room for a task that must run now: drop what was kept for later ones, which then load it again."""
        if store.acquire(task):
            return
        store.evict()
        if not store.acquire(task):
            raise CapacityError(f"node {task.stage.origin.name!r} does not fit the {store.memory.name.lower()} memory")

    def _load(self, task: Task, request: BufferRequest, first: int, words: int, start: int) -> None:
        fields = load_fields(request, first, words, start, self._image_at)
        if fields:
            note = (
                "weights" if request.memory is Memory.WEIGHT else "table" if request.constant is not None else "input"
            )
            self._emitter.emit(Kind.LOAD, self._provenance(task, note), **fields)

    def _provenance(self, task: Task, note: str = "") -> Provenance:
        return Provenance(layer=self._layers[task.stage.index], tile=task.number, note=note)

    def _work(self, task: Task) -> None:
        stage = task.stage
        context, regions = self._context(task)
        stage.compute(context)
        stage.emit_copies(context)
        # Stores come last: the emitter's waits make them follow the instructions that write these words.
        for region, tile in regions:
            fields = region.move(tile.base, tile.plane, tile.row)
            where = self._emitter.emit(Kind.STORE, self._provenance(task, region.buffer.name), **fields)
            self.last_store[id(region.buffer)] = where
        for store in self._stores:
            store.release(task)

    def _context(self, task: Task) -> tuple[TileContext, list[tuple[Region, Tile]]]:
        """Addresses of everything a task works on, and the stores that follow."""
        stage, chunk, rect = task.stage, task.chunk, task.rect
        operands = [self._operand(task, k) for k in range(len(stage.operands))]
        at = self._scratch.address[task.work.key] if task.work is not None else 0
        stores: list[tuple[Region, Tile]] = []
        if stage.in_place:
            result = operands[0]
        else:
            row = stage.result_row(rect)
            result = Tile(at, rect.height * row, row, rect.y0, rect.x0)
            at += result.plane * chunk.out_blocks
            first = stage.out.first_block + chunk.out_first
            stores += [(r, replace(result, base=result.word(r.first - first))) for r in task.kept]
        copies, at = self._copy_tiles(task, at, stores)
        context = TileContext(
            emitter=self._emitter,
            node=stage.origin.name,
            provenance=self._provenance(task),
            rect=rect,
            chunk=chunk,
            operands=operands,
            result=result,
            copies=copies,
            temporary=at,
            weights=self._weights.address[task.weights.key] if task.weights is not None else 0,
            tables={t: self._scratch.address[n.key] for t, n in task.tables.items()},
            held=self._held,
        )
        return context, stores

    def _operand(self, task: Task, operand: int) -> Tile:
        request = task.operands[operand]
        return tile_of(task.reads[operand], self._scratch.address[request.key] + request.guard)

    @staticmethod
    def _copy_tiles(task: Task, at: int, stores: list[tuple[Region, Tile]]) -> tuple[list[Tile | None], int]:
        writes = iter(task.copied)
        made = task.stage.result_channels(task.chunk)
        tiles: list[Tile | None] = []
        for copy in task.stage.copies:
            _, blocks = copy.target_blocks(made)
            if not blocks:
                tiles.append(None)
                continue
            rect = copy.target_rect(task.rect)
            tile = Tile(at, rect.area, rect.width, rect.y0, rect.x0)
            stores.append((next(writes), tile))
            tiles.append(tile)
            at += rect.area * blocks
        return tiles, at
