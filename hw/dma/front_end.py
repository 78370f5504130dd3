"""The common front end of load and store: from an instruction to memory bursts and local addresses."""

from collections.abc import Iterator
from itertools import product

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.decode import instruction_layout
from intloom.hw.dma.address_walker import AddressWalker, local_address_layout
from intloom.hw.dma.bursts import BurstSplitter, burst_layout
from intloom.hw.dma.runs import RunWalker, local_run_layout
from intloom.hw.ports import UnitPort, WindowPort
from intloom.hw.spec.isa import COUNT_BITS, Instruction, Kind
from intloom.hw.spec.params import HardwareParams


class MoveFrontEnd(wiring.Component):
    """Decomposes LOAD and STORE instructions into memory bursts and local addresses.

    Bursts and addresses are decoupled: bursts run ahead of their data. The bursts of the next instruction follow those
    of the previous one without waiting for its data, so short transfers hide each other's latency.

    Parameters
    ----------
    params
        The accelerator's parameters.
    kind
        LOAD or STORE: the layout of the instruction.

    Members
    -------
    valid, instruction, index, ready
        Instructions, as on `UnitPort`.
    window
        The memory that may be addressed.
    halt
        Accept no instruction and issue no burst.
    issue_enable
        A burst may issue.
    issued, issued_last
        A burst issues; it is the last of its instruction.
    outside, outside_index
        A burst has a word outside the window; its instruction.
    bursts
        Memory bursts.
    addresses
        Local address of each word.

    Handshake
    ---------
    `bursts` and `addresses` are streams; neither waits for the other as long as fewer than `runs_in_flight` runs lie
    between them. A burst that is offered stays offered during `halt`. `issued` is a pulse 1 cycle before
    `bursts.valid`.

    Timing
    ------
    The latencies of `RunWalker`, `BurstSplitter` and `AddressWalker` add up; the FIFO between the walkers adds
    `CreditFifo.LATENCY`. Up to one word address per cycle; a run every 2 cycles, or every 3 with its burst.

    Requirements
    ------------
    Every burst with an `issued` pulse is completed on the bus.

    Reset and faults
    ----------------
    Reset drops all runs, so it is allowed only when no burst is outstanding. `outside` stays high until reset: the unit
    raises the fault.
    """

    def __init__(self, params: HardwareParams, kind: Kind) -> None:
        self._params = params
        self._kind = kind
        unit = UnitPort().members
        super().__init__(
            {
                **{name: unit[name].flip() for name in ("valid", "instruction", "index", "ready")},
                "window": In(WindowPort(params)),
                "halt": In(1),
                "issue_enable": In(1),
                "issued": Out(1),
                "issued_last": Out(1),
                "outside": Out(1),
                "outside_index": Out(COUNT_BITS),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "addresses": Out(stream.Signature(local_address_layout(params))),
            }
        )

    @staticmethod
    def model(move: Instruction) -> Iterator[tuple[int, int]]:
        """Yield for each word of a transfer that is not coded, in order, its offset in memory and its local address."""
        for p2, p1, p0 in product(range(move["n2"]), range(move["n1"]), range(move["n0"])):
            yield (
                move["dram"] + p2 * move["dram_s2"] + p1 * move["dram_s1"] + p0,
                move["local"] + p2 * move["local_s2"] + p1 * move["local_s1"] + p0,
            )

    def elaborate(self, platform: object) -> Module:
        """Runs go to the burst splitter and, through a FIFO, to the address walker."""
        m = Module()
        m.submodules.runs = runs = RunWalker(self._params)
        m.submodules.splitter = splitter = BurstSplitter(self._params)
        m.submodules.local_runs = local_runs = CreditFifo(local_run_layout(self._params), self._params.runs_in_flight)
        m.submodules.addresses = addresses = AddressWalker(self._params)
        self._take(m, runs)
        wiring.connect(m, wiring.flipped(self.window), splitter.window)
        wiring.connect(m, splitter.o, wiring.flipped(self.bursts))
        wiring.connect(m, local_runs.o, addresses.i)
        wiring.connect(m, addresses.o, wiring.flipped(self.addresses))
        m.d.comb += [
            splitter.i.payload.eq(runs.o.payload.memory),
            splitter.i.valid.eq(runs.o.valid & local_runs.credit_available),
            # Runs leave this FIFO only with their data. If it is full, the splitter must not wait for another run: the
            # burst that it holds open may be the one whose data makes space.
            splitter.flush.eq(~local_runs.credit_available),
            local_runs.word.eq(runs.o.payload.local),
            local_runs.push.eq(runs.o.valid & runs.o.ready),
            local_runs.take_credit.eq(local_runs.push),
            # Splitter and FIFO take a run in the same cycle, so memory side and local side never get out of step.
            runs.o.ready.eq(local_runs.credit_available & splitter.i.ready),
            splitter.issue_enable.eq(self.issue_enable & ~self.halt),
            self.issued.eq(splitter.issued),
            self.issued_last.eq(splitter.issued_last),
            self.outside.eq(splitter.outside),
        ]
        # The splitter takes no run between the last one of a burst and the burst's issue.
        with m.If(runs.o.valid & runs.o.ready):
            m.d.sync += self.outside_index.eq(runs.o.payload.local.index)
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
        if self._params.constant_check and self._kind is Kind.LOAD:
            m.d.comb += move.checked.eq(instruction.crc.any())
