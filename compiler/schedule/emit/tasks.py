"""A stage as a list of tasks: what each tile of each chunk requests in local memory, loads, computes and stores."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count

from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.plan.tiling import loaded_rows, operand_words, work_words
from intloom.compiler.schedule.stages.placement import Buffer, Rect, Tile, runs_of
from intloom.compiler.schedule.stages.stage import Chunk, LoadPart, Stage


@dataclass(frozen=True)
class Region:
    """Blocks of a rectangle of a buffer in DRAM; the rectangle counts words along x."""

    buffer: Buffer
    first: int
    blocks: int
    rect: Rect
    runs: int = 1
    """Runs of each row that are rows in local memory, `pitch` words from one to the next."""
    pitch: int = 0

    @property
    def local_rows(self) -> int:
        """Rows of a block in local memory."""
        return self.rect.height * self.runs

    def overlaps(self, other: Region) -> bool:
        """Whether they share a word."""
        return (
            self.buffer is other.buffer
            and self.first < other.first + other.blocks
            and other.first < self.first + self.blocks
            and self.rect.overlaps(other.rect)
        )

    def move(self, address: int, local: int, plane: int, row: int) -> dict[str, int]:
        """LOAD or STORE fields between the region, of a buffer at `address`, and a tile at `local`.

        Runs are joined where they can be.
        """
        b, r = self.buffer, self.rect
        fields = {"dram": address + self.first * b.plane + r.y0 * b.columns + r.x0, "local": local}
        if self.runs > 1:
            runs = {"n0": row, "n1": self.runs, "dram_s1": self.pitch, "local_s1": row}
        elif r.width != b.columns or row != r.width:
            runs = {"n0": r.width, "n1": r.height, "dram_s1": b.columns, "local_s1": row}
        elif r.height != b.height or plane != b.plane:
            runs = {"n0": r.area}
        else:
            return fields | {"n0": r.area * self.blocks}
        if self.blocks == 1:
            return fields | runs
        return fields | runs | {"n2": self.blocks, "dram_s2": b.plane, "local_s2": plane}


@dataclass(frozen=True)
class BufferRequest:
    """Words of local memory under a key, shared by equal keys."""

    key: Hashable
    memory: Memory
    words: int
    content: Region | bytes | tuple[LoadPart, ...] = ()
    """What is loaded there: a region, a constant, in pieces where it does not fit yet, or parts, all at once."""
    guard: int = 0
    row: int = 0
    """Words from one row of a region to the next."""

    @property
    def constants(self) -> list[bytes]:
        """The constants that are loaded, or of which parts are."""
        parts = self.content if isinstance(self.content, tuple) else ()
        return [s for s in (self.content, *(part.source for part in parts)) if isinstance(s, bytes)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """One tile of one chunk of a stage.

    Operands and results in `local` buffers are used there; all others have memory of their own, which is loaded before
    the task and stored after it.
    """

    stage: Stage
    number: int
    rect: Rect
    chunk: Chunk
    slot: Slot
    operands: Sequence[BufferRequest | None]
    """What is loaded for each operand; None for one in a local buffer."""
    tables: Mapping[bytes, BufferRequest]
    constants: BufferRequest | None
    """Weights of the vector unit."""
    weights: BufferRequest | None
    results_request: BufferRequest | None
    """Results, copies and temporaries that are in no local buffer."""
    reads: Sequence[Region]
    """Where each operand comes from."""
    results: Sequence[Region]
    """Everything that is computed."""
    kept: Sequence[Region]
    """Parts of the result that are stored."""
    copied: Sequence[Sequence[Region]]
    """Parts of each copy that are stored."""

    @cached_property
    def stores(self) -> list[Region]:
        """Everything that is stored."""
        return [*self.kept, *(r for regions in self.copied for r in regions)]

    @cached_property
    def loads(self) -> list[Region]:
        """Everything that is loaded for this task alone."""
        return [r for r, request in zip(self.reads, self.operands, strict=True) if request is not None]

    @property
    def weight_loads(self) -> list[Region]:
        """Tensors that are loaded to the weight memory."""
        views = self.stage.weight_operands
        return [Region(v.buffer, v.first_block, v.blocks, whole_rect(v.buffer)) for v in views]

    def requests(self, memory: Memory) -> list[BufferRequest]:
        """Everything that the task requests in a memory; in the scratchpad tables and constants come first."""
        if memory is Memory.WEIGHT:
            return [self.weights] if self.weights is not None else []
        constants = [self.constants] if self.constants is not None else []
        requests = [*self.tables.values(), *constants, *(o for o in self.operands if o is not None)]
        return [*requests, self.results_request] if self.results_request is not None else requests


@dataclass(frozen=True, eq=False)
class Fill:
    """Rows that are loaded into local buffers; `stage` reads them first."""

    stage: Stage
    number: int
    slot: Slot
    results: Sequence[Region]
    """What is loaded; no region wraps in its ring."""

    stores: tuple[Region, ...] = ()
    loads: tuple[Region, ...] = ()
    weight_loads: tuple[Region, ...] = ()

    def requests(self, memory: Memory) -> list[BufferRequest]:
        """None: the buffers have their addresses."""
        return []


Step = Task | Fill


def _operand_request(stage: Stage, operand: int, rect: Rect, chunk: Chunk) -> tuple[BufferRequest, Region]:
    """The request for an operand, and the region it is loaded from."""
    view = stage.operands[operand]
    first, blocks = stage.operand_blocks(operand, chunk)
    part = stage.operand_rect(operand, rect)
    region = Region(view.buffer, view.first_block + first, blocks, part, *stage.operand_runs(operand, part))
    words = operand_words(stage, operand, rect, chunk)
    key = (stage, view.buffer, part, region.first, blocks)
    guard, (_, row) = stage.operand_guard(operand), loaded_rows(stage, operand, part)
    return BufferRequest(key, Memory.SCRATCH, words, region, guard, row), region


def _stored(region: Region, slot: Slot, needed: Mapping[Buffer, frozenset[int]]) -> list[Region]:
    """The parts of a result that go to DRAM: the blocks that some stage reads there."""
    local = slot.local.get(region.buffer)
    blocks = needed.get(region.buffer, frozenset()) if local is None else local.inside.stored
    runs = runs_of(blocks & set(range(region.first, region.first + region.blocks)))
    return [replace(region, first=first, blocks=count) for first, count in runs]


def _stored_copy(region: Region, slot: Slot, needed: Mapping[Buffer, frozenset[int]]) -> list[Region]:
    # Without a local buffer the copy is stored as a whole.
    return _stored(region, slot, needed) if region.buffer in slot.local else [region]


def _copies(stage: Stage, rect: Rect, chunk: Chunk) -> list[Region | None]:
    """What a task makes of each copy."""
    made = stage.result_channels(chunk)
    regions: list[Region | None] = []
    for copy in stage.copies:
        first, blocks = copy.target_blocks(made)
        regions.append(Region(copy.target.buffer, first, blocks, copy.target_rect(rect)) if blocks else None)
    return regions


def stage_tasks(
    slot: Slot,
    stage: Stage,
    needed: Mapping[Buffer, frozenset[int]],
    steps: Iterable[Sequence[tuple[Rect, Chunk, int]]],
) -> Iterator[list[Task]]:
    """The tasks of a stage in each step: one for a tile and a chunk; of equal numbers, they share the chunk's weights.

    `needed` has the blocks of each buffer that some stage or the host reads in DRAM.
    """
    numbers = count()
    weights_of, words_of, constants_of = cache(stage.weights), cache(stage.chunk_words), cache(stage.constants)
    tables = {
        table: BufferRequest(("table", stage, table), Memory.SCRATCH, stage.params.table_words, table)
        for table in dict.fromkeys(stage.vector_tables)
    }

    def task(rect: Rect, chunk: Chunk, visit: int) -> Task:
        number, words = next(numbers), work_words(stage, rect, chunk, slot.local)
        weights, constants, key = weights_of(chunk), constants_of(chunk), (stage, chunk.index)
        loaded = BufferRequest(("weights", *key, visit), Memory.WEIGHT, words_of(chunk), weights)
        held = BufferRequest(("constants", *key), Memory.SCRATCH, len(constants) // stage.params.word_bytes, constants)
        reads = [_operand_request(stage, k, rect, chunk) for k in range(len(stage.operands))]
        results, kept = [], list[Region]()
        # Of chunks that add to the same sums, the last one makes the result.
        if stage.keep_result and chunk.last:
            first, blocks = stage.result_blocks(chunk)
            results.append(Region(stage.out.buffer, stage.out.first_block + first, blocks, rect))
            kept = _stored(results[0], slot, needed)
        copies = _copies(stage, rect, chunk) if chunk.last else [None] * len(stage.copies)
        return Task(
            stage=stage,
            number=number,
            rect=rect,
            chunk=chunk,
            slot=slot,
            operands=[None if region.buffer in slot.local else request for request, region in reads],
            tables=tables,
            constants=held if constants else None,
            weights=loaded if weights else None,
            results_request=BufferRequest(("work", stage, number), Memory.SCRATCH, words) if words else None,
            reads=[region for _, region in reads],
            results=[*results, *(c for c in copies if c is not None)],
            kept=kept,
            copied=[[] if c is None else _stored_copy(c, slot, needed) for c in copies],
        )

    for step in steps:
        yield [task(*visit) for visit in step]


def whole_rect(buffer: Buffer) -> Rect:
    """All rows and words of a buffer."""
    return Rect(0, buffer.height, 0, buffer.columns)


def tile_of(region: Region, request: BufferRequest, address: int) -> Tile:
    """The tile that the region of a request, loaded to `address`, makes."""
    r = region.rect
    return Tile(address + request.guard, region.local_rows * request.row, request.row, r.y0, r.x0)
