"""Blocks of RAM of an accelerator: the shapes of its memories, and how many blocks of a family each of them takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from intloom.hw.spec.fields import INSTRUCTION_BYTES
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.norm import FALL_BITS, LARGEST_COUNT, ROOT_BITS, SEGMENTS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import COUNTER_BITS, COUNTER_INDEX_BITS, SHORT_COUNTER_BITS
from intloom.hw.spec.softmax import EXPONENTIAL_BITS, EXPONENTIAL_BYTES, QUEUE_GROUPS
from intloom.hw.spec.timing import PREFETCH_INSTRUCTIONS

_WHOLE = ((72, 512), (36, 1024), (18, 2048), (9, 4096), (4, 8192), (2, 16384), (1, 32768))
_HALF = tuple((width, depth // 2) for width, depth in _WHOLE[1:])
_BLOCKS = {"xc7": ((1.0, _WHOLE), (0.5, _HALF)), "ecp5": ((1.0, _HALF),)}
"""Blocks of 36 or 18 kbit that a family has, and the widths and depths of each; 18 kbit are half a block of 36."""
_SMALLEST = {"xc7": 128, "ecp5": 64}
"""Words from which Yosys puts a memory into blocks instead of LUTs."""
_SMALLEST_SINGLE_PORTED = {"xc7": 512, "ecp5": 64}
_BYTE = 9
"""Bits of a block with a write enable of their own."""
COUNTER_MEMORY_BITS = COUNTER_BITS - SHORT_COUNTER_BITS + 1
"""Bits of a counter that its short counter does not have, and the short counter's top bit."""
_DEEP = ((4096, 2), (2048, 4), (0, 36))
"""Words, and the widest shape that `hw/fpga/deep_ram.txt` leaves memories of the ECP5 with more words."""


@dataclass(frozen=True)
class Memory:
    """Equal memories with a write port and a read port, synchronous unless `in_luts` is set."""

    count: int
    words: int
    bits: int
    enables: int = 1
    """Write enables, each for an equal part of a word."""
    reads: int = 1
    """Read ports with addresses of their own."""
    ports: int = 2
    """1 if the read port has the address of the write port."""
    both_read: bool = False
    """Whether the write port reads too: a block then lacks its widest shape."""
    in_luts: bool = False
    """Whether the read port has no register: no block has such a port."""
    forced: bool = False
    """Whether `hw/fpga/flow.py` puts it into blocks of the ECP5, whatever its size."""


def memories(p: HardwareParams) -> dict[str, list[Memory]]:
    """The memories of each component that can be blocks of RAM."""
    slots = 1 << (len(QUEUED_UNITS) + INSTRUCTION_BYTES // p.word_bytes - 1).bit_length()
    prefetched = max(2 * p.burst_words, PREFETCH_INSTRUCTIONS * INSTRUCTION_BYTES // p.word_bytes)
    row_bits = 8 * p.rows + p.rows * p.memory_parity
    parts = {
        "scratchpad": [Memory(p.scratch_banks, p.scratch_words // p.scratch_banks, row_bits, enables=p.rows)],
        "weight memory": [Memory(1, p.weight_words, 8 * p.rows + p.memory_parity)],
        "accumulators": [
            Memory(
                1,
                2 * p.strip,
                p.cols * p.acc_bits - p.accumulator_surplus,
                reads=2 - p.single_ported_accumulators,
                forced=not p.single_ported_accumulators,
            ),
            *[Memory(1, 2 * p.strip, p.accumulator_surplus, reads=2, in_luts=True)] * bool(p.accumulator_surplus),
        ],
        "epilogue": [Memory(p.lanes, 2 * TABLE_BYTES, 8)],
        # Two lanes share a table's ports.
        "vector datapath": [Memory(ceil(p.vector_lanes / 2), TABLE_BYTES, 8, ports=min(2, p.vector_lanes))],
        "control": [
            Memory(1, len(QUEUED_UNITS) * p.queue_depth * slots, p.word_bits),
            Memory(1, prefetched, p.word_bits + 1),
            Memory(1, 1 << COUNTER_INDEX_BITS, COUNTER_MEMORY_BITS, forced=True),
        ],
    }
    if p.vector_softmax:
        parts["softmax"] = [
            Memory(
                ceil(p.softmax_lanes / 2), TABLE_BYTES, 8 * EXPONENTIAL_BYTES, enables=EXPONENTIAL_BYTES, both_read=True
            ),
            Memory(1, QUEUE_GROUPS, EXPONENTIAL_BITS * p.softmax_lanes, in_luts=True),
        ]
    if p.vector_norm:
        chords = (Memory(1, len(SEGMENTS), bits, ports=1) for bits in (ROOT_BITS, FALL_BITS))
        parts["normalization"] = [
            Memory(p.norm_words, LARGEST_COUNT // p.softmax_lanes, 8 * p.word_bytes),
            *chords,
        ]
    return parts


def blocks_of(memories: Iterable[Memory], family: str) -> float:
    """Blocks of RAM of a family that memories take."""
    return sum(m.count * m.reads * _blocks(m, family) for m in memories if in_blocks(m, family))


def in_blocks(memory: Memory, family: str) -> bool:
    """Whether a memory is in blocks of RAM of a family, and not in LUTs."""
    if memory.forced and family == "ecp5":
        return True
    smallest = _SMALLEST if memory.ports > 1 else _SMALLEST_SINGLE_PORTED
    return memory.words >= smallest[family] and not memory.in_luts


def luts_of(memories: Iterable[Memory], family: str) -> float:
    """LUTs of a family that memories take which are not in its blocks."""
    return sum(m.count * m.reads * _luts(m, family) for m in memories if not in_blocks(m, family))


def _luts(memory: Memory, family: str) -> int:
    if family == "ecp5":
        return 4 * ceil(memory.words / 16) * ceil(memory.bits / 4)
    if memory.ports == 1:
        return memory.bits * ceil(memory.words / 64)
    return 4 * ceil(memory.words / 64) * ceil(memory.bits / (6 if memory.words <= 32 else 3))


def _blocks(memory: Memory, family: str) -> float:
    widest = 72 if family == "xc7" else next(width for words, width in _DEEP if memory.words > words)
    return min(
        share * _across(memory, width) * ceil(memory.words / depth)
        for share, shapes in _BLOCKS[family]
        for width, depth in shapes[memory.both_read :]
        if width <= widest
    )


def _across(memory: Memory, width: int) -> int:
    """Blocks of a width side by side."""
    if memory.enables == 1:
        return ceil(memory.bits / width)
    if width >= _BYTE:
        return ceil(memory.enables / (width // _BYTE))
    return memory.enables * ceil(memory.bits / memory.enables / width)
