"""Interfaces between units, memories and control."""

from amaranth.hdl import Value
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from intloom.hw.dma.runs import word_address_bits
from intloom.hw.spec import timing
from intloom.hw.spec.isa import COUNT_BITS, DRAM_BITS, INSTRUCTION_BITS, SCRATCH_BITS, WEIGHT_ADDRESS_BITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Stall

READ_LATENCY = timing.SCRATCHPAD_READ
"""Cycles from an accepted scratchpad read to its data: request register, bank input register, block RAM, its output
register, and a register after the bank multiplexer."""

WEIGHT_LATENCY = timing.WEIGHT_READ
"""Cycles from a weight read to its data. One more than `READ_LATENCY`: the pixel path has one address stage before its
request, so both arrive at the array together."""

CAUSE_BITS = 5


def out_of_range(addr: Value, words: int) -> Value:
    """Whether a word address is past the end of a memory of `words` words, a power of two."""
    return addr[exact_log2(words) :].any()


class WindowPort(Signature):
    """The memory that a program may address, from the side that latches it: stable from `launch` to the next reset.

    `base` and `end` are word addresses; the window is from `base` up to, but without, `end`. `limit` is its size in
    words. If `wraps`, the window goes beyond the end of the address space, and no program may run.
    """

    def __init__(self, params: HardwareParams) -> None:
        bits = word_address_bits(params)
        super().__init__({"base": Out(bits), "end": Out(bits + 1), "limit": Out(DRAM_BITS), "wraps": Out(1)})


class ReadPort(Signature):
    """A unit's read port on the scratchpad, from the unit's side.

    A request fires in a cycle with `valid` and `ready`; its `data` is valid `READ_LATENCY` cycles later, for one cycle.
    `valid` never waits for `ready`; `valid` and `addr` are stable until the request fires. `fault` is combinational: it
    is high in the cycle of a request whose `addr` is outside the memory. Such a request fires and returns undefined
    data.
    """

    def __init__(self, word_bytes: int) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "addr": Out(SCRATCH_BITS),
                "ready": In(1),
                "data": In(8 * word_bytes),
                "fault": In(1),
            }
        )


class WritePort(Signature):
    """A unit's write port on the scratchpad, from the unit's side; `mask` has a bit for each byte of the word.

    A write fires in a cycle with `valid` and `ready`. A read that fires in a later cycle returns the new data. `fault`
    is as on `ReadPort`; the write then fires and is dropped.
    """

    def __init__(self, word_bytes: int) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "addr": Out(SCRATCH_BITS),
                "data": Out(8 * word_bytes),
                "mask": Out(word_bytes),
                "ready": In(1),
                "fault": In(1),
            }
        )


class WeightReadPort(Signature):
    """The MAC unit's read port on the weight memory: always ready, data valid `WEIGHT_LATENCY` cycles after `valid`.

    The address wraps at the end of the memory.
    """

    def __init__(self, word_bytes: int) -> None:
        super().__init__({"valid": Out(1), "addr": Out(WEIGHT_ADDRESS_BITS), "data": In(8 * word_bytes)})


class WeightWritePort(Signature):
    """The load unit's write port on the weight memory: always ready; the address wraps at the end of the memory."""

    def __init__(self, word_bytes: int) -> None:
        super().__init__({"valid": Out(1), "addr": Out(SCRATCH_BITS), "data": Out(8 * word_bytes)})


class UnitPort(Signature):
    """Control of one of the four units, from the control side.

    `valid` rises only when all waits of `instruction` are met; `valid`, `instruction` and `index` are stable until the
    instruction issues (`valid & ready`). A unit may accept the next instruction while earlier ones are in flight.
    `started` and `done` pulse once per instruction, in order; `done` comes in the first cycle in which all writes of
    the instruction are visible to readers. On an error a unit raises `fault` with `cause` and `fault_index`, the number
    of the instruction; they stay until reset. While `halt` is high a unit issues nothing new and completes accepted bus
    transfers; `idle` is high when nothing is in flight. `busy` is high in cycles in which the unit moves or computes a
    word; `stall` has one bit per `Stall` cause, at most one of them high.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "instruction": Out(INSTRUCTION_BITS),
                "index": Out(COUNT_BITS),
                "ready": In(1),
                "halt": Out(1),
                "started": In(1),
                "done": In(1),
                "busy": In(1),
                "idle": In(1),
                "stall": In(len(Stall)),
                "fault": In(1),
                "cause": In(CAUSE_BITS),
                "fault_index": In(COUNT_BITS),
            }
        )
