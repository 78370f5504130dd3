"""The layout of DRAM: the constant image, then the buffers; buffers with disjoint lifetimes share words."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from intloom.compiler.schedule.plan import Plan
from intloom.compiler.schedule.plan.residency import first_fit
from intloom.compiler.schedule.stages.placement import Buffer


@dataclass(frozen=True, eq=False)
class DramLayout:
    """First words of the constants and of the buffers in DRAM."""

    image: bytes
    """The constants, from word 0 on."""
    constants: Mapping[bytes, int]
    buffers: Mapping[Buffer, int]
    words: int
    """Words in all."""

    def address(self, source: Buffer | bytes) -> int:
        """The first word of a buffer or of constants."""
        return self.constants[source] if isinstance(source, bytes) else self.buffers[source]


def lay_out(plan: Plan, constants: Iterable[bytes], first_writes: Mapping[Buffer, int]) -> DramLayout:
    """The layout of a plan's buffers, and of the constants of its tasks.

    `first_writes` names the slot during which a buffer is first written, where reordering moved that write forward.
    """
    word = plan.stages.params.word_bytes
    image, offsets = _image([*plan.stages.constants.values(), *constants], word)
    first = len(image) // word
    buffers = list(_stored_buffers(plan))
    live, end = _live_ranges(plan, first_writes), len(plan.slots)
    # A pinned buffer overlaps every live range, so it shares memory with none.
    ranges = [(*((0, end + 1) if b in plan.stages.pinned else live[b]), b.words) for b in buffers]
    starts, words = first_fit(ranges)
    addresses = {buffer: first + start for buffer, start in zip(buffers, starts, strict=True)}
    addresses |= {buffer: offsets[data] for buffer, data in plan.stages.constants.items()}
    return DramLayout(image, offsets, addresses, first + words)


def _image(constants: Iterable[bytes], word: int) -> tuple[bytes, dict[bytes, int]]:
    """Constants padded to whole words, equal ones once; and the first word of each."""
    offsets: dict[bytes, int] = {}
    chunks: dict[bytes, int] = {}
    words = 0
    for data in dict.fromkeys(constants):
        padded = data + bytes(-len(data) % word)
        if padded not in chunks:
            chunks[padded] = words
            words += len(padded) // word
        offsets[data] = chunks[padded]
    return b"".join(chunks), offsets


def _stored_buffers(plan: Plan) -> Iterator[Buffer]:
    """Buffers that are in DRAM at some time: those that are not in the scratchpad wherever they are used."""
    local = [b for slot in plan.slots for b in slot.local.items()]
    outside = {b for b, held in local if held.stored or held.loaded}
    # A buffer that one group keeps in the scratchpad may be stored for another.
    inside = {b for b, _ in local} - outside
    for buffer in plan.stages.placement.buffers:
        if buffer in plan.stages.needed and buffer not in plan.stages.constants and buffer not in inside:
            yield buffer


def _live_ranges(plan: Plan, first_writes: Mapping[Buffer, int]) -> dict[Buffer, tuple[int, int]]:
    """The half-open range of slots in which each buffer is live."""
    live: dict[Buffer, tuple[int, int]] = {}
    for slot in plan.slots:
        for stage in slot.stages:
            for buffer in (*(b for b, _ in stage.written), *(v.buffer for v in stage.operands)):
                # Reads extend the range too: a load of the last reader must not meet the next tensor in these words.
                start, stop = live.get(buffer, (first_writes.get(buffer, slot.index), 0))
                live[buffer] = (min(start, slot.index), max(stop, slot.index + 1))
    return live
