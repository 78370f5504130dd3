"""Splits runs into AXI bursts and merges contiguous runs."""

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import LENGTH_BITS
from intloom.hw.dma.runs import RUN_BITS, memory_run_layout, word_address_bits
from intloom.hw.ports import WindowPort
from intloom.hw.spec.params import HardwareParams


def burst_layout(params: HardwareParams) -> data.StructLayout:
    """A burst of `beats_less_one + 1` beats from word `addr` on; `last` marks the final burst of its instruction."""
    return data.StructLayout({"addr": word_address_bits(params), "beats_less_one": LENGTH_BITS, "last": 1})


class _State:
    """Registers of the splitter: the open burst, the current run, and what is known about both."""

    def __init__(self, params: HardwareParams) -> None:
        self.block_bits = block_bits = exact_log2(params.burst_words)
        self.block = Signal(word_address_bits(params) - block_bits, reset_less=True)
        """The block of the open burst."""
        self.first = Signal(block_bits, reset_less=True)
        """Offset of the burst's first word in the block."""
        self.at = Signal(block_bits, reset_less=True)
        """Offset in the block at which the run continues."""
        self.words = Signal(RUN_BITS, reset_less=True)
        """Words of the run from there on."""
        self.end = Signal(RUN_BITS + 1, reset_less=True)
        """End of the run, in words from the start of the block."""
        self.last = Signal()
        """The run is the last of its instruction."""
        self.full, self.beyond = Signal(), Signal()
        """The run reaches the end of the block; it continues in the next block."""
        self.open, self.close = Signal(), Signal()
        """The burst may be extended by the next run; it must issue before the next run."""
        self.above, self.below, self.edge = Signal(), Signal(), Signal()
        """The burst starts at or after the window's base; its block ends before the window's end; the window ends in
        its block."""


