"""What load and store share: from an instruction to its bursts in memory and its places in local memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.decode import instruction_layout
from intloom.hw.dma.address_walker import LOCAL_ADDRESS_LAYOUT, AddressWalker
from intloom.hw.dma.bursts import BurstSplitter, burst_layout
from intloom.hw.dma.runs import LOCAL_RUN_LAYOUT, RunWalker, word_address_bits
from intloom.hw.ports import UnitPort
from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.params import HardwareParams


def runs_ahead(params: HardwareParams) -> int:
    """Runs whose places may wait while their data is under way."""
    return max(params.axi_outstanding, 4)


class MoveFrontEnd(wiring.Component):
    """Takes moves and runs ahead of their data: bursts and places come out independently of each other.

    The bursts of the next move follow those of the last without a gap, so short moves hide each other's latency.

    Parameters
    ----------
    params
        The accelerator's parameters.
    kind
        LOAD or STORE, whose layout the instruction has.

    Members
    -------
    unit
        Only `valid`, `instruction`, `index` and `ready` are served here.
    halt
        Nothing is taken and no further burst comes out; a burst on offer stays.
    may_issue
        A burst may leave; when low they are held back.
    issued, issued_last
        A burst goes on offer in the next cycle and has to be finished; it is the last of its instruction.
    """

    def __init__(self, params: HardwareParams, kind: Kind) -> None:
        self._params = params
        self._kind = kind
        unit = UnitPort().members
        super().__init__(
            {
                **{name: unit[name].flip() for name in ("valid", "instruction", "index", "ready")},
                "base": In(word_address_bits(params)),
                "halt": In(1),
                "may_issue": In(1),
                "issued": Out(1),
                "issued_last": Out(1),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "places": Out(stream.Signature(LOCAL_ADDRESS_LAYOUT)),
            }
        )

    @staticmethod
    def model(move: Instruction) -> Iterator[tuple[int, int]]:
        """Each word that a move moves, in order: its offset in memory and its address in local memory."""
        for p2, p1, p0 in product(range(move["n2"]), range(move["n1"]), range(move["n0"])):
            yield (
                move["dram"] + p2 * move["dram_s2"] + p1 * move["dram_s1"] + p0,
                move["local"] + p2 * move["local_s2"] + p1 * move["local_s1"] + p0,
            )

    def elaborate(self, platform: object) -> Module:
        """Runs go to the burst splitter and, through a queue, to the place walker."""
        m = Module()
        m.submodules.runs = runs = RunWalker(self._params)
        m.submodules.splitter = splitter = BurstSplitter(self._params)
        m.submodules.ahead = ahead = CreditFifo(LOCAL_RUN_LAYOUT, runs_ahead(self._params))
        m.submodules.places = places = AddressWalker()
        self._take(m, runs)
        wiring.connect(m, splitter.o, wiring.flipped(self.bursts))
        wiring.connect(m, ahead.o, places.i)
        wiring.connect(m, places.o, wiring.flipped(self.places))
        m.d.comb += [
            splitter.base.eq(self.base),
            splitter.i.payload.eq(runs.o.payload.memory),
            splitter.i.valid.eq(runs.o.valid & ahead.credit_available),
            splitter.held_back.eq(~ahead.credit_available),
            ahead.word.eq(runs.o.payload.local),
            ahead.push.eq(runs.o.valid & runs.o.ready),
            ahead.take_credit.eq(ahead.push),
            runs.o.ready.eq(ahead.credit_available & splitter.i.ready),
            splitter.may_issue.eq(self.may_issue & ~self.halt),
            self.issued.eq(splitter.issued),
            self.issued_last.eq(splitter.issued_last),
        ]
        return m

    def _take(self, m: Module, runs: RunWalker) -> None:
        instruction = data.View(instruction_layout(self._kind), self.instruction)
        move = runs.i.payload
        m.d.comb += [
            runs.i.valid.eq(self.valid & ~self.halt),
            self.ready.eq(runs.i.ready & ~self.halt),
            move.index.eq(self.index),
            *(move[name].eq(instruction[name]) for name, _ in move.shape() if name in instruction.shape().members),
        ]
