"""Cuts runs into AXI bursts, and joins runs that touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import LENGTH_BITS
from intloom.hw.dma.runs import RUN_BITS, memory_run_layout, word_address_bits
from intloom.hw.spec.params import HardwareParams


def burst_layout(params: HardwareParams) -> data.StructLayout:
    """A burst of `beats_less_one + 1` beats from word `addr` on; `last` marks the final one of its instruction."""
    return data.StructLayout({"addr": word_address_bits(params), "beats_less_one": LENGTH_BITS, "last": 1})


class BurstSplitter(wiring.Component):
    """Turns runs into bursts of at most `axi_burst` beats that never cross 4 KiB.

    Memory falls into blocks of `axi_burst` words, each at a multiple of its size; a burst stays inside one. A run that
    joins the one before goes on in the same burst, so rows as wide as their tensor travel in long bursts. A run takes
    three cycles, and each burst that ends in it after the first one two more: every step is a short one.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    base
        First word of the memory, added to every offset.
    i
        Runs.
    held_back
        No run will come before what was asked for has been moved: do not wait to see whether the next one joins.
    may_issue
        A burst may leave; low, none is offered, but one on offer stays.
    issued
        A burst goes on offer in the next cycle.
    issued_last
        It is the last of its instruction.
    o
        Bursts, `LATENCY` cycles after their last run at the earliest.
    """

    LATENCY = 3

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        block_bits = exact_log2(params.axi_burst)
        super().__init__(
            {
                "base": In(word_address_bits(params)),
                "i": In(stream.Signature(memory_run_layout(params))),
                "held_back": In(1),
                "may_issue": In(1),
                "issued": Out(1),
                "issued_last": Out(1),
                "o": Out(stream.Signature(burst_layout(params))),
            }
        )
        self._block = Signal(len(self.base) - block_bits, reset_less=True)
        """The block of the burst that is being gathered."""
        self._first = Signal(block_bits, reset_less=True)
        """Its first word's place in the block."""
        self._at = Signal(block_bits, reset_less=True)
        """Where in the block the run goes on."""
        self._words = Signal(RUN_BITS, reset_less=True)
        """Words of the run from there on."""
        self._end = Signal(RUN_BITS + 1, reset_less=True)
        """The run's end, in words from the block's start on."""
        self._last = Signal()
        """The run is the last of its instruction."""
        self._full, self._beyond = Signal(), Signal()
        """The run fills the block; it goes on behind it."""
        self._open, self._close = Signal(), Signal()
        """A burst has been begun that may go on with the next run; it will not."""

    @staticmethod
    def model(base: int, runs: Iterable[Mapping[str, int]], params: HardwareParams) -> Iterator[tuple[int, int, bool]]:
        """Every burst's first word, its beats, and whether it is the last of its instruction, if none is held back.

        Held back, bursts may end with any run.
        """
        words: list[int] = []
        for run in runs:
            if words and not run["joins"]:
                yield words[0], len(words), False
                words = []
            first = words[-1] + 1 if words else base + run["offset"]
            for number in range(run["words"]):
                words.append((first + number) % (1 << word_address_bits(params)))
                last = run["last"] and number == run["words"] - 1
                if last or (words[-1] + 1) % params.axi_burst == 0:
                    yield words[0], len(words), bool(last)
                    words = []

    def elaborate(self, platform: object) -> Module:
        """Take a run, see where in the block it ends, then offer a burst, or wait for a run that joins."""
        m = Module()
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.FSM() as fsm:
            with m.State("TAKE"):
                self._take(m)
            with m.State("MEASURE"):
                self._measure(m)
                m.next = "DECIDE"
            with m.State("DECIDE"):
                with m.If(self.issued):
                    m.next = "TAKE"
                    with m.If(self._beyond):
                        m.next = "MEASURE"
                with m.Elif(~(self._full | self._last | self._close)):
                    m.d.sync += self._open.eq(1)
                    m.next = "TAKE"
        whole = self._full | self._last | self._close
        m.d.comb += self.issued.eq(fsm.ongoing("DECIDE") & whole & self.may_issue & ~self.o.valid)
        self._offer(m)
        return m

    def _take(self, m: Module) -> None:
        """A run, unless the burst that is open has to go first."""
        start = (self.base + self.i.payload.offset)[: len(self.base)]
        blocked = self._open & ~self.i.payload.joins
        m.d.comb += self.i.ready.eq(~blocked)
        m.d.sync += [
            self._words.eq(self.i.payload.words),
            self._last.eq(self.i.valid & self.i.payload.last & ~blocked),
            self._close.eq(blocked | ~self.i.valid),
        ]
        with m.If(self._open):
            m.d.sync += self._at.eq(self._end)
        with m.Else():
            m.d.sync += [Cat(self._first, self._block).eq(start), self._at.eq(start)]
        with m.If(self.i.valid & ~blocked):
            m.next = "MEASURE"
        with m.Elif(self._open & (self.i.valid | self.held_back)):
            m.next = "DECIDE"

    def _measure(self, m: Module) -> None:
        end = self._words + self._at
        low, beyond = end[: len(self._at)], end[len(self._at) + 1 :]
        m.d.sync += [
            self._end.eq(end),
            self._full.eq(end[len(low) :].any()),
            self._beyond.eq(beyond.any() | (end[len(low)] & low.any())),
        ]

    def _offer(self, m: Module) -> None:
        """The burst as far as the run or the block goes; what is left of the run begins the next block."""
        low, blocks = self._end[: len(self._at)], self._end[len(self._at) :]
        burst = Signal(burst_layout(self._params), reset_less=True)
        m.d.comb += [self.issued_last.eq(self._last & ~self._beyond), self.o.payload.eq(burst)]
        with m.If(self.issued):
            m.d.sync += [
                self.o.valid.eq(1),
                burst.addr.eq(Cat(self._first, self._block)),
                burst.beats_less_one.eq((Mux(self._full, 0, low) + ~self._first)[: len(low)]),
                burst.last.eq(self.issued_last),
                self._block.eq(self._block + 1),
                self._first.eq(0),
                self._at.eq(0),
                self._words.eq(Cat(low, blocks - 1)),
                self._open.eq(0),
                self._full.eq(0),
                self._beyond.eq(0),
                self._close.eq(0),
            ]
