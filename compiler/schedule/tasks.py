"""A stage as a list of tasks: what each tile of each chunk requests in local memory, loads, computes and stores."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from intloom.compiler.emit.constants import ConstantImage
from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule.conv_stage import ConvStage
from intloom.compiler.schedule.geometry import Buffer, Rect, Tile
from intloom.compiler.schedule.stage import Stage
from intloom.compiler.schedule.tile_context import Chunk
from intloom.compiler.schedule.tiling import GUARD_WORDS, Tiling, operand_words, tile_rects, work_words
from intloom.hw.spec.isa import Target


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
    """Words of local memory under a key, shared by equal keys; `region` or `constant` (image word) is loaded there."""

    key: Hashable
    memory: Memory
    words: int
    region: Region | None = None
    constant: int | None = None
    guard: int = 0


@dataclass
class Task:
    """One tile of one chunk of a stage."""

    stage: Stage
    number: int
    rect: Rect
    chunk: Chunk
    operands: list[BufferRequest]
    tables: dict[bytes, BufferRequest]
    weights: BufferRequest | None
    work: BufferRequest | None
    reads: list[Region] = field(default_factory=list)
    """Where each operand comes from."""
    kept: list[Region] = field(default_factory=list)
    """Parts of the result that are stored."""
    copied: list[Region] = field(default_factory=list)
    """Copies that are stored."""

    @property
    def writes(self) -> list[Region]:
        """Everything that is stored."""
        return [*self.kept, *self.copied]

    def requests(self, memory: Memory) -> list[BufferRequest]:
        """Everything that the task requests in a memory; in the scratchpad tables come first."""
        if memory is Memory.WEIGHT:
            return [self.weights] if self.weights is not None else []
        found = [*self.tables.values(), *self.operands]
        return [*found, self.work] if self.work is not None else found


def load_fields(request: BufferRequest, first: int, words: int, address: int, image_at: int) -> dict[str, int]:
    """Fields of the LOAD that brings `words` words of a request, from `first` on, to `address`; empty if no load."""
    if request.constant is not None:
        target = Target.WEIGHT if request.memory is Memory.WEIGHT else Target.SCRATCH
        return {"dram": image_at + request.constant + first, "local": address, "n0": words, "target": target}
    if request.region is None:
        return {}
    return request.region.move(address + request.guard, request.region.rect.area, request.region.rect.width) | {
        "target": Target.SCRATCH
    }


def _operand_request(stage: Stage, operand: int, rect: Rect, chunk: Chunk) -> tuple[BufferRequest, Region]:
    """The request for an operand, and the region it is loaded from."""
    view = stage.operands[operand]
    first, blocks = stage.operand_blocks(operand, chunk)
    part = stage.operand_rect(operand, rect)
    region = Region(view.buffer, view.first_block + first, blocks, part)
    packed = isinstance(stage, ConvStage) and stage.packed and operand == 0
    words = operand_words(stage, operand, rect, chunk)
    key = (stage.index, id(view.buffer), part, region.first, blocks)
    return BufferRequest(key, Memory.SCRATCH, words, region=region, guard=GUARD_WORDS if packed else 0), region


def _kept(stage: Stage, rect: Rect, chunk: Chunk) -> list[Region]:
    """What a task stores of its result: the blocks that some stage reads."""
    if not stage.keep_result:
        return []
    first, blocks = stage.result_blocks(chunk)
    buffer = stage.out.buffer
    return [Region(buffer, f, n, rect) for f, n in buffer.needed_runs(stage.out.first_block + first, blocks)]


def _copied(stage: Stage, rect: Rect, chunk: Chunk) -> list[Region]:
    """What a task stores of its copies."""
    regions = []
    made = stage.result_channels(chunk)
    for copy in stage.copies:
        first, blocks = copy.target_blocks(made)
        if blocks:
            regions.append(Region(copy.target.buffer, first, blocks, copy.target_rect(rect)))
    return regions


def make_tasks(stage: Stage, tiling: Tiling, image: ConstantImage) -> list[Task]:
    """All tasks of a stage in the order in which they run."""
    chunks = stage.chunks(tiling.chunk)
    rects = tile_rects(stage, tiling.tile_h, tiling.tile_w)
    if tiling.chunks_outside:
        order = [(c, b) for c in range(len(chunks)) for b in range(len(rects))]
    else:
        order = [(c, b) for b in range(len(rects)) for c in range(len(chunks))]
    tables = {
        t: BufferRequest(("table", stage.index, t), Memory.SCRATCH, stage.params.table_words, constant=image.add(t))
        for t in dict.fromkeys(stage.vector_tables)
    }
    tasks = []
    for number, (c, b) in enumerate(order):
        chunk, rect = chunks[c], rects[b]
        # Weights that come once serve all tiles; else each tile loads them again.
        visit = 0 if tiling.chunks_outside or len(chunks) == 1 else b
        tasks.append(_task(stage, number, rect, chunk, visit, tables))
    return tasks


def _task(stage: Stage, number: int, rect: Rect, chunk: Chunk, visit: int, tables: dict[bytes, BufferRequest]) -> Task:
    weights = None
    if chunk.weight_words:
        key = ("weights", stage.index, chunk.index, visit)
        weights = BufferRequest(key, Memory.WEIGHT, chunk.weight_words, constant=chunk.weight_at)
    words = work_words(stage, rect, chunk)
    work = BufferRequest(("work", stage.index, number), Memory.SCRATCH, words) if words else None
    found = [_operand_request(stage, k, rect, chunk) for k in range(len(stage.operands))]
    operands, reads = [request for request, _ in found], [region for _, region in found]
    kept, copied = _kept(stage, rect, chunk), _copied(stage, rect, chunk)
    return Task(stage, number, rect, chunk, operands, tables, weights, work, reads, kept, copied)


def tile_of(region: Region, address: int) -> Tile:
    """The tile that a loaded region makes at `address`."""
    r = region.rect
    return Tile(address, r.area, r.width, r.y0, r.x0)
