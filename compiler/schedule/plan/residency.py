"""Tensors that stay in the scratchpad between stages: whole, or the rows that are still needed in a ring buffer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.dataflow import Dataflow, LocalBuffer, Read
from intloom.compiler.schedule.plan.groups import Group, stripe_constants, transient_words
from intloom.compiler.schedule.plan.stripes import Stripes
from intloom.compiler.schedule.plan.tiling import Space, Tiling, choose_tiling
from intloom.compiler.schedule.stages.placement import Buffer
from intloom.compiler.schedule.stages.stage import Stage
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, eq=False)
class Slot:
    """A time slot: one stage, or several in stripes, and the buffers that are in the scratchpad meanwhile."""

    index: int
    stages: Sequence[Stage]
    stripes: Stripes | None
    resident_weights: bool
    local: Mapping[Buffer, LocalBuffer]
    tiling: Tiling | None
    low: int
    """First scratchpad word that no buffer of the slot uses."""


@dataclass(eq=False)
class _Draft:
    """A slot while its buffers are chosen."""

    index: int
    first: int
    """Position of its first stage."""
    stages: Sequence[Stage]
    stripes: Stripes | None = None
    resident_weights: bool = False
    local: dict[Buffer, LocalBuffer] = field(default_factory=dict)
    tiling: Tiling | None = None
    low: int = 0


@dataclass(eq=False)
class _Item:
    """A local buffer from slot `birth` to `death`, both included."""

    local: LocalBuffer
    birth: int
    death: int
    saved: int = -1
    """Words of traffic that it saves; -1: the slot cannot do without it."""

    @property
    def density(self) -> float:
        """Saved words for each word and slot."""
        return self.saved / (self.local.words * (self.death + 1 - self.birth))


class Residency:
    """Chooses the local buffers of all slots and their addresses."""

    def __init__(self, flow: Dataflow, groups: Sequence[Group], params: HardwareParams) -> None:
        self._flow = flow
        self._params = params
        self.slots: list[_Draft] = []
        self._addresses: dict[LocalBuffer, int] = {}
        self.slot_of: list[int] = []
        """The slot of each stage."""
        self._items: list[_Item] = []
        for group in groups:
            self._add_group(group)
        self._use = [0] * len(self.slots)
        for item in self._items:
            self._count(item, 1)

    def _add_group(self, group: Group) -> None:
        stages = self._flow.stages[group.first : group.stop]
        if group.stripes is not None:
            slot = _Draft(len(self.slots), group.first, stages, group.stripes, group.resident_weights)
            self.slot_of += [slot.index] * len(stages)
            self.slots.append(slot)
            for local in group.stripes.buffers.values():
                self._add(_Item(local, slot.index, slot.index))
            return
        for position, stage in enumerate(stages, group.first):
            self.slot_of.append(len(self.slots))
            self.slots.append(_Draft(len(self.slots), position, [stage]))
        if len(stages) > 1:
            for item in self._inside(group):
                self._add(item)

    def _add(self, item: _Item) -> None:
        self._items.append(item)
        for slot in self.slots[item.birth : item.death + 1]:
            slot.local[item.local.buffer] = item.local

    def _count(self, item: _Item, sign: int) -> None:
        for k in range(item.birth, item.death + 1):
            self._use[k] += sign * item.local.words

    def _inside(self, group: Group) -> list[_Item]:
        """Tensors between the stages of a group that run one after the other."""
        items = []
        for inside in self._flow.inside(group.first, group.stop):
            if not inside.reads or not inside.writes:
                continue
            local = replace(inside.local(), first_reader=inside.reads[0].stage)
            users = [self.slot_of[a.index] for a in inside.accesses]
            items.append(_Item(local, min(users), max(users), inside.saved))
        return items

    # Buffers between groups.

    def keep_between_groups(self, tilings: Sequence[Tiling]) -> None:
        """Keep what saves most traffic for its space and time."""
        offers = [item for buffer in self._flow.readers if (item := self._offer(buffer)) is not None]
        for item in sorted(offers, key=lambda i: (-i.density, i.birth, i.local.buffer.name)):
            self._try(item, tilings)

    def _offer(self, buffer: Buffer) -> _Item | None:
        """The buffer whole from its first writer to its last reader, if that is more than one group does."""
        inside = self._flow.whole(buffer)
        # The host writes a graph's inputs into DRAM.
        if inside.loaded or not inside.written or not all(w.stage.writes_only_result for w in inside.writes):
            return None
        users = [self.slot_of[a.index] for a in inside.accesses]
        birth, death = min(users), max(users)
        present = self.slots[birth].local.get(buffer)
        if birth == death or (present is not None and not present.stored and not present.loaded):
            return None
        return _Item(inside.local(), birth, death, inside.saved)

    def _try(self, item: _Item, tilings: Sequence[Tiling]) -> None:
        buffer = item.local.buffer
        replaced = [i for i in self._items if i.local.buffer is buffer and item.birth <= i.birth <= item.death]
        for old in replaced:
            self._count(old, -1)
        self._count(item, 1)
        if all(self._leaves_room(k, item.local, tilings, counted=True) for k in range(item.birth, item.death + 1)):
            self._items = [i for i in self._items if i not in replaced]
            self._add(item)
            return
        self._count(item, -1)
        for old in replaced:
            self._count(old, 1)

    def start_vector_results_early(self, tilings: Sequence[Tiling]) -> None:
        """Let results of the vector unit begin with the stages before, so that its tiles can run beside theirs."""
        for item in list(self._items):
            slot = self.slots[item.birth]
            if slot.stripes is not None or slot.stages[0].unit is not Unit.VEC:
                continue
            sources = [w.index for r in self._flow.reads[slot.first] for w in self._flow.writers[r.buffer]]
            first = max((self.slot_of[k] for k in sources if k < slot.first), default=item.birth)
            before = self.slots[first : item.birth]
            # Stages before the item's birth use the buffer in DRAM.
            if any(self._uses(s, item.local.buffer) for s in before):
                continue
            if all(s.stripes is None and self._leaves_room(s.index, item.local, tilings) for s in before):
                self._items.remove(item)
                self._count(item, -1)
                self._add(replace(item, birth=first))
                self._count(self._items[-1], 1)

    def _uses(self, slot: _Draft, buffer: Buffer) -> bool:
        accesses = (a for k in range(slot.first, slot.first + len(slot.stages)) for a in self._flow.accesses(k))
        return buffer in slot.local or any(a.buffer is buffer for a in accesses)

    def _leaves_room(self, index: int, local: LocalBuffer, tilings: Sequence[Tiling], *, counted: bool = False) -> bool:
        slot = self.slots[index]
        free = self._params.scratch_words - self._use[index] - (0 if counted else local.words)
        return free >= self._needed(slot, {local.buffer, *slot.local}, tilings)

    def _needed(self, slot: _Draft, local: set[Buffer], tilings: Sequence[Tiling]) -> int:
        """Words that a slot's tiles should have beside the buffers."""
        if slot.stripes is not None:
            return self._stripe_words(slot)
        stage = slot.stages[0]
        if all(a.buffer in local for a in self._flow.accesses(slot.first)):
            return 2 * transient_words(stage, stage.extent[0] // 2)
        # What comes from DRAM or goes there needs two tiles; half of what the best tiling takes costs little.
        return min(tilings[slot.first].scratch, self._params.scratch_words // 2)

    def _stripe_words(self, slot: _Draft, tiles: int = 2) -> int:
        assert slot.stripes is not None
        largest = 0
        for stage, rows in zip(slot.stages, slot.stripes.progress, strict=True):
            largest = max(largest, transient_words(stage, int((rows[1:] - rows[:-1]).max())))
        return tiles * largest + stripe_constants(slot.stages)

    # Addresses.

    def allocate(self, tilings: Sequence[Tiling]) -> tuple[Slot, ...]:
        """Give every local buffer an address and every slot a tiling; what does not fit goes through DRAM instead."""
        while True:
            late = self._pack()
            if late is None:
                late = next((s for s in self.slots if not self._settle(s) or self._is_crowded(s, tilings)), None)
            if late is None:
                return self._finished()
            self._drop(late)

    def _finished(self) -> tuple[Slot, ...]:
        final = {local: replace(local, address=address) for local, address in self._addresses.items()}
        return tuple(
            Slot(
                index=s.index,
                stages=tuple(s.stages),
                stripes=s.stripes,
                resident_weights=s.resident_weights,
                local={buffer: final[local] for buffer, local in s.local.items()},
                tiling=s.tiling,
                low=s.low,
            )
            for s in self.slots
        )

    def _pack(self) -> _Draft | None:
        """Set all addresses; returns a slot whose buffers do not fit."""
        ranges = [(i.birth, i.death + 1, i.local.words) for i in self._items]
        starts, words = tightest_fit(ranges, self._params.scratch_words)
        if words > self._params.scratch_words:
            last = max(range(len(starts)), key=lambda k: starts[k] + ranges[k][2])
            # The slot of the item in which most is in use.
            item = self._items[last]
            return self.slots[max(range(item.birth, item.death + 1), key=lambda k: self._use[k])]
        for slot in self.slots:
            slot.low = 0
        for item, start in zip(self._items, starts, strict=True):
            self._addresses[item.local] = start
            for slot in self.slots[item.birth : item.death + 1]:
                slot.low = max(slot.low, start + item.local.words)
        return None

    def _optional(self, slot: _Draft) -> list[_Item]:
        """The buffers that a slot can do without."""
        return [i for i in self._items if i.birth <= slot.index <= i.death and i.saved >= 0]

    def _is_crowded(self, slot: _Draft, tilings: Sequence[Tiling]) -> bool:
        """Whether the tiles that fit above a slot's buffers cost more than a buffer saves.

        Buffers may leave gaps below the highest one, where no tile lies.
        """
        if slot.tiling is None:
            return False
        saved = min((i.saved for i in self._optional(slot)), default=None)
        lost = slot.tiling.cost - tilings[slot.first].cost
        return saved is not None and lost > tuning.SAVED_WORD_PRICE * saved

    def _drop(self, slot: _Draft) -> None:
        """Let the buffer that saves least in a slot go through DRAM."""
        victim = min(self._optional(slot), key=lambda i: (i.density, i.birth, i.local.buffer.name))
        self._items.remove(victim)
        self._count(victim, -1)
        buffer = victim.local.buffer
        for other in self.slots[victim.birth : victim.death + 1]:
            del other.local[buffer]
            ring = None if other.stripes is None else other.stripes.buffers.get(buffer)
            if ring is not None:
                # A group in stripes that had a ring of its own uses it again; others load tiles or do not use it.
                self._add(_Item(ring, other.index, other.index))
                self._count(self._items[-1], 1)

    def _settle(self, slot: _Draft) -> bool:
        free = self._params.scratch_words - slot.low
        if slot.stripes is not None:
            return self._stripe_words(slot, tiles=1) <= free
        space = Space(free, self._params.weight_words, frozenset(slot.local))
        slot.tiling = choose_tiling(slot.stages[0], space, self._most_blocks(slot))
        return slot.tiling is not None

    def _most_blocks(self, slot: _Draft) -> int | None:
        """The blocks of a chunk with which a vector stage can run beside the convolution that makes its operand.

        That is the convolution's own chunk, which is a part of its result before a depthwise convolution.
        """
        stage, flow = slot.stages[0], self._flow
        if stage.unit is Unit.MAC:
            beside = any(self._is_whole(r, slot) for r in flow.readers[stage.out.buffer])
            return -(-stage.out.blocks // tuning.PARALLEL_CHUNKS) if beside else None
        if not stage.follows_chunks or len(flow.writers[stage.operands[0].buffer]) != 1:
            return None
        before = self.slots[self.slot_of[flow.writers[stage.operands[0].buffer][0].index]]
        return before.tiling.chunk if before.tiling is not None and stage.operands[0].buffer in slot.local else None

    def _is_whole(self, read: Read, slot: _Draft) -> bool:
        """Whether a depthwise convolution on the vector unit reads what a slot makes as a whole in the scratchpad."""
        reader = self.slots[self.slot_of[read.index]]
        local = read.buffer in slot.local and read.buffer in reader.local
        return local and reader.stripes is None and read.stage.overlaps_array


def choose_slots(
    flow: Dataflow, groups: Sequence[Group], tilings: Sequence[Tiling], params: HardwareParams, *, keep: bool
) -> tuple[Slot, ...]:
    """The slots of these groups; with `keep`, tensors between groups may stay in the scratchpad too."""
    residency = Residency(flow, groups, params)
    if keep:
        residency.keep_between_groups(tilings)
        residency.start_vector_results_early(tilings)
    return residency.allocate(tilings)


Ranges = Sequence[tuple[int, int, int]]
"""Items as (birth, death, words)."""


def first_fit(ranges: Ranges) -> tuple[list[int], int]:
    """Addresses for items so that items alive together do not overlap, and the size of it all.

    Larger items are placed first, each at the lowest address that is free over its life.
    """
    # The index as the last key keeps the addresses, and so the program's bytes, the same in every run.
    return _first_fit(ranges, sorted(range(len(ranges)), key=lambda k: (-ranges[k][2], ranges[k][0], k)))


def tightest_fit(ranges: Ranges, size: int) -> tuple[list[int], int]:
    """The same with several orders until one needs at most `size` words; else the order that needs least."""
    items = range(len(ranges))
    area = [(death - birth) * words for birth, death, words in ranges]
    orders = (
        sorted(items, key=lambda k: (-ranges[k][2], ranges[k][0], k)),
        sorted(items, key=lambda k: (-area[k], k)),
        sorted(items, key=lambda k: (ranges[k][0], -ranges[k][2], k)),
        sorted(items, key=lambda k: (ranges[k][0] - ranges[k][1], -ranges[k][2], k)),
    )
    best: tuple[list[int], int] | None = None
    for order in orders:
        fit = _first_fit(ranges, order)
        if best is None or fit[1] < best[1]:
            best = fit
        if best[1] <= size:
            break
    assert best is not None  # there is at least one order
    return best


def _first_fit(ranges: Ranges, order: Iterable[int]) -> tuple[list[int], int]:
    starts = [0] * len(ranges)
    placed: list[int] = []
    for item in order:
        birth, death, words = ranges[item]
        others = sorted(
            (starts[o], starts[o] + ranges[o][2]) for o in placed if ranges[o][0] < death and birth < ranges[o][1]
        )
        at = 0
        for low, high in others:
            if low - at >= words:
                break
            at = max(at, high)
        starts[item] = at
        placed.append(item)
    return starts, max((s + r[2] for s, r in zip(starts, ranges, strict=True)), default=0)
