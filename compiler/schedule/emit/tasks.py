"""A stage as a list of tasks: what each tile of each chunk requests in local memory, loads, computes and stores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.plan.tiling import Tiling, operand_words, tile_rects, work_words
from intloom.compiler.schedule.stages.placement import Buffer, Rect, Tile, runs_of
from intloom.compiler.schedule.stages.stage import Chunk, Stage, WeightPart
from intloom.compiler.schedule.stages.weights import ConstantImage
from intloom.hw.spec.isa import LoadTarget


@dataclass(frozen=True)
class Region:
    """Blocks of a rectangle of a buffer in DRAM; the rectangle counts words along x."""

    buffer: Buffer
    first: int
    blocks: int
    rect: Rect

    def overlaps(self, other: Region) -> bool:
        """Whether they share a word."""
        return (
            self.buffer is other.buffer
            and self.first < other.first + other.blocks
            and other.first < self.first + self.blocks
            and self.rect.overlaps(other.rect)
        )

    def move(self, local: int, plane: int, row: int) -> dict[str, int]:
        """LOAD or STORE fields between the region and a tile at `local`; runs are joined where they can be."""
        b, r = self.buffer, self.rect
        fields = {"dram": b.address + self.first * b.plane + r.y0 * b.columns + r.x0, "local": local}
        if r.width != b.columns or row != r.width:
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
    """Words of local memory under a key, shared by equal keys; `region` or `constant` (image word) is loaded there.

    A region's rows are `row` words apart. With `parts`, these are loaded instead, all at once.
    """

    key: Hashable
    memory: Memory
    words: int
    region: Region | None = None
    constant: int | None = None
    guard: int = 0
    row: int = 0
    parts: tuple[WeightPart, ...] = ()


@dataclass
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
    operands: list[BufferRequest | None]
    """What is loaded for each operand; None for one in a local buffer."""
    tables: dict[bytes, BufferRequest]
    constants: BufferRequest | None
    """Weights of the vector unit."""
    weights: BufferRequest | None
    work: BufferRequest | None
    reads: list[Region] = field(default_factory=list)
    """Where each operand comes from."""
    results: list[Region] = field(default_factory=list)
    """Everything that is computed."""
    kept: list[Region] = field(default_factory=list)
    """Parts of the result that are stored."""
    copied: list[list[Region]] = field(default_factory=list)
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
        found = [*self.tables.values(), *constants, *(o for o in self.operands if o is not None)]
        return [*found, self.work] if self.work is not None else found


@dataclass
class Fill:
    """Rows that are loaded into local buffers; `stage` reads them first."""

    stage: Stage
    number: int
    slot: Slot
    results: list[Region]
    """What is loaded; no region wraps in its ring."""

    stores: tuple[Region, ...] = ()
    loads: tuple[Region, ...] = ()
    weight_loads: tuple[Region, ...] = ()

    def requests(self, memory: Memory) -> list[BufferRequest]:
        """None: the buffers have their addresses."""
        return []


Step = Task | Fill


def load_fields(request: BufferRequest, first: int, words: int, address: int, image_at: int) -> dict[str, int]:
    """Fields of the LOAD that brings `words` words of a request, from `first` on, to `address`; empty if no load."""
    if request.constant is not None:
        target = LoadTarget.WEIGHT if request.memory is Memory.WEIGHT else LoadTarget.SCRATCH
        return {"dram": image_at + request.constant + first, "local": address, "n0": words, "target": target}
    if request.region is None:
        return {}
    plane = request.region.rect.height * request.row
    return request.region.move(address + request.guard, plane, request.row) | {"target": LoadTarget.SCRATCH}


def _operand_request(stage: Stage, operand: int, rect: Rect, chunk: Chunk) -> tuple[BufferRequest, Region]:
    """The request for an operand, and the region it is loaded from."""
    view = stage.operands[operand]
    first, blocks = stage.operand_blocks(operand, chunk)
    part = stage.operand_rect(operand, rect)
    region = Region(view.buffer, view.first_block + first, blocks, part)
    words = operand_words(stage, operand, rect, chunk)
    key = (stage.index, id(view.buffer), part, region.first, blocks)
    guard, row = stage.operand_guard(operand), stage.operand_row(operand, part)
    return BufferRequest(key, Memory.SCRATCH, words, region=region, guard=guard, row=row), region


def _stored(region: Region, slot: Slot) -> list[Region]:
    """The parts of a result that go to DRAM: the blocks that some stage reads there."""
    local = slot.local.get(region.buffer)
    blocks = region.buffer.needed if local is None else local.stored
    runs = runs_of(blocks & set(range(region.first, region.first + region.blocks)))
    return [replace(region, first=first, blocks=count) for first, count in runs]


def _copies(stage: Stage, rect: Rect, chunk: Chunk) -> list[Region | None]:
    """What a task makes of each copy."""
    made = stage.result_channels(chunk)
    found: list[Region | None] = []
    for copy in stage.copies:
        first, blocks = copy.target_blocks(made)
        found.append(Region(copy.target.buffer, first, blocks, copy.target_rect(rect)) if blocks else None)
    return found


@dataclass(frozen=True)
class ConstantRequests:
    """The constants of a stage in the scratchpad: its vector tables, and those of each chunk."""

    tables: dict[bytes, BufferRequest]
    chunks: dict[int, BufferRequest]
    """By the chunk's index."""


