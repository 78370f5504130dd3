"""From tasks to instructions: local memory, loads ahead of their tasks, and where results lie in the scratchpad."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from intloom.common.errors import CapacityError
from intloom.compiler.program.footprint import Access, Memory
from intloom.compiler.program.program import LocalResult, Provenance
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.emit.dram import DramLayout, coded_piece
from intloom.compiler.schedule.emit.emitter import Emitter
from intloom.compiler.schedule.emit.local_memory import LocalMemory, ScratchMemory, WeightMemory
from intloom.compiler.schedule.emit.tasks import BufferRequest, Fill, Region, Step, Task, tile_of
from intloom.compiler.schedule.plan.dataflow import LocalBuffer
from intloom.compiler.schedule.stages.placement import Buffer, Rect, Tile, View
from intloom.compiler.schedule.stages.stage import LoadedTables, TileContext
from intloom.hw.spec.isa import Kind, LoadTarget, Unit


class TaskEmitter:
    """Emission state: what is in local memory, and how far loads have run ahead."""

    def __init__(self, emitter: Emitter, layers: Mapping[str, int], dram: DramLayout) -> None:
        self._emitter = emitter
        self._layers = layers
        self.dram = dram
        self._scratch = ScratchMemory(emitter.params.scratch_words, self._load)
        self._weights = WeightMemory(emitter.params.weight_words, self._load, coded_piece(emitter.params))
        self._held = LoadedTables()
        self._numbers: dict[Buffer, int] = {}
        self._written: Counter[tuple[Buffer, int]] = Counter()
        self.results: list[LocalResult] = []
        """Where the instructions so far write into buffers in the scratchpad."""
        self._lows: list[int] = []
        self.last_store: dict[Buffer, int] = {}
        self.stored: dict[Buffer, set[int]] = defaultdict(set)
        """Blocks of each buffer that were stored."""

    @property
    def _stores(self) -> tuple[LocalMemory, ...]:
        return self._weights, self._scratch

    def run(self, tasks: Sequence[Step], progress: Callable[[int, int], None] | None) -> None:
        """Emit all tasks."""
        for store in self._stores:
            store.expect(tasks)
        heads = dict.fromkeys(self._stores, 0)
        self._lows = _lows(tasks)
        for index, task in enumerate(tasks):
            # Before the forced load, so that the task gets its memory without an eviction where possible.
            self._prefetch(tasks, index, heads)
            for store, head in heads.items():
                if head <= index:
                    self._force(task, store, self._lows[index])
                    heads[store] = index + 1
            # Again, because an eviction may have made space.
            self._prefetch(tasks, index, heads)
            if isinstance(task, Fill):
                self._fill(task)
            else:
                self._work(task)
            for store in self._stores:
                store.release(task)
            if progress is not None:
                progress(index + 1, len(tasks))

    def reorder(self, order: Sequence[int]) -> None:
        """Follow a new order of the instructions, of which each is given by its old number."""
        new = {old: number for number, old in enumerate(order)}
        self.last_store = {buffer: new[old] for buffer, old in self.last_store.items()}
        self.results = sorted(r._replace(instruction=new[r.instruction]) for r in self.results)

    def _prefetch(self, tasks: Sequence[Step], index: int, heads: dict[LocalMemory, int]) -> None:
        """Emit loads of tasks up to tuning.PREFETCH_DEPTH ahead, the nearest task first, until memory is full."""
        limit = min(len(tasks), index + tuning.PREFETCH_DEPTH + 1)
        going = list(self._stores)
        while going:
            store = min(going, key=lambda s: heads[s])
            ahead = heads[store]
            low = max(self._lows[index : ahead + 1], default=0)
            if ahead < limit and self._may_load(tasks, index, ahead, store) and store.acquire(tasks[ahead], low):
                heads[store] += 1
            else:
                going.remove(store)

    @staticmethod
    def _may_load(tasks: Sequence[Step], index: int, ahead: int, store: LocalMemory) -> bool:
        """Whether no task that is still to be emitted stores what the one at `ahead` loads."""
        loads = tasks[ahead].weight_loads if store.memory is Memory.WEIGHT else tasks[ahead].loads
        if not loads:
            return True
        pending = [w for t in tasks[index:ahead] for w in t.stores]
        return not any(r.overlaps(w) for r in loads for w in pending)

    @staticmethod
    def _force(task: Step, store: LocalMemory, low: int) -> None:
        """Make room for a task that must run now: drop what was kept for later ones, which then load it again."""
        if store.acquire(task, low):
            return
        store.evict()
        if not store.acquire(task, low):
            raise CapacityError(f"node {task.stage.name!r} does not fit the {store.memory.name.lower()} memory")

    def _load(self, task: Step, request: BufferRequest, first: int, words: int, start: int) -> None:
        """Load `words` words of a request, from `first` on, to `start`."""
        content, row = request.content, request.row
        if isinstance(content, Region):
            address = self.dram.address(content.buffer)
            fields = content.move(address, start + request.guard, content.local_rows * row, row)
            self._emit(task, "input", fields | {"target": LoadTarget.SCRATCH})
            return
        parts = self.dram.parts(content, first, words) if isinstance(content, bytes) else content
        if request.memory is Memory.WEIGHT:
            note, target, size = "weights", LoadTarget.WEIGHT, self._weights.size
        else:
            note, target, size = "table", LoadTarget.SCRATCH, self._scratch.size
        for part in parts:
            fields = part.fields(self.dram.address(part.source), start - first, size)
            self._emit(task, note, fields | {"target": target})

    def _emit(self, task: Step, note: str, fields: Mapping[str, int], kind: Kind = Kind.LOAD) -> int:
        provenance = Provenance(layer=self._layers[task.stage.name], tile=task.number, note=note)
        return self._emitter.emit(kind, provenance, **fields)

    def _work(self, task: Task) -> None:
        stage = task.stage
        context, regions = self._context(task)
        first = len(self._emitter.instructions)
        stage.compute(context)
        if context.chunk.last:
            stage.emit_copies(context)
        self._record(task, first)
        # Stores come last: the emitter's waits make them follow the instructions that write these words.
        for region, tile in regions:
            fields = region.move(self.dram.address(region.buffer), tile.base, tile.plane, tile.row)
            self.last_store[region.buffer] = self._emit(task, region.buffer.name, fields, Kind.STORE)
            self.stored[region.buffer].update(range(region.first, region.first + region.blocks))

    def _record(self, task: Task, first: int) -> None:
        """Record where the instructions of a task, which start at `first`, write into local buffers."""
        targets = [(task.slot.local[r.buffer], r.rect) for r in task.results if r.buffer in task.slot.local]
        for index in range(first, len(self._emitter.instructions) if targets else first):
            if self._emitter.instructions[index].unit not in (Unit.MAC, Unit.VEC):
                continue
            access = self._emitter.results[index]
            for local, rect in targets:
                if access.write and local.address <= access.base < local.address + local.words:
                    self._add_result(index, local, rect, access)

    def _add_result(self, index: int, local: LocalBuffer, rect: Rect, access: Access) -> None:
        block, rest = divmod(access.base - local.address - local.guard, local.rows * local.row)
        row, x = divmod(rest, local.row)
        y = rect.y0 + (row - rect.y0) % local.rows
        x += rect.x0 if local.part else 0
        number = self._numbers.setdefault(local.buffer, len(self._numbers))
        self.results.append(LocalResult(index, number, local.inside.held.start + block, y, x))
        (blocks, _), (rows, _), (columns, _) = access.dims
        for k in range(blocks):
            self._written[local.buffer, local.inside.held.start + block + k] += rows * columns

    def local_number(self, view: View) -> int | None:
        """The number of a view's buffer among those in the scratchpad, if all its words were recorded."""
        whole = all(self._written[view.buffer, b] >= view.buffer.plane for b in view.touched_blocks)
        return self._numbers.get(view.buffer) if whole else None

    def _fill(self, task: Fill) -> None:
        for region in task.results:
            tile = task.slot.local[region.buffer].tile(region.first, region.rect.x0)
            local = tile.word(0, region.rect.y0, region.rect.x0)
            fields = region.move(self.dram.address(region.buffer), local, tile.plane, tile.row)
            self._emit(task, "input", fields | {"target": LoadTarget.SCRATCH})

    def _context(self, task: Task) -> tuple[TileContext, list[tuple[Region, Tile]]]:
        """Addresses of everything a task works on, and the stores that follow."""
        stage, chunk, rect = task.stage, task.chunk, task.rect
        operands = [self._operand(task, k) for k in range(len(stage.operands))]
        own = task.results_request
        at = self._scratch.address[own.key] if own is not None else 0
        stores: list[tuple[Region, Tile]] = []
        first = stage.out.first_block + chunk.out_first
        if stage.in_place:
            result = operands[0]
        elif stage.keep_result and chunk.last and stage.out.buffer in task.slot.local:
            result = task.slot.local[stage.out.buffer].tile(first, rect.x0)
        else:
            row = stage.result_row(rect)
            result = Tile(at, rect.height * row, row, rect.y0, rect.x0)
            at += result.plane * chunk.out_blocks
        stores += [(r, _part(result, r, first)) for r in task.kept]
        copies, at = self._copy_tiles(task, at, stores)
        context = TileContext(
            emit=lambda kind, note="", **fields: self._emit(task, note, fields, kind),
            rect=rect,
            chunk=chunk,
            operands=operands,
            result=result,
            copies=copies,
            temporary=at,
            weights=self._weights.address[task.weights.key] if task.weights is not None else 0,
            constants=self._scratch.address[task.constants.key] if task.constants is not None else 0,
            tables={t: self._scratch.address[n.key] for t, n in task.tables.items()},
            held=self._held,
        )
        return context, stores

    def _operand(self, task: Task, operand: int) -> Tile:
        request, region = task.operands[operand], task.reads[operand]
        if request is None:
            return task.slot.local[region.buffer].tile(region.first, region.rect.x0)
        return tile_of(region, request, self._scratch.address[request.key])

    @staticmethod
    def _copy_tiles(task: Task, at: int, stores: list[tuple[Region, Tile]]) -> tuple[list[Tile | None], int]:
        made = task.stage.result_channels(task.chunk)
        tiles: list[Tile | None] = []
        for copy, parts in zip(task.stage.copies, task.copied, strict=True):
            first, blocks = copy.target_blocks(made)
            if not blocks:
                tiles.append(None)
                continue
            local = task.slot.local.get(copy.target.buffer)
            if local is not None:
                tile = local.tile(first, task.rect.x0)
            else:
                rect = copy.target_rect(task.rect)
                tile = Tile(at, rect.area, rect.width, rect.y0, rect.x0)
                at += rect.area * blocks
            stores += [(r, _part(tile, r, first)) for r in parts]
            tiles.append(tile)
        return tiles, at


def _lows(tasks: Sequence[Step]) -> list[int]:
    """For each task the first scratchpad word that no local buffer uses while the task runs.

    A task that was moved forward runs while earlier slots still have tasks, whose buffers count as well.
    """
    slots = {t.slot.index: t.slot for t in tasks}
    first = len(slots) + max(slots, default=0)
    lows: list[int] = []
    for task in reversed(tasks):
        first = min(first, task.slot.index)
        lows.append(max(slots[k].low for k in range(first, task.slot.index + 1) if k in slots))
    return lows[::-1]


def _part(tile: Tile, region: Region, first: int) -> Tile:
    """The part of a tile from the first word of a region on; block 0 of the tile is block `first` of the buffer."""
    return tile.at(tile.word(region.first - first, region.rect.y0, region.rect.x0))
