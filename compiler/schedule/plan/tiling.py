"""Chooses how a stage is cut: rows and columns of a tile, output blocks of a chunk, and which loop is outside.

Among all cuts that fit the memories, the one with the lowest estimated cost wins. The estimate counts the cycles of the
array, or of the copies beside it where they take longer, a share of the words moved, a price for each instruction and
the words that no earlier work can hide (the first tile's input, the last one's output).
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from intloom.common.errors import CapacityError
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.stages.placement import Buffer, Rect
from intloom.compiler.schedule.stages.stage import Chunk, Stage
from intloom.compiler.schedule.stages.stage_list import Stages
from intloom.hw.spec.params import HardwareParams

LARGEST_KIB = 1024
"""No memory of legal hardware is larger."""


@dataclass(frozen=True)
class Tiling:
    """A stage's cut; `chunks_outside` runs all tiles of one chunk before the next chunk."""

    tile_h: int
    tile_w: int
    chunk: int
    chunks_outside: bool
    cost: float
    scratch: int
    """Scratch words that one tile takes."""
    moved: int
    """Words that are loaded in all."""
    tiles: int
    """Number of tiles."""


def tile_rects(stage: Stage, tile_h: int, tile_w: int) -> list[Rect]:
    """The result cut into tiles, in raster order."""
    height, width = stage.extent
    return [
        Rect(y, min(y + tile_h, height), x, min(x + tile_w, width))
        for y in range(0, height, tile_h)
        for x in range(0, width, tile_w)
    ]


def operand_words(stage: Stage, operand: int, rect: Rect, chunk: Chunk, local: Container[Buffer] = ()) -> int:
    """Scratch words of an operand of a tile."""
    if stage.operands[operand].buffer in local:
        return 0
    blocks = stage.operand_blocks(operand, chunk)[1]
    part = stage.operand_rect(operand, rect)
    runs, row = loaded_rows(stage, operand, part)
    return part.height * runs * row * blocks + 2 * stage.operand_guard(operand)


def loaded_rows(stage: Stage, operand: int, part: Rect) -> tuple[int, int]:
    """Rows in local memory for each row of a loaded rectangle, and words from one to the next."""
    runs, pitch = stage.operand_runs(operand, part)
    return runs, stage.operand_row(operand, part) - (runs - 1) * pitch


def work_words(stage: Stage, rect: Rect, chunk: Chunk, local: Container[Buffer] = ()) -> int:
    """Scratch words of a tile's result, copies and temporaries."""
    elsewhere = stage.in_place or (chunk.last and _stays(stage, local))
    words = 0 if elsewhere else rect.height * stage.result_row(rect) * chunk.out_blocks
    made = stage.result_channels(chunk)
    for copy in stage.copies:
        if copy.target.buffer not in local:
            words += copy.target_rect(rect).area * copy.target_blocks(made)[1]
    return words + stage.temporary_words(rect, chunk)


def _stays(stage: Stage, local: Container[Buffer]) -> bool:
    return stage.keep_result and stage.out.buffer in local


def constant_words(stage: Stage, blocks: int) -> int:
    """Scratch words of the vector tables, which stay for the whole stage, and of the constants of a chunk's blocks."""
    return len(set(stage.vector_tables)) * stage.params.table_words + stage.constant_words(blocks)


