"""Tensors that stay in the scratchpad between stages: whole, or the rows that are still needed in a ring buffer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Access, Dataflow, LocalBuffer, Read
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
    resident_weights: bool = False
    local: Mapping[Buffer, LocalBuffer] = field(default_factory=dict)
    tiling: Tiling | None = None
    low: int = 0
    """First scratchpad word that no buffer of the slot uses."""


@dataclass(eq=False)
class _Item:
    """A local buffer from slot `birth` to `death`, both included."""

    local: LocalBuffer
    birth: int
    death: int
    saved: int = -1
    """Words of traffic that it saves; -1: the slot cannot do without it."""

    @property
    def slots(self) -> range:
        """The slots in which it lives."""
        return range(self.birth, self.death + 1)

    @property
    def density(self) -> float:
        """Saved words for each word and slot."""
        return self.saved / (self.local.words * (self.death + 1 - self.birth))


class Residency:
    """Chooses the local buffers of all slots and their addresses; `best` has each stage's tiling without any."""

    def __init__(self, flow: Dataflow, groups: Sequence[Group], best: Sequence[Tiling], params: HardwareParams) -> None:
        self._flow = flow
        self._best = best
        self._params = params
        self._slots = _slots(flow, groups)
        self._slot_of = [s.index for s in self._slots for _ in s.stages]
        """The slot of each stage."""
        self._local: list[dict[Buffer, _Item]] = [{} for _ in self._slots]
        """The buffers of each slot."""
        self._tilings: list[Tiling | None] = [None] * len(self._slots)
        self._lows = [0] * len(self._slots)
        self._use = [0] * len(self._slots)
        self._striped = {s.index: stripe_words(s.stages, s.stripes) for s in self._slots if s.stripes is not None}
        """Words of a tile, and of tables and constants, of each slot in stripes."""
        self._transient = cache(transient_words)
        self._choose = cache(self._choose_tiling)
        self._packing = Packing[_Item]()
        for group in groups:
            for item in self._inside(group):
                self._add(item)

    def _add(self, item: _Item) -> None:
        self._packing.add(item, Span(item.birth, item.death + 1, item.local.words))
        self._count(item, 1)
        for k in item.slots:
            self._local[k][item.local.buffer] = item

    def _remove(self, item: _Item) -> None:
        self._packing.remove(item)
        self._count(item, -1)
        for k in item.slots:
            del self._local[k][item.local.buffer]

    def _count(self, item: _Item, sign: int) -> None:
        for k in item.slots:
            self._use[k] += sign * item.local.words

    def _inside(self, group: Group) -> list[_Item]:
        """The rings of a group in stripes; else tensors between its stages, which run one after the other."""
        if group.stripes is not None:
            slot = self._slot_of[group.first]
            return [_Item(local, slot, slot) for local in group.stripes.buffers.values()]
        items = []
        for inside in self._flow.inside(group.first, group.stop).values():
            if group.stop - group.first > 1 and inside.reads and inside.writes:
                local = replace(inside.local, first_reader=inside.reads[0].stage)
                users = [self._slot_of[a.index] for a in inside.accesses]
                items.append(_Item(local, min(users), max(users), inside.saved))
        return items

    # Buffers between groups.

    def keep_between_groups(self) -> None:
        """Keep what saves most traffic for its space and time."""
        offers = [item for buffer in self._flow.readers if (item := self._offer(buffer)) is not None]
        for item in sorted(offers, key=lambda i: (-i.density, i.birth, i.local.buffer.name)):
            self._try(item)

    def _offer(self, buffer: Buffer) -> _Item | None:
        """The buffer whole from its first writer to its last reader, if that is more than one group does."""
        inside = self._flow.whole(buffer)
        # The host writes a graph's inputs into DRAM.
        if inside.loaded or not inside.written or not all(w.stage.writes_only_result for w in inside.writes):
            return None
        users = [self._slot_of[a.index] for a in inside.accesses]
        birth, death = min(users), max(users)
        present = self._local[birth].get(buffer)
        if birth == death or (present is not None and not present.local.stored and not present.local.loaded):
            return None
        return _Item(inside.local, birth, death, inside.saved)

    def _try(self, item: _Item) -> None:
        buffer = item.local.buffer
        replaced = {self._local[k][buffer] for k in item.slots if buffer in self._local[k]}
        for old in replaced:
            self._count(old, -1)
        fits = all(self._leaves_room(k, item.local) for k in item.slots)
        for old in replaced:
            self._count(old, 1)
        if fits:
            for old in replaced:
                self._remove(old)
            self._add(item)

    def start_vector_results_early(self) -> None:
        """Let results of the vector unit begin with the stages before, so that its tiles can run beside theirs."""
        for item in list(self._packing):
            slot = self._slots[item.birth]
            if slot.stripes is not None or slot.stages[0].unit is not Unit.VEC:
                continue
            sources = [w.index for r in self._flow.reads[slot.first] for w in self._flow.writers[r.buffer]]
            first = max((self._slot_of[k] for k in sources if k < slot.first), default=item.birth)
            before = self._slots[first : item.birth]
            # Stages before the item's birth use the buffer in DRAM.
            if any(self._uses(s, item.local.buffer) for s in before):
                continue
            if all(s.stripes is None and self._leaves_room(s.index, item.local) for s in before):
                self._remove(item)
                self._add(replace(item, birth=first))

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
                final = {item: replace(item.local, address=address) for item, address in addresses.items()}
                decided = zip(self._slots, self._local, self._tilings, self._lows, strict=True)
                return tuple(
                    replace(slot, local={b: final[x] for b, x in local.items()}, tiling=tiling, low=low)
                    for slot, local, tiling, low in decided
                )
            self._drop(late)

    def _without_room(self, addresses: Mapping[_Item, int], words: int) -> Slot | None:
        """A slot whose buffers or tiles do not fit."""
        if words > self._params.scratch_words:
            item = next(i for i in self._packing if addresses[i] + i.local.words == words)
            # The slot of the item in which most is in use.
            return self._slots[max(item.slots, key=lambda k: self._use[k])]
        self._lows = [max((addresses[i] + i.local.words for i in local.values()), default=0) for local in self._local]
        return next((s for s in self._slots if not self._settle(s) or self._is_crowded(s)), None)

    def _optional(self, slot: Slot) -> list[_Item]:
        """The buffers that a slot can do without."""
        return [i for i in self._local[slot.index].values() if i.saved >= 0]

    def _is_crowded(self, slot: Slot) -> bool:
        """Whether the tiles that fit above a slot's buffers cost more than a buffer saves.

        Buffers may leave gaps below the highest one, where no tile lies.
        """
        tiling = self._tilings[slot.index]
        if tiling is None:
            return False
        saved = min((i.saved for i in self._optional(slot)), default=None)
        lost = tiling.cost - self._best[slot.first].cost
        return saved is not None and lost > tuning.SAVED_WORD_PRICE * saved

    def _drop(self, slot: Slot) -> None:
        """Let the buffer that saves least in a slot go through DRAM."""
        victim = min(self._optional(slot), key=lambda i: (i.density, i.birth, i.local.buffer.name))
        self._remove(victim)
        for k in victim.slots:
            stripes = self._slots[k].stripes
            ring = None if stripes is None else stripes.buffers.get(victim.local.buffer)
            if ring is not None:
                # A group in stripes that had a ring of its own uses it again; others load tiles or do not use it.
                self._add(_Item(ring, k, k))

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
            slots.append(Slot(len(slots), group.first, stages, group.stripes, group.resident_weights))
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
