"""Tensors that stay in the scratchpad between stages: whole, or the rows that are still needed in a ring buffer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Access, Dataflow, Inside, LocalBuffer, Read
from intloom.compiler.schedule.plan.groups import Group, stripe_words, transient_words
from intloom.compiler.schedule.plan.packing import Packing, Span
from intloom.compiler.schedule.plan.stripes import Stripes
from intloom.compiler.schedule.plan.tiling import Tiling, choose_tiling, in_bands
from intloom.compiler.schedule.stages.placement import Buffer
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, eq=False)
class Slot:
    """A time slot: one stage, or several in stripes, and the buffers that are in the scratchpad meanwhile."""

    index: int
    first: int
    """Position of its first stage."""
    stages: Sequence[Stage]
    stripes: Stripes | None = None
    local: Mapping[Buffer, LocalBuffer] = field(default_factory=dict)
    tiling: Tiling | None = None
    low: int = 0
    """First scratchpad word that no buffer of the slot uses."""


class Residency:
    """Chooses the local buffers of all slots and their addresses; `best` has each stage's tiling without any."""

    def __init__(self, flow: Dataflow, groups: Sequence[Group], best: Sequence[Tiling], params: HardwareParams) -> None:
        self._flow = flow
        self._best = best
        self._params = params
        self._slots = _slots(flow, groups)
        self._slot_of = [s.index for s in self._slots for _ in s.stages]
        """The slot of each stage."""
        self._local: list[dict[Buffer, LocalBuffer]] = [{} for _ in self._slots]
        """The buffers of each slot."""
        self._tilings: list[Tiling | None] = [None] * len(self._slots)
        self._lows = [0] * len(self._slots)
        self._use = [0] * len(self._slots)
        self._striped = {s.index: stripe_words(s.stages, s.stripes) for s in self._slots if s.stripes is not None}
        """Words of a tile, and of tables and constants, of each slot in stripes."""
        self._transient = cache(transient_words)
        self._choose = cache(self._choose_tiling)
        self._packing = Packing[LocalBuffer]()
        for group in groups:
            for item in self._inside(group):
                self._add(item)

    def _add(self, item: LocalBuffer) -> None:
        self._packing.add(item, Span(item.slots.start, item.slots.stop, item.words))
        self._count(item, 1)
        for k in item.slots:
            self._local[k][item.buffer] = item

    def _remove(self, item: LocalBuffer) -> None:
        self._packing.remove(item)
        self._count(item, -1)
        for k in item.slots:
            del self._local[k][item.buffer]

    def _count(self, item: LocalBuffer, sign: int) -> None:
        for k in item.slots:
            self._use[k] += sign * item.words

    def _inside(self, group: Group) -> list[LocalBuffer]:
        """The rings of a group in stripes; else tensors between its stages, which run one after the other."""
        if group.stripes is not None:
            slot = self._slot_of[group.first]
            return [replace(ring, slots=range(slot, slot + 1)) for ring in group.stripes.rings.values()]
        if group.stop - group.first == 1:
            return []
        every = self._flow.inside(group.first, group.stop).values()
        return [self._whole(inside) for inside in every if inside.reads and inside.writes]

    def _whole(self, inside: Inside) -> LocalBuffer:
        """All rows of a buffer, from the first slot that uses it to the last."""
        users = [self._slot_of[a.index] for a in inside.accesses]
        slots = range(min(users), max(users) + 1)
        return LocalBuffer(inside, inside.buffer.height, inside.row, slots=slots, optional=True)

    # Buffers between groups.

    def keep_between_groups(self) -> None:
        """Keep what saves most traffic for its space and time."""
        offers = [item for buffer in self._flow.readers if (item := self._offer(buffer)) is not None]
        for item in sorted(offers, key=lambda i: (-i.density, i.slots.start, i.buffer.name)):
            self._try(item)

    def _offer(self, buffer: Buffer) -> LocalBuffer | None:
        """The buffer whole from its first writer to its last reader, if that is more than one group does."""
        inside = self._flow.whole(buffer)
        # The host writes a graph's inputs into DRAM.
        if inside.loaded or not inside.written or not all(w.stage.writes_only_result for w in inside.writes):
            return None
        offer = self._whole(inside)
        present = self._local[offer.slots.start].get(buffer)
        enough = present is not None and not present.inside.stored and not present.inside.loaded
        return None if len(offer.slots) == 1 or enough else offer

    def _try(self, item: LocalBuffer) -> None:
        buffer = item.buffer
        replaced = {self._local[k][buffer] for k in item.slots if buffer in self._local[k]}
        for old in replaced:
            self._count(old, -1)
        fits = all(self._leaves_room(k, item) for k in item.slots)
        for old in replaced:
            self._count(old, 1)
        if fits:
            for old in replaced:
                self._remove(old)
            self._add(item)

    def start_vector_results_early(self) -> None:
        """Let results of the vector unit begin with the stages before, so that its tiles can run beside theirs."""
        for item in list(self._packing):
            slot = self._slots[item.slots.start]
            if slot.stripes is not None or slot.stages[0].unit is not Unit.VEC:
                continue
            sources = [w.index for r in self._flow.reads[slot.first] for w in self._flow.writers[r.buffer]]
            first = max((self._slot_of[k] for k in sources if k < slot.first), default=slot.index)
            before = self._slots[first : slot.index]
            # Stages of these slots use the buffer in DRAM.
            if any(self._uses(s, item.buffer) for s in before):
                continue
            if all(s.stripes is None and self._leaves_room(s.index, item) for s in before):
                self._remove(item)
                self._add(replace(item, slots=range(first, item.slots.stop)))

    def _uses(self, slot: Slot, buffer: Buffer) -> bool:
        accesses = (a for k in range(slot.first, slot.first + len(slot.stages)) for a in self._flow.accesses(k))
        return buffer in self._local[slot.index] or any(a.buffer is buffer for a in accesses)

    def _leaves_room(self, index: int, local: LocalBuffer) -> bool:
        free = self._params.scratch_words - self._use[index] - local.words
        return free >= self._needed(self._slots[index], {local.buffer, *self._local[index]})

    def _needed(self, slot: Slot, local: set[Buffer]) -> int:
        """Words that a slot's tiles should have beside the buffers."""
        if slot.stripes is not None:
            tile, constants = self._striped[slot.index]
            return 2 * tile + constants
        stage = slot.stages[0]
        if all(a.buffer in local for a in self._flow.accesses(slot.first)):
            return 2 * self._transient(stage, stage.extent[0] // 2)
        # What comes from DRAM or goes there needs two tiles; half of what the best tiling takes costs little.
        return min(self._best[slot.first].scratch, self._params.scratch_words // 2)

    # Addresses.

    def allocate(self) -> tuple[Slot, ...]:
        """Give every local buffer an address and every slot a tiling; what does not fit goes through DRAM instead."""
        while True:
            addresses, words = self._packing.tightest_fit(self._params.scratch_words)
            late = self._without_room(addresses, words)
            if late is None:
                final = {item: replace(item, address=address) for item, address in addresses.items()}
                decided = zip(self._slots, self._local, self._tilings, self._lows, strict=True)
                return tuple(
                    replace(slot, local={b: final[x] for b, x in local.items()}, tiling=tiling, low=low)
                    for slot, local, tiling, low in decided
                )
            self._drop(late)

    def _without_room(self, addresses: Mapping[LocalBuffer, int], words: int) -> Slot | None:
        """A slot whose buffers or tiles do not fit."""
        if words > self._params.scratch_words:
            item = next(i for i in self._packing if addresses[i] + i.words == words)
            # The slot of the item in which most is in use.
            return self._slots[max(item.slots, key=lambda k: self._use[k])]
        self._lows = [max((addresses[i] + i.words for i in local.values()), default=0) for local in self._local]
        return next((s for s in self._slots if not self._settle(s) or self._is_crowded(s)), None)

    def _optional(self, slot: Slot) -> list[LocalBuffer]:
        """The buffers that a slot can do without."""
        return [i for i in self._local[slot.index].values() if i.optional]

    def _is_crowded(self, slot: Slot) -> bool:
        """Whether the tiles that fit above a slot's buffers cost more than a buffer saves.

        Buffers may leave gaps below the highest one, where no tile lies.
        """
        tiling = self._tilings[slot.index]
        if tiling is None:
            return False
        saved = min((i.inside.saved for i in self._optional(slot)), default=None)
        lost = tiling.cost - self._best[slot.first].cost
        return saved is not None and lost > tuning.SAVED_WORD_PRICE * saved

    def _drop(self, slot: Slot) -> None:
        """Let the buffer that saves least in a slot go through DRAM."""
        victim = min(self._optional(slot), key=lambda i: (i.density, i.slots.start, i.buffer.name))
        self._remove(victim)
        for k in victim.slots:
            stripes = self._slots[k].stripes
            ring = None if stripes is None else stripes.rings.get(victim.buffer)
            if ring is not None:
                # A group in stripes that had a ring of its own uses it again; others load tiles or do not use it.
                self._add(replace(ring, slots=range(k, k + 1)))

    def _settle(self, slot: Slot) -> bool:
        free = self._params.scratch_words - self._lows[slot.index]
        if slot.stripes is not None:
            return sum(self._striped[slot.index]) <= free
        local = frozenset(a.buffer for a in self._flow.accesses(slot.first) if a.buffer in self._local[slot.index])
        tiling = self._choose(slot.first, free, local, self._max_blocks(slot), self._has_parallel_neighbor(slot))
        self._tilings[slot.index] = tiling
        return tiling is not None

    def _choose_tiling(
        self, index: int, free: int, local: frozenset[Buffer], max_blocks: int | None, parallel: bool
    ) -> Tiling | None:
        """The tiling of a stage in the free words, with those of its buffers that are in the scratchpad."""
        stage = self._flow.stages[index]
        tiling = choose_tiling(stage, free, local, max_blocks)
        return in_bands(stage, tiling, free, local) if tiling is not None and parallel else tiling

    def _max_blocks(self, slot: Slot) -> int | None:
        """The blocks of a chunk with which a vector stage runs in parallel with the convolution before it.

        That is the convolution's own chunk, which is a part of its result before a depthwise convolution.
        """
        stage, flow = slot.stages[0], self._flow
        if stage.unit is Unit.MAC:
            parallel = any(self._is_whole(r, slot) for r in flow.readers[stage.out.buffer])
            return -(-stage.out.blocks // tuning.PARALLEL_CHUNKS) if parallel else None
        source = stage.operands[0].buffer
        if not stage.follows_chunks or len(flow.writers[source]) != 1 or source not in self._local[slot.index]:
            return None
        before = self._tilings[self._slot_of[flow.writers[source][0].index]]
        return before.chunk if before is not None else None

    def _is_whole(self, read: Read, slot: Slot) -> bool:
        """Whether a depthwise convolution on the vector unit reads what a slot makes as a whole in the scratchpad."""
        return read.stage.overlaps_producer and self._is_local(read, slot)

    def _is_local(self, access: Access, slot: Slot) -> bool:
        """Whether a buffer is whole in the scratchpad in a slot and for another access of it outside stripes."""
        other = self._slots[self._slot_of[access.index]]
        local = access.buffer in self._local[slot.index] and access.buffer in self._local[other.index]
        return local and slot.stripes is None and other.stripes is None

    def _has_parallel_neighbor(self, slot: Slot) -> bool:
        """Whether a Softmax or normalization and a convolution, one of them the slot's stage, take turns otherwise."""
        stage, flow = slot.stages[0], self._flow
        source = stage.operands[0].buffer
        if stage.unit is Unit.MAC and source not in self._local[slot.index]:
            return False
        near = (*flow.writers[source], *flow.readers[stage.out.buffer])
        return any(stage.takes_turns(a.stage) and self._is_local(a, slot) for a in near)


def _slots(flow: Dataflow, groups: Sequence[Group]) -> list[Slot]:
    """A slot for each group in stripes, and for each stage of the others."""
    slots: list[Slot] = []
    for group in groups:
        stages = flow.stages[group.first : group.stop]
        if group.stripes is not None:
            slots.append(Slot(len(slots), group.first, stages, group.stripes))
        else:
            slots += [Slot(len(slots) + k, group.first + k, (stage,)) for k, stage in enumerate(stages)]
    return slots


def choose_slots(
    flow: Dataflow, groups: Sequence[Group], tilings: Sequence[Tiling], params: HardwareParams, *, keep: bool
) -> tuple[Slot, ...]:
    """The slots of these groups; with `keep`, tensors between groups may stay in the scratchpad too."""
    residency = Residency(flow, groups, tilings, params)
    if keep:
        residency.keep_between_groups()
        residency.start_vector_results_early()
    return residency.allocate()
