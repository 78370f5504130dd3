"""Cuts a program's stages into groups: each group runs stage by stage or in stripes, with its tensors on chip.

Dynamic programming over the cut positions: `best[stop]` is the cheapest schedule of the first `stop` stages. The cost
of a group is its estimated time plus a price for each word that it moves between DRAM and the chip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from intloom.compiler.program.program import MemoryTiming, Program
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Access, Dataflow
from intloom.compiler.schedule.plan.stripes import (
    RowProgress,
    StageRows,
    Stripes,
    columns_read,
    of_part,
    stripe_cycles,
)
from intloom.compiler.schedule.plan.tiling import Tiling
from intloom.compiler.schedule.stages.placement import Rect
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a search minimizes, and how widely it searches."""

    memory: MemoryTiming
    word_beats: int
    """Beats of the memory's port for a word."""
    stripe_heights: int
    """Stripe heights that are tried for each group, beside the largest."""
    word_price: float = tuning.WORD_PRICE

    @cached_property
    def word_cycles(self) -> float:
        """Cycles in which the memory moves a word."""
        return self.word_beats / self.memory.beats_per_cycle

    def price(self, words: float) -> float:
        """The price of moving words."""
        return self.word_price * self.word_cycles * words

    def score(self, program: Program) -> float:
        """Forecast cycles and the price of all words."""
        return program.predicted_cycles + self.price(sum(layer.dram_words for layer in program.layers))


class Group(NamedTuple):
    """Stages `first` to `stop`, which run one after the other or, with `rows`, depth-first in stripes."""

    first: int
    stop: int
    cost: float = 0.0
    rows: int = 0
    """Rows of the first stage in a step of stripes; 0 if the stages run one after the other."""
    parts: int = 1
    stripes: Stripes | None = None
    """Those of a group that the search has chosen."""