def constant_requests(stage: Stage, chunks: Sequence[Chunk], image: ConstantImage) -> ConstantRequests:
    """The constants of a stage, which are added to the image."""
    tables = {
        t: BufferRequest(("table", stage.index, t), Memory.SCRATCH, stage.params.table_words, constant=image.add(t))
        for t in dict.fromkeys(stage.vector_tables)
    }
    found = {}
    for chunk in chunks:
        if data := stage.constants(chunk):
            key, words = ("constants", stage.index, chunk.index), len(data) // stage.params.word_bytes
            found[chunk.index] = BufferRequest(key, Memory.SCRATCH, words, constant=image.add(data))
    return ConstantRequests(tables, found)


def make_tasks(slot: Slot, tiling: Tiling, image: ConstantImage) -> list[Task]:
    """All tasks of a slot of one stage in the order in which they run."""
    stage = slot.stages[0]
    rects = tile_rects(stage, tiling.tile_h, tiling.tile_w)
    chunks = stage.chunks(tiling.chunk, [r.height for r in rects])
    if tiling.chunks_outside:
        order = [(c, b) for c in range(len(chunks)) for b in range(len(rects))]
    else:
        order = [(c, b) for b in range(len(rects)) for c in range(len(chunks))]
    constants = constant_requests(stage, chunks, image)
    tasks = []
    for number, (c, b) in enumerate(order):
        # Weights that come once serve all tiles; else each tile loads them again.
        visit = 0 if tiling.chunks_outside or len(chunks) == 1 else b
        tasks.append(make_task(slot, stage, number, rects[b], chunks[c], visit, constants))
    return tasks


def make_task(
    slot: Slot,
    stage: Stage,
    number: int,
    rect: Rect,
    chunk: Chunk,
    visit: int,
    constants: ConstantRequests,
) -> Task:
    """One task; tasks of equal `visit` share their weights."""
    weights = None
    if chunk.weight_words:
        key = ("weights", stage.index, chunk.index, visit)
        constant = None if chunk.weight_parts else chunk.weight_at
        weights = BufferRequest(key, Memory.WEIGHT, chunk.weight_words, constant=constant, parts=chunk.weight_parts)
    words = work_words(stage, rect, chunk, slot.local)
    task = Task(
        stage=stage,
        number=number,
        rect=rect,
        chunk=chunk,
        slot=slot,
        operands=[],
        tables=constants.tables,
        constants=constants.chunks.get(chunk.index),
        weights=weights,
        work=BufferRequest(("work", stage.index, number), Memory.SCRATCH, words) if words else None,
    )
    for k, view in enumerate(stage.operands):
        request, region = _operand_request(stage, k, rect, chunk)
        task.operands.append(None if view.buffer in slot.local else request)
        task.reads.append(region)
    if stage.keep_result:
        first, blocks = stage.result_blocks(chunk)
        region = Region(stage.out.buffer, stage.out.first_block + first, blocks, rect)
        task.results.append(region)
        task.kept = _stored(region, slot)
    copies = _copies(stage, rect, chunk)
    task.results += [c for c in copies if c is not None]
    task.copied = [[] if c is None else _stored_copy(c, slot) for c in copies]
    return task


def _stored_copy(region: Region, slot: Slot) -> list[Region]:
    # Without a local buffer the copy is stored as a whole.
    return _stored(region, slot) if region.buffer in slot.local else [region]


def whole_rect(buffer: Buffer) -> Rect:
    """All rows and words of a buffer."""
    return Rect(0, buffer.height, 0, buffer.columns)


def tile_of(region: Region, request: BufferRequest, address: int) -> Tile:
    """The tile that the region of a request, loaded to `address`, makes."""
    r = region.rect
    return Tile(address + request.guard, r.height * request.row, request.row, r.y0, r.x0)
