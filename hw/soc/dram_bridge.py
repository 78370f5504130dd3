"""Bridge from the CPU's Wishbone buses to AXI4 memory."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from intloom.hw.bus.axi4 import Axi4, drive_address
from intloom.hw.soc.wishbone import DATA_BITS, LINE_BYTES, CycleType, Wishbone
from intloom.hw.spec.params import HardwareParams


class DramBridge(wiring.Component):
    """Executes the CPU's memory accesses, one at a time: cache lines and single words as read bursts, posted writes.

    Parameters
    ----------
    params
        The accelerator's parameters: address width and width of a beat.

    Members
    -------
    data, fetch
        The CPU's data bus and instruction bus. `data` has priority.
    memory
        AXI4 master; its beats carry as many bytes as the accelerator's.
    idle
        Every write has its response.
    error
        A response was an error, for 1 cycle.

    Handshake
    ---------
    Wishbone and AXI4. A write is acknowledged when address and data are taken; a read waits until all writes have
    their responses. The response to writes is always taken at once.

    Timing
    ------
    From a read's first cycle to the AXI address: 1 cycle, if the bridge is idle. Read data pass in the same cycle,
    4 bytes per cycle. A write takes at least 2 cycles.

    Requirements
    ------------
    A burst starts at the first word of a cache line. `fetch` only reads.

    Reset and faults
    ----------------
    Reset ends the access in progress; memory must be reset with it. An error response ends the access like
    a good one and gives `error`; for a write this is after its acknowledgment.
    """

    OUTSTANDING = 15
    """Writes without a response at most."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._pieces = params.axi_data_bits // DATA_BITS
        super().__init__(
            {
                "data": In(Wishbone()),
                "fetch": In(Wishbone()),
                "memory": Out(Axi4(params.axi_addr_bits, params.axi_data_bits)),
                "idle": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One FSM for both buses, and a count of outstanding writes."""
        m = Module()
        fetching = Signal()
        piece = Signal(ceil_log2(self._pieces))
        read = Array([self.memory.r.payload.data.word_select(i, DATA_BITS) for i in range(self._pieces)])[piece]
        m.d.comb += [self.data.dat_r.eq(read), self.fetch.dat_r.eq(read)]
        outstanding = Signal(range(self.OUTSTANDING + 1))
        m.d.comb += self.idle.eq(outstanding == 0)
        with m.FSM(name="access"):
            with m.State("IDLE"):
                with m.If(self.data.cyc & self.data.stb):
                    m.d.sync += fetching.eq(0)
                    with m.If(~self.data.we):
                        m.next = "READ_ADDRESS"
                    with m.Elif(outstanding != self.OUTSTANDING):
                        m.next = "WRITE"
                with m.Elif(self.fetch.cyc & self.fetch.stb):
                    m.d.sync += fetching.eq(1)
                    m.next = "READ_ADDRESS"
            self._read(m, fetching, piece)
            with m.State("WRITE"):
                self._write(m)
        self._count_writes(m, outstanding)
        return m

    def _beat(self, adr: Value) -> Value:
        """The beat of a Wishbone address; a beat may have 4 bytes."""
        return adr[exact_log2(self._params.beat_bytes * 8 // DATA_BITS) :]

    def _read(self, m: Module, fetching: Signal, piece: Signal) -> None:
        """The states of a read: address, then the 4-byte pieces of every beat."""
        beat_bytes = self._params.beat_bytes
        adr = Mux(fetching, self.fetch.adr, self.data.adr)
        line = Mux(fetching, self.fetch.cti, self.data.cti) == CycleType.INCREMENTING
        # In a burst the piece is counted: the master's address may follow the data by a cycle.
        left = Signal(range(LINE_BYTES * 8 // DATA_BITS))
        beats_less_one = Mux(line, LINE_BYTES // beat_bytes - 1, 0)
        with m.State("READ_ADDRESS"):
            m.d.comb += self.memory.ar.valid.eq(self.idle)
            m.d.comb += list(
                drive_address(self.memory.ar.payload, self._beat(adr), beats_less_one, beat_bytes, self._params)
            )
            m.d.sync += [
                left.eq(Mux(line, LINE_BYTES * 8 // DATA_BITS - 1, 0)),
                piece.eq(adr[: len(piece)]),
            ]
            with m.If(self.memory.ar.valid & self.memory.ar.ready):
                m.next = "READ_DATA"
        r = self.memory.r
        with m.State("READ_DATA"):
            # A port that is wider than a word carries a word in each beat.
            last = beat_bytes * 8 // DATA_BITS - 1
            m.d.comb += r.ready.eq((left == 0) | (piece & last == last))
            with m.If(r.valid):
                m.d.comb += [self.fetch.ack.eq(fetching), self.data.ack.eq(~fetching)]
                m.d.sync += [left.eq(left - 1), piece.eq(piece + 1)]
                with m.If(left == 0):
                    m.next = "IDLE"

    def _write(self, m: Module) -> None:
        """The state of a write: address and data are taken in either order."""
        aw, w = self.memory.aw, self.memory.w
        address_taken, data_taken = Signal(), Signal()
        m.d.comb += [
            aw.valid.eq(~address_taken),
            w.valid.eq(~data_taken),
            w.payload.last.eq(1),
            w.payload.data.eq(Cat(*[self.data.dat_w] * self._pieces)),
            w.payload.strb.eq(self.data.sel << (self.data.adr[: ceil_log2(self._pieces)] << 2)),
            *drive_address(aw.payload, self._beat(self.data.adr), C(0, 8), self._params.beat_bytes, self._params),
        ]
        m.d.sync += [address_taken.eq(address_taken | aw.ready), data_taken.eq(data_taken | w.ready)]
        with m.If((address_taken | aw.ready) & (data_taken | w.ready)):
            m.d.comb += self.data.ack.eq(1)
            m.d.sync += [address_taken.eq(0), data_taken.eq(0)]
            m.next = "IDLE"

    def _count_writes(self, m: Module, outstanding: Signal) -> None:
        b = self.memory.b
        sent = self.data.ack & self.data.we
        m.d.comb += b.ready.eq(1)
        m.d.sync += outstanding.eq(outstanding + sent - b.valid)
        r = self.memory.r
        m.d.comb += self.error.eq((b.valid & _failed(b)) | (r.valid & r.ready & _failed(r)))


def _failed(channel: stream.Interface) -> Value:
    """Whether a response is SLVERR or DECERR."""
    failed: Value = channel.payload.resp[1]
    return failed
