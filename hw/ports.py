"""Signatures of the connections between units, memories and control. All of `hw` speaks through these."""

from __future__ import annotations

from amaranth.hdl import Value
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from intloom.hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, SCRATCH_BITS
from intloom.hw.spec.regs import Stall

READ_LATENCY = 5
"""Cycles from an accepted read request to its data: two registers on the way to the memory, the memory, one that
belongs to it, and one at the end of the way back."""

WEIGHT_LATENCY = READ_LATENCY + 1
"""The same for the weight memory: weights and pixels then take equally long, for pixels have addresses to be made."""

CAUSE_BITS = 4


def out_of_range(addr: Value, words: int) -> Value:
    """Whether a word address of a port lies past the end of a memory of `words` words, a power of two."""
    return addr[exact_log2(words) :].any()


class ReadPort(Signature):
    """A unit's read port on the scratchpad, seen from the unit.

    A request is taken in a cycle with `valid` and `ready`; its `data` is there `READ_LATENCY` cycles later, for one
    cycle. `valid` never waits for `ready`, and a request that was not taken stays as it is. `fault` is combinational:
    it is high in the cycle of the request when `addr` lies outside the memory, and such a request is taken and gives
    undefined data.
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
    """A unit's write port on the scratchpad, seen from the unit; `mask` has a bit for every byte of the word.

    A write is taken in a cycle with `valid` and `ready`, and a read accepted in a later cycle sees it. `fault` is
    as on `ReadPort`; the write is then taken and dropped.
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
    """The MAC unit's read port on the weight memory: never refused, data after `WEIGHT_LATENCY` cycles.

    The address wraps at the memory's end.
    """

    def __init__(self, word_bytes: int) -> None:
        super().__init__({"valid": Out(1), "addr": Out(SCRATCH_BITS), "data": In(8 * word_bytes)})


class WeightWritePort(Signature):
    """The load unit's write port on the weight memory: never refused, address wraps."""

    def __init__(self, word_bytes: int) -> None:
        super().__init__({"valid": Out(1), "addr": Out(SCRATCH_BITS), "data": Out(8 * word_bytes)})


class UnitPort(Signature):
    """From the control unit to one of the four units, seen from the control unit.

    `instruction` is offered (`valid`) only once all its waits hold; the unit takes it with `ready`, and may take the
    next one while earlier ones are still in its pipeline. `started` and `done` pulse once for every instruction, in
    order; `done` comes in the first cycle in which all its writes are visible to readers. A unit that meets an error
    raises `fault` with `cause` and the instruction's `fault_index`, and holds them until reset. While `halt` is high a
    unit starts nothing new, but finishes what the bus has accepted; `idle` says that nothing is left under way.
    `busy` is high in cycles in which it moves or computes a word; `stall` has a bit for every `Stall` cause, at most
    one set.
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