class BurstSplitter(wiring.Component):
    """Converts runs into INCR bursts of at most `burst_words` words that never cross a 4 KiB boundary.

    Memory is divided into aligned blocks of `burst_words` words; a burst stays inside one block. A run that is
    contiguous with the previous one extends the open burst, so rows as wide as their tensor become long bursts.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    window
        The memory that may be addressed. Its base is added to every offset.
    i
        Runs.
    flush
        No run will arrive until issued bursts have been moved: issue the open burst without waiting for another run.
    issue_enable
        A burst may issue.
    issued, issued_last
        A burst issues; it is the last of its instruction.
    outside
        The next burst has a word outside the window: it does not issue, and nothing after it.
    o
        Bursts.

    Handshake
    ---------
    `i` and `o` are streams. While `issue_enable` is low no burst issues, but an offered one stays offered. `issued` is
    a pulse 1 cycle before `o.valid`. `outside` stays high until reset.

    Timing
    ------
    From a run's transfer on `i` to the burst that it completes on `o`: `LATENCY` = 3 cycles at least. A run takes 3
    cycles, and each burst that ends in it after the first takes 2 more: add, compare and decide are separate cycles.

    Requirements
    ------------
    `window` is stable while runs arrive, and does not wrap. A run has at least 1 word.

    Reset and faults
    ----------------
    Reset drops the open burst. A user of `outside` raises the fault.
    """

    LATENCY = 3

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "window": In(WindowPort(params)),
                "i": In(stream.Signature(memory_run_layout(params))),
                "flush": In(1),
                "issue_enable": In(1),
                "issued": Out(1),
                "issued_last": Out(1),
                "outside": Out(1),
                "o": Out(stream.Signature(burst_layout(params))),
            }
        )

    @staticmethod
    def model(base: int, runs: Iterable[Mapping[str, int]], params: HardwareParams) -> Iterator[tuple[int, int, bool]]:
        """Yield first word, beats and last flag of each burst, if `flush` is never high and all are in the window.

        With `flush` a burst may end with any run.
        """
        words: list[int] = []
        for run in runs:
            if words and not run["contiguous"]:
                yield words[0], len(words), False
                words = []
            first = words[-1] + 1 if words else base + run["offset"]
            for number in range(run["words"]):
                words.append((first + number) % (1 << word_address_bits(params)))
                last = run["last"] and number == run["words"] - 1
                if last or (words[-1] + 1) % params.burst_words == 0:
                    yield words[0], len(words), bool(last)
                    words = []

    def elaborate(self, platform: object) -> Module:
        """Take a run, compute its end in the block, then issue a burst or wait for a contiguous run."""
        m = Module()
        state = _State(self._params)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.FSM() as fsm:
            with m.State("TAKE"):
                self._take(m, state)
            with m.State("MEASURE"):
                self._measure(m, state)
                m.next = "DECIDE"
            with m.State("DECIDE"):
                with m.If(self.issued):
                    m.next = "TAKE"
                    with m.If(state.beyond):
                        m.next = "MEASURE"
                with m.Elif(~(state.full | state.last | state.close)):
                    m.d.sync += state.open.eq(1)
                    m.next = "TAKE"
        whole = state.full | state.last | state.close
        inside = self._is_inside(m, state)
        # `~o.valid`: an offered burst must not change (AXI4 A3.2.1), although `issue_enable` may fall meanwhile.
        m.d.comb += [
            self.issued.eq(fsm.ongoing("DECIDE") & whole & inside & self.issue_enable & ~self.o.valid),
            self.outside.eq(fsm.ongoing("DECIDE") & whole & ~inside),
        ]
        self._offer(m, state)
        return m

    def _is_inside(self, m: Module, state: _State) -> Value:
        """Whether the burst is inside the window; valid in DECIDE.

        Addresses are compared, not offsets, so that no error in the steps before can lead outside. All but the last
        comparison are made in the cycle before DECIDE, in which the end of the run is added.
        """
        bits = state.block_bits
        end_block, end = self.window.end[bits:], self.window.end[:bits]
        m.d.sync += [
            state.above.eq(Cat(state.first, state.block) >= self.window.base),
            state.below.eq(state.block < end_block),
            state.edge.eq(state.block == end_block),
        ]
        return state.above & (state.below | (state.edge & ~state.full & (state.end[:bits] <= end)))

    def _take(self, m: Module, state: _State) -> None:
        """Take a run, unless the open burst must issue first."""
        start = (self.window.base + self.i.payload.offset)[: len(self.window.base)]
        blocked = state.open & ~self.i.payload.contiguous
        # `i.valid` selects only the next state: it is no clock enable of the wide registers below.
        m.d.comb += self.i.ready.eq(~blocked)
        m.d.sync += [
            state.words.eq(self.i.payload.words),
            state.last.eq(self.i.valid & self.i.payload.last & ~blocked),
            state.close.eq(blocked | ~self.i.valid),
        ]
        with m.If(state.open):
            m.d.sync += state.at.eq(state.end)
        with m.Else():
            m.d.sync += [Cat(state.first, state.block).eq(start), state.at.eq(start)]
        with m.If(self.i.valid & ~blocked):
            m.next = "MEASURE"
        # Without `flush` an open burst could wait for a run that the full run FIFO withholds until this burst's data
        # has moved: a deadlock.
        with m.Elif(state.open & (self.i.valid | self.flush)):
            m.next = "DECIDE"

    def _measure(self, m: Module, state: _State) -> None:
        end = state.words + state.at
        low, beyond = end[: len(state.at)], end[len(state.at) + 1 :]
        m.d.sync += [
            state.end.eq(end),
            state.full.eq(end[len(low) :].any()),
            state.beyond.eq(beyond.any() | (end[len(low)] & low.any())),
        ]

    def _offer(self, m: Module, state: _State) -> None:
        """Offer the burst up to the end of the run or of the block; the rest of the run starts the next block."""
        low, blocks = state.end[: len(state.at)], state.end[len(state.at) :]
        burst = Signal(burst_layout(self._params), reset_less=True)
        m.d.comb += [self.issued_last.eq(state.last & ~state.beyond), self.o.payload.eq(burst)]
        with m.If(self.issued):
            m.d.sync += [
                self.o.valid.eq(1),
                burst.addr.eq(Cat(state.first, state.block)),
                # end - first - 1 in one carry chain, since ~first = -first - 1. The end of a full block is 0 modulo the
                # block.
                burst.beats_less_one.eq((Mux(state.full, 0, low) + ~state.first)[: len(low)]),
                burst.last.eq(self.issued_last),
                state.block.eq(state.block + 1),
                state.first.eq(0),
                state.at.eq(0),
                state.words.eq(Cat(low, blocks - 1)),
                state.open.eq(0),
                state.full.eq(0),
                state.beyond.eq(0),
                state.close.eq(0),
            ]