def _cuts(size: int, step: int) -> list[int]:
    """Tile sizes that cut `size` evenly into 1, 2, 3… pieces, as multiples of `step`."""
    pieces = range(1, size // step + 2)
    counts = {min(size, ceil(size / (n * step)) * step) for n in pieces}
    sizes = sorted(counts, reverse=True)
    if len(sizes) <= tuning.MAX_TILE_SIZES:
        return sizes
    keep = {round(k * (len(sizes) - 1) / (tuning.MAX_TILE_SIZES - 1)) for k in range(tuning.MAX_TILE_SIZES)}
    return [sizes[k] for k in sorted(keep)]


def _samples(stage: Stage, tile_h: int, tile_w: int) -> list[Rect]:
    """Tiles at the top left and in the middle, where most input is needed."""
    height, width = stage.extent
    rects = []
    for share in (0, 2):
        y = (height // tile_h // 2 if share else 0) * tile_h
        x = (width // tile_w // 2 if share else 0) * tile_w
        rects.append(Rect(min(y, height - 1), min(y + tile_h, height), min(x, width - 1), min(x + tile_w, width)))
    return [r for r in rects if r.height > 0 and r.width > 0]


def _busy(stage: Stage, tile: tuple[int, int], chunks: list[Chunk]) -> int:
    """Cycles that a tile of all chunks takes, of the array, or of copies or a depthwise convolution beside it."""
    rect = Rect(0, tile[0], 0, tile[1])
    own = {count: stage.tile_cycles(rect, count) for count in {c.out_blocks for c in chunks}}
    return sum(max(own[c.out_blocks], stage.copy_cycles(rect, c)) for c in chunks)


def _loads(stage: Stage, chunks: list[Chunk], bands: int, *, outside: bool) -> tuple[int, int]:
    """How often the input of each tile is loaded, and how often all weights, with this number of tiles in a chunk."""
    # With groups, each chunk reads blocks of its own, so more chunks do not repeat the input.
    shared = len(chunks) == 1 or chunks[0].in_blocks < stage.operands[0].blocks
    repeated = (outside and bands > 1) or (shared and len(chunks) > 1)
    return len(chunks) if repeated else 1, 1 if outside or len(chunks) == 1 else bands


def _candidates(stage: Stage, words: int, local: Container[Buffer], sizes: list[int], width: int) -> Iterator[Tiling]:
    for size in sizes:
        layout = stage.layout(size)
        weights = stage.weight_words(size) * len(layout)
        for tile_h in _cuts(stage.extent[0], stage.row_step[0]):
            tile = (tile_h, width)
            if stage.most_pixels is not None and tile_h * width > stage.most_pixels:
                continue
            samples = _samples(stage, *tile)
            inputs = max(
                sum(operand_words(stage, k, r, layout[0], local) for k in range(len(stage.operands))) for r in samples
            )
            work = max(work_words(stage, r, layout[0], local) for r in samples)
            constants = constant_words(stage, size)
            need = inputs + work + constants
            if need > words:
                continue
            # Without room for two tiles, moving and computing take turns.
            penalty = (
                0
                if 2 * (inputs + work) + constants <= words * tuning.TILE_ROOM
                else 2 * inputs * stage.extent[0] / tile_h
            )
            bands = -(-stage.extent[0] // tile_h) * -(-stage.extent[1] // width)
            array, tiles = bands * _busy(stage, tile, layout), bands * len(layout)
            exposed = inputs + work + weights / len(layout)
            for outside in (False, True) if len(layout) > 1 and stage.most_pixels is None else (False,):
                times = _loads(stage, layout, bands, outside=outside)
                moved = inputs * bands * times[0] + weights * times[1]
                cost = array + tuning.MOVED_WORD_PRICE * moved + tuning.LOADED_TILE_PRICE * tiles
                cost += tuning.EXPOSED_WORD_PRICE * exposed
                yield Tiling(tile_h, width, size, outside, cost + penalty, need, moved, tiles)


def _fitting_sizes(stage: Stage) -> list[int]:
    """Chunk sizes whose weights fit, best with room for the next chunk beside them."""
    sizes, room = list(stage.chunk_sizes()), stage.params.weight_words
    fitting = [s for s in sizes if stage.weight_words(s) <= room // 2]
    # The first size is the whole stage: no second chunk needs space beside it.
    if sizes[0] not in fitting and stage.weight_words(sizes[0]) <= room * 3 // 4:
        fitting.insert(0, sizes[0])
    if not fitting:
        fitting = [s for s in sizes if stage.weight_words(s) <= room][:1]
    # The smallest ones as well, whose first tile loads least.
    return fitting[: tuning.MAX_CHUNK_SIZES] + fitting[tuning.MAX_CHUNK_SIZES :][-2:]


def _advice(name: str, kib: int) -> str:
    """What to do about a memory that is too small."""
    if kib > LARGEST_KIB:
        return f"no {name} up to {LARGEST_KIB} would do: split the node or run it on the host"
    return f"use {name} = {kib}"


def require_weight_memory(stages: Sequence[Stage], p: HardwareParams) -> None:
    """Refuse stages of which one output block's weights do not fit; the advice holds for all of them."""
    needs = [stage.weight_words(stage.chunk_sizes()[-1]) for stage in stages]
    words = max(needs, default=0)
    if words <= p.weight_words:
        return
    stage = stages[needs.index(words)]
    kib = 1 << (-(-words * p.word_bytes // 1024) - 1).bit_length()
    raise CapacityError(
        f"node {stage.name!r} needs {words} words of weight memory for one output block, but weight_kib = "
        f"{p.weight_kib} holds {p.weight_words}: {_advice('weight_kib', kib)}"
    )


def _least_scratch_kib(stage: Stage) -> int:
    """The smallest scratchpad that a stage fits, or more than any hardware has."""
    p = stage.params
    kib = p.scratch_kib
    while kib <= LARGEST_KIB and choose_tiling(stage, kib * 1024 // p.word_bytes) is None:
        kib *= 2
    return kib


def too_large(stages: Sequence[Stage]) -> CapacityError:
    """The error for stages whose smallest tile does not fit the scratchpad; its advice holds for all."""
    needs = [_least_scratch_kib(stage) for stage in stages]
    stage = stages[needs.index(max(needs))]
    return CapacityError(
        f"node {stage.name!r} does not fit scratch_kib = {stage.params.scratch_kib} even in its smallest tile: "
        f"{_advice('scratch_kib', max(needs))}"
    )


def choose_tilings(stages: Stages) -> list[Tiling]:
    """The cheapest cut of every stage that has both memories for itself.

    Raises
    ------
    CapacityError
        Not every stage fits; the message names sizes that do.
    """
    # Checked first, and for all stages: `choose_tiling` could not tell which of the two memories is too small.
    require_weight_memory(stages.stages, stages.params)
    chosen: dict[object, Tiling | None] = {}
    for stage in stages.stages:
        if stage.cost_key not in chosen:
            chosen[stage.cost_key] = choose_tiling(stage, stages.params.scratch_words)
    tilings = [(stage, chosen[stage.cost_key]) for stage in stages.stages]
    # All stages are cut before the error, so that its advice holds for the whole graph.
    if misfits := [stage for stage, tiling in tilings if tiling is None]:
        raise too_large(misfits)
    return [tiling for _, tiling in tilings if tiling is not None]


def tile_words(stage: Stage, rect: Rect, chunk: Chunk, local: Container[Buffer] = ()) -> int:
    """Scratch words that a task takes."""
    operands = sum(operand_words(stage, k, rect, chunk, local) for k in range(len(stage.operands)))
    return operands + work_words(stage, rect, chunk, local) + constant_words(stage, chunk.out_blocks)


def _fits(stage: Stage, tiling: Tiling, words: int, local: Container[Buffer]) -> bool:
    """Whether every single tile fits: samples may miss an odd one, which matters only where memory is tight."""
    chunks = stage.layout(tiling.chunk)
    # The samples are of the first chunk, which may make no copy where another one does.
    if 2 * tiling.scratch <= words and not (stage.copies and len(chunks) > 1):
        return True
    rects = tile_rects(stage, tiling.tile_h, tiling.tile_w)
    return all(tile_words(stage, r, c, local) <= words for r in rects for c in chunks)


def choose_tiling(
    stage: Stage, words: int, local: Container[Buffer] = (), max_blocks: int | None = None
) -> Tiling | None:
    """The cheapest cut that fits so many scratchpad words, or None if even the smallest does not.

    Tiles use the `local` buffers where they are; a chunk has at most `max_blocks` blocks.
    """
    sizes = _fitting_sizes(stage)
    if max_blocks is not None:
        sizes = [s for s in sizes if s <= max_blocks] or [s for s in stage.chunk_sizes() if s <= max_blocks][:1]
        sizes = sizes or [stage.chunk_sizes()[-1]]
    # Full width first: narrower tiles read the columns at their edges more than once, so they are used only where
    # nothing else fits.
    for width in _cuts(stage.extent[1], stage.row_step[1]):
        for tiling in sorted(_candidates(stage, words, local, sizes, width), key=lambda t: t.cost):
            if _fits(stage, tiling, words, local):
                return tiling
    return None


def in_bands(stage: Stage, tiling: Tiling, words: int, local: Container[Buffer]) -> Tiling:
    """A tiling whose operand is in the scratchpad, with at least `tuning.PARALLEL_BANDS` tiles of each chunk.

    They are bands of rows, or of columns where there are too few rows. Chunks are the largest of which two tiles fit.
    """
    (height, width), (unit_h, unit_w) = stage.extent, stage.row_step
    bands = min(tuning.PARALLEL_BANDS, height * width // (tuning.MIN_STEP_PIXELS * unit_h * unit_w))
    if stage.most_pixels is not None or bands < 2:
        return tiling
    if height >= bands * unit_h:
        tile = min(tiling.tile_h, ceil(height / (bands * unit_h)) * unit_h), tiling.tile_w
    else:
        tile = tiling.tile_h, min(tiling.tile_w, ceil(width / (bands * unit_w)) * unit_w)
    rects = tile_rects(stage, *tile)
    for chunk in (*_fitting_sizes(stage), tiling.chunk):
        layout = stage.layout(chunk)
        need = max(tile_words(stage, r, c, local) for r in rects for c in layout)
        if 2 * need <= words or chunk == tiling.chunk:
            break
    return replace(
        tiling,
        tile_h=tile[0],
        tile_w=tile[1],
        chunk=chunk,
        chunks_outside=len(layout) > 1,
        scratch=need,
        tiles=len(rects) * len(layout),
    )
