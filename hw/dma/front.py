"""What load and store share: from an instruction to its bursts in memory and its places in local memory."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.bus.buffer import StreamBuffer
from hw.decode import instruction_layout
from hw.ports import UnitPort
from hw.spec.isa import Kind
from hw.spec.params import HardwareParams

from .bursts import BurstSplitter, burst_layout, word_address_bits
from .places import LOCAL_LAYOUT, PLACE_LAYOUT, PlaceWalker
from .runs import MOVE_LAYOUT, RunWalker


def moves_ahead(params: HardwareParams) -> int:
    """Moves whose places may wait while their data is under way."""
    return max(params.axi_outstanding, 4)


class MoveFront(wiring.Component):
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
        A burst has left: it will be seen on `bursts` and has to be finished; it is the last of its instruction.
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
                "places": Out(stream.Signature(PLACE_LAYOUT)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Feed both walkers from the instruction; hold the places in a queue, the bursts in a buffer."""
        m = Module()
        m.submodules.runs = runs = RunWalker()
        m.submodules.splitter = splitter = BurstSplitter(self._params)
        m.submodules.buffer = buffer = StreamBuffer(burst_layout(self._params))
        m.submodules.moves = moves = SyncFIFOBuffered(width=LOCAL_LAYOUT.size, depth=moves_ahead(self._params))
        m.submodules.places = places = PlaceWalker()
        instruction = data.View(instruction_layout(self._kind), self.instruction)
        self._take(m, runs, moves, instruction)
        wiring.connect(m, runs.o, splitter.i)
        wiring.connect(m, buffer.o, wiring.flipped(self.bursts))
        wiring.connect(m, places.o, wiring.flipped(self.places))
        m.d.comb += [
            splitter.base.eq(self.base),
            buffer.i.payload.eq(splitter.o.payload),
            buffer.i.valid.eq(splitter.o.valid & self.may_issue & ~self.halt),
            splitter.o.ready.eq(buffer.i.ready & self.may_issue & ~self.halt),
            self.issued.eq(splitter.o.valid & splitter.o.ready),
            self.issued_last.eq(splitter.o.payload.last),
            places.i.payload.eq(moves.r_data),
            places.i.valid.eq(moves.r_rdy),
            moves.r_en.eq(places.i.ready),
        ]
        return m

    def _take(
        self, m: Module, runs: RunWalker, moves: SyncFIFOBuffered, instruction: data.View[data.StructLayout]
    ) -> None:
        local = data.View(LOCAL_LAYOUT, moves.w_data)
        take = self.valid & self.ready
        m.d.comb += [
            self.ready.eq(runs.i.ready & moves.w_rdy & ~self.halt),
            runs.i.valid.eq(take),
            moves.w_en.eq(take),
            local.index.eq(self.index),
            *(runs.i.payload[name].eq(instruction[name]) for name, _ in MOVE_LAYOUT),
            *(local[name].eq(instruction[name]) for name, _ in LOCAL_LAYOUT if name not in ("index", "target")),
        ]
        if "target" in instruction.shape().members:
            m.d.comb += local.target.eq(instruction.target)