class GroupCosts:
    """Costs of groups of one program. They are kept, so ask for those of the group that `earliest` gives."""

    def __init__(self, flow: Dataflow, params: HardwareParams, tilings: Sequence[Tiling], goal: Goal) -> None:
        self._flow = flow
        self._goal = goal
        self._tilings = tilings
        self._params = params
        self._weights = [s.weight_words(s.chunk_sizes()[0]) for s in flow.stages]
        self._constants = [s.constant_words(s.out.blocks) for s in flow.stages]
        self._tables = [frozenset(s.vector_tables) for s in flow.stages]
        self._table_words = cache(self._words_of_tables)
        self.cycles = cache(self._cycles)
        every = [self.cycles(k, s.extent[0], False) for k, s in enumerate(flow.stages)]
        self._work = np.cumsum([(0, 0), *every], axis=0).tolist()
        """Array and vector cycles of the stages before each one."""
        self._alone = [0.0, *accumulate(map(self._minimum_alone, range(len(every)), [(0, 0), *every], every))]
        """The minimum that the stages before each one cost one after the other."""
        self._never_after = [self._last_obstacle(k) for k in range(len(flow.stages))]
        self._keys = flow.cost_keys(tuning.LONGEST_GROUP)
        self._first_with: dict[tuple[int, ...], int] = {}
        self._tile_part = cache(self._words_of_tiles)
        self._transient = cache(transient_words)
        self._on_chip = cache(self._whole)
        self._moved = cache(self._words_moved)
        self.minimum = cache(self._minimum_cost)
        self._progress = RowProgress(flow)
        # The cost without waits is asked for just before what else the same rows need.
        self._rows = lru_cache(maxsize=1)(self._progress.of)
        self._stage_work = cache(self._work_of_stage)
        self._whole_work = cache(self._sum_of_work)
        self._without_waits = cache(self._cost_without_waits)
        self._striped = cache(self._striped_cost)

    def earliest(self, first: int, stop: int) -> tuple[int, int]:
        """The first group whose costs are the same: most networks repeat their layers."""
        same = self._first_with.setdefault(self._keys[first:stop], first)
        return same, same + stop - first

    def _cycles(self, index: int, rows: int, fused: bool) -> tuple[int, int]:
        """Array and vector cycles of `rows` rows of a stage; fused stages load their tables again."""
        stage = self._flow.stages[index]
        if not rows:
            return 0, 0
        return stage.array_cycles(rows, new_table=fused), stage.vector_cycles(rows)

    def _words_of_tables(self, first: int, stop: int) -> int:
        """Words of the tables of a group."""
        return len(frozenset().union(*self._tables[first:stop])) * self._params.table_words

    def _time(self, array: int, vector: int, moved: int) -> float:
        """Cycles of work of which array, vector unit and memory port do their parts in parallel."""
        return max(array, vector, moved * self._goal.word_cycles)

    # Groups of one stage.

    def tiled(self, index: int) -> float:
        """A stage whose tiles come from DRAM and go there."""
        stage, tiling = self._flow.stages[index], self._tilings[index]
        stored = sum(w.words for w in self._flow.writes[index])
        moved = tiling.moved + stored
        time = self._time(*self.cycles(index, stage.extent[0], False), moved)
        return time + self._goal.price(moved) + tuning.LOADED_TILE_PRICE * tiling.tiles

    # Groups that run stage by stage with whole tensors on chip.

    def whole(self, first: int, stop: int, limit: float = inf) -> float | None:
        """Stages one after the other, with the tensors between them on chip; None if they do not fit.

        The cost of those that cost more than `limit` is infinite.
        """
        if self._alone[stop] - self._alone[first] + self._goal.price(sum(self._weights[first:stop])) > limit:
            return inf
        return self._on_chip(first, stop)

    def _minimum_alone(self, index: int, before: tuple[int, int], own: tuple[int, int]) -> float:
        """What a stage costs at least in `whole`, with the array and vector cycles of the one before and its own."""
        cycles = max(own)
        hidden = min(max(before), cycles) if self._flow.stages[index].overlaps_producer else 0
        return cycles - tuning.HIDDEN_PART * hidden + tuning.SLOT_PRICE

    def _whole(self, first: int, stop: int) -> float | None:
        cost = 0.0
        moved = self._weights[first:stop]
        live: list[tuple[int, int, int]] = []
        streams = [0] * (stop - first)
        for inside in self._flow.inside(first, stop).values():
            plane = inside.buffer.plane
            if inside.writes:
                # Counted at the last writer, which is near enough.
                moved[inside.writes[-1].index - first] += len(inside.stored) * plane
            if inside.reads and inside.writes:
                moved[inside.reads[0].index - first] += len(inside.loaded) * plane
                users = [a.index - first for a in inside.accesses]
                live.append((min(users), max(users), len(inside.held) * plane))
                continue
            for read in inside.reads:
                moved[read.index - first] += read.words
            for access in inside.accesses:
                streams[access.index - first] += self._tile_part(access)
        constants = self._table_words(first, stop) + max(self._constants[first:stop])
        if not live or self._peak(live, streams) > self._params.scratch_words - constants:
            return None
        spare = 0.0
        for k in range(first, stop):
            stage = self._flow.stages[k]
            array, vector = self.cycles(k, stage.extent[0], False)
            time = self._time(array, vector, moved[k - first])
            cost += time + tuning.SLOT_PRICE
            # The result of the group's last stage may have no room as long as its operand needs some.
            if k < stop - 1 and stage.overlaps_producer and self._reads_array(k):
                cost -= tuning.HIDDEN_PART * min(spare, time)
            spare = time - vector if stage.unit is Unit.MAC else 0.0
        return cost + self._goal.price(sum(moved))

    def _reads_array(self, index: int) -> bool:
        """Whether a stage reads what a convolution just before it makes."""
        writes = self._flow.writers[self._flow.reads[index][0].buffer]
        return any(w.index == index - 1 and not w.by_vector_unit for w in writes)

    @staticmethod
    def _peak(live: list[tuple[int, int, int]], streams: list[int]) -> int:
        """The most words in use at once; `live` has first and last stage and words of each buffer."""
        use = list(streams)
        for birth, death, words in live:
            for k in range(birth, death + 1):
                use[k] += words
        return max(use)

    def _words_of_tiles(self, access: Access) -> int:
        """Scratchpad words that two good tiles of a stage take for an operand or result."""
        index = access.index
        share = access.words / sum(a.words for a in self._flow.accesses(index))
        return min(access.words, ceil(2 * share * self._tilings[index].scratch))

    # Groups that run in stripes.

    def striped(self, first: int, stop: int, rows: int, limit: float = inf) -> float | None:
        """Stages depth-first in steps of `rows` rows of the first one; None if they do not fit.

        The cost of those that cost more than `limit` is infinite.
        """
        if max(self._never_after[first:stop]) >= first:
            return None
        # Known without steps.
        steps = -(-self._flow.stages[first].extent[0] // rows)
        if self.minimum(first, stop) + tuning.TASK_PRICE * (steps - 1) > limit:
            return inf
        if not self._resident(first, stop) and max(self._weights[first:stop]) > self._params.weight_words // 2:
            return None
        cost = self._without_waits(first, stop, rows)
        if cost is None or cost > limit:
            return None if cost is None else inf
        return self._striped(first, stop, rows)

    def planned(self, group: Group) -> Group:
        """The group with its stripes, if it runs in stripes."""
        if not group.rows:
            return group
        first, stop, _, rows, parts, _ = group
        stripes = self._progress.plan(first, stop, rows, parts, resident_weights=self._resident(first, stop))
        assert stripes is not None  # its cost is finite
        return group._replace(stripes=stripes)

    def _resident(self, first: int, stop: int) -> bool:
        """Whether all weights of a group fit the weight memory."""
        return sum(self._weights[first:stop]) <= self._params.weight_words

    def _last_obstacle(self, index: int) -> int:
        """The last stage with which this one cannot be in stripes; -1 if there is none.

        The tensor that a stage has as weights is complete only after the last stripe.
        """
        stage = self._flow.stages[index]
        if stage.most_pixels is not None:
            return index
        return max((w.index for v in stage.weight_operands for w in self._flow.writers[v.buffer]), default=-1)

    def _stripes_cost(self, cycles: int, tasks: int, moved: int, first_loads: int) -> float:
        """The cost of stages in stripes, which move words while the units work, but for the first loads."""
        exposed = first_loads * self._goal.word_cycles + self._goal.memory.read_latency
        cost = tuning.TASK_PRICE * tasks + self._goal.price(moved) + tuning.EXPOSED_PART * exposed
        return cost + self._time(cycles, 0, moved)

    def _minimum_cost(self, first: int, stop: int) -> float:
        """The cost in stripes of a single step in which no unit waits."""
        cycles = max(after - before for after, before in zip(self._work[stop], self._work[first], strict=True))
        moved = sum(self._weights[first:stop]) + self._moved(first, stop)
        return self._stripes_cost(cycles, stop - first, moved, self._weights[first])

    def _words_moved(self, first: int, stop: int) -> int:
        """Words of tensors that move between DRAM and the chip."""
        return sum(inside.moved for inside in self._flow.inside(first, stop).values())

    def _busiest(self, first: int, progress: Sequence[StageRows]) -> int:
        """Cycles in stripes of the unit that has more to do, if it never waits."""
        fused = len(progress) > 1
        work = [self._whole_work(k, done, fused) for k, done in enumerate(progress, first)]
        return max(sum(array for array, _ in work), sum(vector for _, vector in work))

    def _cycles_with_waits(self, first: int, progress: Sequence[StageRows]) -> int:
        """Cycles in stripes in which each unit waits for the other one's rows."""
        steps, fused = max(done.steps for done in progress), len(progress) > 1
        each = [self._stage_work(k, done, fused) for k, done in enumerate(progress, first)]
        work = [own + [(0, 0)] * (steps - len(own)) for own in each]
        return stripe_cycles(self._flow, first, first + len(progress), work)

    def _words_in_steps(self, first: int, progress: Sequence[StageRows]) -> int:
        """Words that move; weights move in each step, unless all of them stay."""
        stop = first + len(progress)
        weights = self._weights[first:stop]
        if not self._resident(first, stop):
            weights = [words * done.tasks for words, done in zip(weights, progress, strict=True)]
        return self._moved(first, stop) + sum(weights)

    def _work_of_stage(self, index: int, done: StageRows, fused: bool) -> list[tuple[int, int]]:
        """Array and vector cycles in each step until its last row."""
        cycles = {size: self.cycles(index, size, fused) for size in set(done.each)}
        return [cycles[size] for size in done.each]

    def _sum_of_work(self, index: int, done: StageRows, fused: bool) -> tuple[int, int]:
        """Array and vector cycles in all steps."""
        work = self._stage_work(index, done, fused)
        return sum(array for array, _ in work), sum(vector for _, vector in work)

    def _cost_without_waits(self, first: int, stop: int, rows: int) -> float | None:
        """The cost if no unit waits for the other one and all buffers fit; None if some rows are never complete."""
        progress = self._rows(first, stop, rows)
        if progress is None:
            return None
        tasks, moved = sum(done.tasks for done in progress), self._words_in_steps(first, progress)
        return self._stripes_cost(self._busiest(first, progress), tasks, moved, self._weights[first])

    def _striped_cost(self, first: int, stop: int, rows: int) -> float | None:
        stages, progress = self._flow.stages[first:stop], self._rows(first, stop, rows)
        assert progress is not None  # its cost without waits is known
        rings = self._progress.rings(first, stop, progress)
        if sum(ring.words for ring in rings) + self._other_words(first, progress) > self._params.scratch_words:
            return None
        overlaps = any(s.overlaps_array for s in stages)
        # A pace that is too slow for these stages may suit more of them.
        if not overlaps and rows * stages[0].extent[1] < tuning.MIN_STEP_PIXELS:
            return inf
        cycles = self._cycles_with_waits(first, progress) if overlaps else self._busiest(first, progress)
        tasks, moved = sum(done.tasks for done in progress), self._words_in_steps(first, progress)
        loads = self._weights[first] + sum(ring.first_load * ring.buffer.columns for ring in rings)
        return self._stripes_cost(cycles, tasks, moved, loads)

    def _other_words(self, first: int, progress: Sequence[StageRows]) -> int:
        """Scratchpad words of stages in stripes besides their rings, as `stripe_words`."""
        stop = first + len(progress)
        transient = max(map(self._transient, self._flow.stages[first:stop], [done.largest for done in progress]))
        return 2 * transient + self._table_words(first, stop) + sum(self._constants[first:stop])

    def in_parts(self, first: int, limit: float) -> Group | None:
        """A depthwise convolution and the one that reads it, in the fewest parts that fit, at the slowest pace."""
        paces = _paces(self._flow.stages[first])
        if not paces or not self._may_be_in_parts(first) or self.minimum(first, first + 2) > limit:
            return None
        rows = paces[-1]
        progress = self._rows(first, first + 2, rows)
        if progress is None:
            return None
        rings = self._progress.rings(first, first + 2, progress)
        # A part has as many pixels in a step as stripes of whole rows.
        for parts in range(2, rows * self._flow.stages[first].extent[1] // tuning.MIN_STEP_PIXELS + 1):
            local = [of_part(ring, parts) for ring in rings]
            words = sum(b.words for b in local) + self._other_words(first, progress)
            if words <= self._params.scratch_words:
                cycles, tasks = self._cycles_with_waits(first, progress), sum(done.tasks for done in progress)
                moved = self._words_in_steps(first, progress) + sum(
                    (parts * b.part - b.buffer.columns) * b.buffer.height * sum(n for _, n in b.loaded) for b in local
                )
                loads = sum(b.first_load * b.part for b in local)
                cost = self._stripes_cost(cycles, parts * tasks, moved, loads)
                return Group(first, first + 2, cost, rows, parts)
        return None

    def _may_be_in_parts(self, first: int) -> bool:
        """Whether no column of the tensor between two stages is needed twice, and all weights stay.

        Each buffer has one reader, whose columns are held.
        """
        one, other = self._flow.stages[first : first + 2]
        columns = (0, other.extent[1] // 2)
        buffers = [v.buffer for v in (*one.operands, *other.operands, other.out)]
        return (
            one.overlaps_producer
            and other.unit is Unit.MAC
            and max(self._never_after[first : first + 2]) < first
            and other.row_step == (1, 1)
            and not (one.copies or other.copies)
            and other.operands[0].buffer is one.out.buffer
            and len(set(buffers)) == len(buffers)
            and all(columns_read(other, k, columns) == columns for k in range(len(other.operands)))
            and self._resident(first, first + 2)
        )


def transient_words(stage: Stage, rows: int) -> int:
    """Words of a tile that are in no buffer: a result that only copies read, and temporaries."""
    chunk = stage.layout(stage.chunk_sizes()[0])[0]
    rect = Rect(0, min(rows + 2, stage.extent[0]), 0, stage.extent[1])
    return stage.temporary_words(rect, chunk) + (
        0 if stage.keep_result or stage.in_place else rect.height * stage.result_row(rect) * chunk.out_blocks
    )


def stripe_words(stages: Sequence[Stage], stripes: Stripes) -> tuple[int, int]:
    """Scratchpad words of stages in stripes besides their buffers: of a tile, and of their tables and constants."""
    tables = len({t for s in stages for t in s.vector_tables}) * stages[0].params.table_words
    constants = sum(s.constant_words(s.out.blocks) for s in stages)
    return max(map(transient_words, stages, [done.largest for done in stripes.progress])), tables + constants


def _paces(stage: Stage) -> list[int]:
    """Rows per step to try, most first."""
    height, width = stage.extent
    unit = stage.row_step[0]
    sizes = [unit << k for k in range(12) if unit << k < height and (unit << k) * width >= tuning.MIN_PARALLEL_PIXELS]
    return sizes[::-1]


def find_groups(flow: Dataflow, params: HardwareParams, tilings: Sequence[Tiling], goal: Goal) -> list[Group]:
    """The cheapest cut of all stages into groups, in order."""
    costs, count = GroupCosts(flow, params, tilings, goal), len(flow.stages)
    best: list[tuple[float, Group | None]] = [(0.0, None)]
    best += [(inf, None)] * count
    starts: dict[int, list[int]] = {}
    for stop in range(1, count + 1):
        last = flow.stages[stop - 1]
        starts.pop(stop - 1 - tuning.LONGEST_GROUP, None)
        starts = {**starts, stop - 1: _paces(last)} if last.writes_only_result else {}
        for group in _groups_to(stop, starts, costs, goal.stripe_heights, best):
            cost, other = best[stop]
            # Of equal groups the longest: the order in which they come says nothing.
            if (best[group.first][0] + group.cost, group.first) < (cost, inf if other is None else other.first):
                best[stop] = best[group.first][0] + group.cost, group
    groups: list[Group] = []
    while count:
        chosen = best[count][1]
        assert chosen is not None  # every stage may be a group of its own
        groups.append(costs.planned(chosen))
        count = chosen.first
    return groups[::-1]


def _groups_to(
    stop: int,
    starts: dict[int, list[int]],
    costs: GroupCosts,
    stripe_heights: int,
    best: Sequence[tuple[float, Group | None]],
) -> Iterator[Group]:
    """The groups that end before stage `stop`, but for those that cost more than the best one so far.

    `starts` has the first stages of groups that may be longer, each with the paces that may fit.
    """
    yield Group(stop - 1, stop, costs.tiled(stop - 1))
    same = {first: costs.earliest(first, stop) for first in starts}
    # The most promising ones first: the others need not be planned if they cannot be cheaper.
    for first in sorted(starts, key=lambda first: best[first][0] + costs.minimum(*same[first])):
        paces, before = starts[first], best[first][0]
        whole = costs.whole(*same[first], best[stop][0] - before) if first < stop - 1 else inf
        if whole is not None:
            yield Group(first, stop, whole)
        # What does not fit for these stages does not fit for more of them.
        while paces and (cost := costs.striped(*same[first], paces[0], best[stop][0] - before)) is None:
            paces.pop(0)
        if paces and cost is not None:
            yield Group(first, stop, cost, paces[0])
            for pace in paces[1 : 1 + stripe_heights]:
                slower = costs.striped(*same[first], pace, best[stop][0] - before)
                if slower is not None:
                    yield Group(first, stop, slower, pace)
        elif stop == first + 2 and (group := costs.in_parts(same[first][0], best[stop][0] - before)) is not None:
            yield group._replace(first=first, stop=stop)
        if not paces and whole is None:
            del starts[first]
