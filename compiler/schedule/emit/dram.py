"""The layout of DRAM: the constant image, then the buffers; buffers with disjoint lifetimes share words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from intloom.compiler.program.word_code import encode_words
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.plan.packing import Packing, Span
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.stages.placement import Buffer
from intloom.compiler.schedule.stages.stage import LoadPart
from intloom.compiler.schedule.stages.stage_list import Stages
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, eq=False)
class DramLayout:
    """First words of the constants and of the buffers in DRAM."""

    image: bytes
    """The constants, from word 0 on."""
    constants: Mapping[bytes, int]
    coded: Mapping[bytes, Sequence[LoadPart]]
    """Constants of which some parts are coded."""
    buffers: Mapping[Buffer, int]
    words: int
    """Words in all."""

    def address(self, source: Buffer | bytes) -> int:
        """The first word of a buffer or of constants."""
        return self.constants[source] if isinstance(source, bytes) else self.buffers[source]

    def parts(self, constant: bytes, first: int, words: int) -> Sequence[LoadPart]:
        """The loads of some words of a constant; of a coded one, they start and end where parts do."""
        if constant not in self.coded:
            return [LoadPart(constant, first, first, (words, 1, 1))]
        return [part for part in self.coded[constant] if first <= part.local < first + words]


def coded_piece(params: HardwareParams) -> int:
    """Words that are coded together, so that a piece is a small part of the weight memory; 1 without a code."""
    return min(tuning.CODED_PIECE, params.weight_words // 8) if params.word_code else 1


def lay_out(
    stages: Stages,
    slots: Sequence[Slot],
    constants: Iterable[bytes],
    first_writes: Mapping[Buffer, int],
    weights: Iterable[bytes] = (),
) -> DramLayout:
    """The layout of the buffers of all slots, and of the constants of their tasks.

    `first_writes` names the slot during which a buffer is first written, where reordering moved that write forward.
    `weights` are constants that are loaded as `DramLayout.parts` says, and may be coded.
    """
    params = stages.params
    word = params.word_bytes
    codes = {data: code for data in weights if params.word_code and (code := _code(data, params))}
    whole = (data for data in constants if data not in codes)
    stored = (piece for code in codes.values() for piece, _ in code)
    image, offsets = _image([*stages.constants.values(), *whole, *stored], word)
    first = len(image) // word
    buffers = list(_stored_buffers(stages, slots))
    live, end = _live_ranges(slots, first_writes), len(slots)
    # A pinned buffer overlaps every live range, so it shares memory with none.
    spans = {b: Span(*((0, end + 1) if b in stages.pinned else live[b]), b.words) for b in buffers}
    starts, words = Packing(spans).first_fit()
    addresses = {buffer: first + starts[buffer] for buffer in buffers}
    addresses |= {buffer: offsets[data] for buffer, data in stages.constants.items()}
    size = coded_piece(params)
    coded = {
        data: [
            LoadPart(stored, 0, at * size, (n, 1, 1), coded=len(stored) // word if len(stored) < n * word else 0)
            for at, (stored, n) in enumerate(code)
        ]
        for data, code in codes.items()
    }
    return DramLayout(image, offsets, coded, addresses, first + words)


def _code(data: bytes, params: HardwareParams) -> list[tuple[bytes, int]]:
    """What DRAM holds for each piece, and its words; empty if no piece becomes smaller."""
    word, size = params.word_bytes, coded_piece(params)
    pieces = []
    for at in range(0, len(data), size * word):
        piece = data[at : at + size * word]
        code = encode_words(piece, params.rows)
        smaller = len(code) + tuning.MIN_SAVING * word <= len(piece)
        pieces.append((code if smaller else piece, len(piece) // word))
    return pieces if any(len(stored) < words * word for stored, words in pieces) else []


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


def _stored_buffers(stages: Stages, slots: Sequence[Slot]) -> Iterator[Buffer]:
    """Buffers that are in DRAM at some time: those that are not in the scratchpad wherever they are used."""
    local = {b for slot in slots for b in slot.local}
    outside = {
        buffer
        for slot in slots
        for buffer in _used(slot)
        # A buffer that one group keeps in the scratchpad may be stored for another, or by one that does not keep it.
        if (held := slot.local.get(buffer)) is None or held.inside.stored or held.inside.loaded
    }
    for buffer in stages.placement.buffers:
        if buffer in stages.needed and buffer not in stages.constants and (buffer in outside or buffer not in local):
            yield buffer


def _used(slot: Slot) -> Iterator[Buffer]:
    """The buffers that a slot's stages write or read."""
    for stage in slot.stages:
        yield from (buffer for buffer, _ in stage.written)
        yield from (view.buffer for view in stage.operands)


def _live_ranges(slots: Sequence[Slot], first_writes: Mapping[Buffer, int]) -> dict[Buffer, tuple[int, int]]:
    """The half-open range of slots in which each buffer is live."""
    live: dict[Buffer, tuple[int, int]] = {}
    for slot in slots:
        for buffer in _used(slot):
            # Reads extend the range too: a load of the last reader must not meet the next tensor in these words.
            start, stop = live.get(buffer, (first_writes.get(buffer, slot.index), 0))
            live[buffer] = (min(start, slot.index), max(stop, slot.index + 1))
    return live
