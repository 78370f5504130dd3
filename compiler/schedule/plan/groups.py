"""Cuts a program's stages into groups: each group runs stage by stage or in stripes, with its tensors on chip.

Dynamic programming over the cut positions: `best[stop]` is the cheapest schedule of the first `stop` stages. The cost
of a group is its estimated time plus a price for each word that it moves between DRAM and the chip.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, inf

import numpy as np

from intloom.compiler.program.program import MemoryTiming, Program
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Access, Dataflow
from intloom.compiler.schedule.plan.stripes import Cycles, Stripes, plan_stripes, stripe_cycles
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

    @property
    def word_cycles(self) -> float:
        """Cycles in which the memory moves a word."""
        return self.word_beats / self.memory.beats_per_cycle

    def price(self, words: float) -> float:
        """The price of moving words."""
        return self.word_price * self.word_cycles * words

    def score(self, program: Program) -> float:
        """Forecast cycles and the price of all words."""
        return program.predicted_cycles + self.price(sum(layer.dram_words for layer in program.layers))


@dataclass(frozen=True, eq=False)
class Group:
    """Stages `first` to `stop`; with `stripes`, they run depth-first, else one after the other."""

    first: int
    stop: int
    cost: float
    stripes: Stripes | None = None
    resident_weights: bool = False
    """Weights are loaded once; else in every step."""


class GroupCosts:
    """Costs of groups of one program."""

    def __init__(self, flow: Dataflow, params: HardwareParams, tilings: Sequence[Tiling], goal: Goal) -> None:
        self._flow = flow
        self._goal = goal
        self._tilings = tilings
        self._params = params
        self._weights = [s.weight_words(s.chunk_sizes()[0]) for s in flow.stages]
        self.cycles = cache(self._cycles)
        every = [self.cycles(k, s.extent[0], False) for k, s in enumerate(flow.stages)]
        self._work = np.cumsum([(0, 0), *every], axis=0).T
        """Array and vector cycles of the stages before each one."""
        self._tile_part = cache(self._words_of_tiles)
        self._transient = cache(transient_words)

    def _cycles(self, index: int, rows: int, fused: bool) -> tuple[int, int]:
        """Array and vector cycles of `rows` rows of a stage; fused stages load their tables again."""
        stage = self._flow.stages[index]
        return stage.array_cycles(rows, new_table=fused), stage.vector_cycles(rows)

    def _constants(self, first: int, stop: int) -> int:
        """Words of the tables of all stages, and of the constants of the largest one."""
        stages = self._flow.stages[first:stop]
        return _table_words(stages) + max(s.constant_words(s.out.blocks) for s in stages)

    def _time(self, array: int, vector: int, moved: int) -> float:
        """Cycles of work of which array, vector unit and memory port do their parts in parallel."""
        return max(array, vector, moved * self._goal.word_cycles)

    # Groups of one stage.

    def tiled(self, index: int) -> Group:
        """A stage whose tiles come from DRAM and go there."""
        stage, tiling = self._flow.stages[index], self._tilings[index]
        stored = sum(w.words for w in self._flow.writes[index])
        moved = tiling.moved + stored
        time = self._time(*self.cycles(index, stage.extent[0], False), moved)
        cost = time + self._goal.price(moved) + tuning.LOADED_TILE_PRICE * tiling.tiles
        return Group(index, index + 1, cost)

    # Groups that run stage by stage with whole tensors on chip.

    def whole(self, first: int, stop: int) -> Group | None:
        """Stages one after the other; tensors between them stay on chip."""
        cost = 0.0
        moved = self._weights[first:stop]
        live: list[tuple[int, int, int]] = []
        streams = [0] * (stop - first)
        for inside in self._flow.inside(first, stop):
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
        if not live or self._peak(live, streams) > self._params.scratch_words - self._constants(first, stop):
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
        return Group(first, stop, cost + self._goal.price(sum(moved)))

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

    def striped(self, first: int, stop: int, rows: int, limit: float = inf) -> Group | None:
        """Stages depth-first in steps of `rows` rows of the first one; None if they do not fit.

        The cost of those that cost more than `limit` is infinite.
        """
        stages = self._flow.stages[first:stop]
        if self._loads_own_results(first, stop) or any(s.most_pixels is not None for s in stages):
            return None
        weights = sum(self._weights[first:stop])
        # Known without a plan: in MobileViT a quarter of the groups need none.
        array_work, vector_work = (self._work[:, stop] - self._work[:, first]).tolist()
        tasks = tuning.TASK_PRICE * (stop - first)
        if self._time(array_work, vector_work, weights) + tasks + self._goal.price(weights) > limit:
            return Group(first, stop, inf)
        plan = plan_stripes(self._flow, first, stop, rows)
        if (
            plan is None
            or plan.words + stripe_words(stages, plan, transient=self._transient) > self._params.scratch_words
        ):
            return None
        resident = weights <= self._params.weight_words
        if not resident and max(self._weights[first:stop]) > self._params.weight_words // 2:
            return None
        array, vector = np.zeros((2, stop - first, plan.steps), np.int64)
        tasks, moved = 0, weights if resident else 0
        for k, progress in zip(range(first, stop), plan.progress, strict=True):
            steps = np.diff(progress).tolist()
            cycles = {size: self.cycles(k, size, stop - first > 1) for size in {*steps} - {0}} | {0: (0, 0)}
            array[k - first], vector[k - first] = zip(*(cycles[size] for size in steps), strict=True)
            count = len(steps) - steps.count(0)
            tasks += count
            moved += 0 if resident else self._weights[k] * count
        moved += self._moved(plan)
        exposed = (
            self._weights[first] + self._first_loads(plan)
        ) * self._goal.word_cycles + self._goal.memory.read_latency
        cost = tuning.TASK_PRICE * tasks + self._goal.price(moved) + tuning.EXPOSED_PART * exposed
        # Both units take at least as long as each has work, which is known before their steps are simulated.
        if cost + self._time(int(array.sum()), int(vector.sum()), moved) > limit:
            return Group(first, stop, inf, plan, resident)
        cost += self._time(self._stripe_cycles(plan, array, vector), 0, moved)
        # A pace that is too slow for these stages may suit more of them.
        long = _overlaps_array(stages) or rows * stages[0].extent[1] >= tuning.MIN_STEP_PIXELS
        return Group(first, stop, cost if long else inf, plan, resident)

    def _stripe_cycles(self, plan: Stripes, array: Cycles, vector: Cycles) -> int:
        """Cycles of both units for all steps, from those of each stage in each step."""
        if _overlaps_array(self._flow.stages[plan.first : plan.stop]):
            return stripe_cycles(self._flow, plan, array, vector)
        return int(max(array.sum(), vector.sum()))

    def _loads_own_results(self, first: int, stop: int) -> bool:
        """Whether a stage has as weights a result of the group, which is complete only after the last stripe."""
        return any(
            first <= w.index < stop
            for stage in self._flow.stages[first:stop]
            for view in stage.weight_operands
            for w in self._flow.writers[view.buffer]
        )

    @staticmethod
    def _moved(plan: Stripes) -> int:
        loads = sum(n * b.buffer.plane for b in plan.buffers.values() for _, n in b.loaded)
        return loads + sum(len(b.stored) * b.buffer.plane for b in plan.buffers.values())

    @staticmethod
    def _first_loads(plan: Stripes) -> int:
        return sum(
            int(rows[0]) * buffer.columns * sum(n for _, n in plan.buffers[buffer].loaded)
            for buffer, rows in plan.arrivals.items()
        )


def _overlaps_array(stages: Sequence[Stage]) -> bool:
    """Whether the vector unit computes one of these stages for as long as the array may compute others."""
    return any(s.overlaps_array for s in stages)


def transient_words(stage: Stage, rows: int) -> int:
    """Words of a tile that are in no buffer: a result that only copies read, and temporaries."""
    chunk = stage.layout(stage.chunk_sizes()[0])[0]
    rect = Rect(0, min(rows + 2, stage.extent[0]), 0, stage.extent[1])
    return stage.temporary_words(rect, chunk) + (
        0 if stage.keep_result or stage.in_place else rect.height * stage.result_row(rect) * chunk.out_blocks
    )


def _table_words(stages: Sequence[Stage]) -> int:
    return len({t for s in stages for t in s.vector_tables}) * stages[0].params.table_words


def stripe_words(
    stages: Sequence[Stage], stripes: Stripes, tiles: int = 2, transient: Callable[[Stage, int], int] = transient_words
) -> int:
    """Scratchpad words of stages in stripes besides their buffers: tiles, and tables and constants, which stay."""
    rows = (int(np.diff(progress).max()) for progress in stripes.progress)
    largest = max(map(transient, stages, rows))
    return tiles * largest + _table_words(stages) + sum(s.constant_words(s.out.blocks) for s in stages)


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
    for first in range(count):
        limits = [cost - best[first][0] for cost, _ in best]
        for group in _groups_from(first, flow, costs, goal.stripe_heights, limits):
            cost = best[first][0] + group.cost
            if cost < best[group.stop][0]:
                best[group.stop] = (cost, group)
    groups: list[Group] = []
    while count:
        last = best[count][1]
        assert last is not None  # every stage may be a group of its own
        groups.append(last)
        count = last.first
    return groups[::-1]


def _groups_from(
    first: int, flow: Dataflow, costs: GroupCosts, stripe_heights: int, limits: Sequence[float]
) -> list[Group]:
    """The groups that begin with a stage; those that end at a stage are worth no more than its limit."""
    groups = [costs.tiled(first)]
    paces = _paces(flow.stages[first])
    for stop in range(first + 1, min(first + tuning.LONGEST_GROUP, len(flow.stages)) + 1):
        if not flow.stages[stop - 1].writes_only_result:
            break
        whole = costs.whole(first, stop) if stop > first + 1 else None
        groups += [whole] if whole else []
        # What does not fit for these stages does not fit for more of them.
        while paces and (group := costs.striped(first, stop, paces[0], limits[stop])) is None:
            paces.pop(0)
        if paces and group:
            slower = (costs.striped(first, stop, pace, limits[stop]) for pace in paces[1 : 1 + stripe_heights])
            groups += [group, *(g for g in slower if g)]
        if stop > first + 1 and whole is None and not paces:
            break
    return groups
