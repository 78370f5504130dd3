"""A unit's instruction queue and its semaphore: the head waits until other units have finished enough."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, INSTRUCTIONS, QUEUED_UNITS, Unit
from hw.spec.params import HardwareParams

ENTRY_LAYOUT = data.StructLayout({"instruction": INSTRUCTION_BITS, "index": COUNT_BITS})
"""An instruction and its number in the program."""

COUNTS_LAYOUT = data.ArrayLayout(COUNT_BITS, len(QUEUED_UNITS))
"""Finished instructions of each unit."""


def used_bits(unit: Unit) -> int:
    """Bits of the longest instruction that `unit` runs; above them are zeros."""
    return max(sum(f.width for f in spec.fields) for spec in INSTRUCTIONS if spec.unit is unit)


class WaitGate(wiring.Component):
    """Says when every wait field of an instruction is met.

    Counts only grow while a program runs, so each wait once met stays met and is remembered in a register: no long
    path leads from the counts to the units. `met` comes `LATENCY` cycles after the last needed count.

    Members
    -------
    waits
        The wait fields of the instruction at hand.
    fresh
        Another instruction will be at hand in the next cycle.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "waits": In(COUNTS_LAYOUT),
                "counts": In(COUNTS_LAYOUT),
                "fresh": In(1),
                "met": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One comparison a unit."""
        m = Module()
        reached = Signal(len(QUEUED_UNITS))
        m.d.comb += self.met.eq(reached.all())
        with m.If(self.fresh):
            m.d.sync += reached.eq(0)
        with m.Else():
            m.d.sync += reached.eq(Cat(self.counts[u] >= self.waits[u] for u in range(len(QUEUED_UNITS))))
        return m


class UnitQueue(wiring.Component):
    """Holds `queue_depth` instructions of a unit in order; the first is offered once its waits are met.

    Parameters
    ----------
    params
        The accelerator's parameters.
    unit
        Whose queue it is.

    Members
    -------
    waiting
        There is a first instruction, and its waits are not met.
    empty
        There is none.
    """

    def __init__(self, params: HardwareParams, unit: Unit) -> None:
        self._params = params
        self._unit = unit
        super().__init__(
            {
                "i": In(stream.Signature(ENTRY_LAYOUT)),
                "o": Out(stream.Signature(ENTRY_LAYOUT)),
                "counts": In(COUNTS_LAYOUT),
                "waiting": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A memory-backed queue without the bits that no instruction of the unit uses, and the gate at its end."""
        m = Module()
        bits = used_bits(self._unit)
        m.submodules.queue = queue = SyncFIFOBuffered(width=bits + COUNT_BITS, depth=self._params.queue_depth)
        m.submodules.gate = gate = WaitGate()
        header = INSTRUCTIONS[0].offsets
        first = header[f"wait_{QUEUED_UNITS[0].name.lower()}"]
        m.d.comb += [
            queue.w_data.eq(Cat(self.i.payload.instruction[:bits], self.i.payload.index)),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            self.o.payload.instruction.eq(queue.r_data[:bits]),
            self.o.payload.index.eq(queue.r_data[bits:]),
            self.o.valid.eq(queue.r_rdy & gate.met),
            queue.r_en.eq(gate.met & self.o.ready),
            gate.counts.eq(self.counts),
            gate.waits.eq(queue.r_data[first : first + COUNT_BITS * len(QUEUED_UNITS)]),
            gate.fresh.eq(~queue.r_rdy | queue.r_en),
            self.waiting.eq(queue.r_rdy & ~gate.met),
            self.empty.eq(queue.level == 0),
        ]
        return m
