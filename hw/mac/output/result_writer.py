"""Result writer: writes result bytes into their output words."""

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.issue.descriptors import WRITE_DESCRIPTOR
from intloom.hw.mac.output.output_walker import OutputWalker
from intloom.hw.ports import WritePort
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams


def _write_layout(params: HardwareParams) -> data.StructLayout:
    """A write, the bytes of its group once, and the instruction that makes it."""
    results = data.ArrayLayout(8, params.lanes)
    return data.StructLayout({"addr": SCRATCH_BITS, "bytes": results, "mask": params.word_bytes, "index": COUNT_BITS})


class ResultWriter(wiring.Component):
    """Writes one group of `lanes` bytes a cycle, under a byte mask.

    Members
    -------
    descriptors:
        One per instruction.
    run:
        Low: offer no new write.
    results:
        Groups of bytes, in the output walker's order.
    port:
        Scratchpad write port.
    done:
        Pulse: all writes of an instruction are visible.
    pending:
        A write waits for its grant.
    fault, fault_index:
        Pulse: a write was outside the memory, and its instruction.

    Handshake
    ---------
    `descriptors` and `results` are streams. `port.valid` holds with its payload until the grant, also while `run` is
    low.

    Timing
    ------
    One group a cycle while the port grants. From a result taken to its write, and from an instruction's last write
    granted to `done`: `LATENCY` = 1 cycle each.

    Requirements
    ------------
    Results come in the order of the descriptors.

    Reset and faults
    ----------------
    Soft reset drops the write and the walk. A write outside the memory is granted and dropped and pulses `fault`.
    """

    LATENCY = 1
    """Cycles from a result taken to its write, and from an instruction's last write granted to `done`."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "descriptors": In(stream.Signature(WRITE_DESCRIPTOR)),
                "run": In(1),
                "results": In(stream.Signature(data.ArrayLayout(8, params.lanes))),
                "port": Out(WritePort(params.word_bytes)),
                "done": Out(1),
                "pending": Out(1),
                "fault": Out(1),
                "fault_index": Out(COUNT_BITS),
            }
        )

    @staticmethod
    def model(
        descriptor: Mapping[str, int], results: Iterable[bytes], params: HardwareParams
    ) -> Iterator[tuple[int, bytes, int]]:
        """The writes of an instruction's results in order: address, data, mask. Data repeats the group in all lanes."""
        walk = {name: descriptor[name] for name in ("out_h", "out_w")} | {
            "blocks": descriptor["out_blocks"],
            "byte": descriptor["out_lane"],
        }
        walk |= {name: descriptor[f"out_{name}"] for name in ("base", "plane", "row", "x")}
        for write, result in zip(OutputWalker.model(walk, params), results, strict=True):
            mask = sum(1 << write["byte"] + lane for lane in range(params.lanes))
            yield write["address"], result * (params.word_bytes // params.lanes), mask

    def elaborate(self, platform: object) -> Module:
        """An output walker for addresses, and an output register."""
        m = Module()
        m.submodules.walker = walker = OutputWalker(self._params)
        last, index = Signal(), Signal(COUNT_BITS, reset_less=True)
        write, position = Signal(_write_layout(self._params), reset_less=True), walker.o.payload
        copies = self._params.word_bytes // self._params.lanes
        taken, fire = self.port.valid & self.port.ready, Signal()
        self._start(m, walker, index)
        with m.If(taken):
            m.d.sync += self.port.valid.eq(0)
        # One cycle after the grant: from then on a read returns the new bytes.
        m.d.sync += self.done.eq(taken & last)
        m.d.comb += [
            self.results.ready.eq(walker.o.valid & self.run & (~self.port.valid | self.port.ready)),
            fire.eq(self.results.valid & self.results.ready),
            walker.o.ready.eq(fire),
            self.pending.eq(self.port.valid),
            self.fault.eq(taken & self.port.fault),
            self.port.addr.eq(write.addr),
            # The mask selects the lane: repeating the group needs no shifter.
            self.port.data.eq(Cat(write.bytes).replicate(copies)),
            self.port.mask.eq(write.mask),
            self.fault_index.eq(write.index),
        ]
        with m.If(fire):
            m.d.sync += [
                self.port.valid.eq(1),
                write.addr.eq(position.address),
                write.bytes.eq(self.results.payload),
                write.mask.eq(((1 << self._params.lanes) - 1) << position.byte),
                write.index.eq(index),
                last.eq(position.last),
            ]
        return m

    def _start(self, m: Module, walker: OutputWalker, index: Signal) -> None:
        offered = self.descriptors.payload
        # Registered: the start pulse has a long route to all descriptor registers.
        start = Signal()
        m.d.sync += start.eq(self.descriptors.valid & ~start & ~walker.active)
        m.d.comb += [
            self.descriptors.ready.eq(start),
            walker.start.eq(start),
            walker.walk.out_h.eq(offered.out_h),
            walker.walk.out_w.eq(offered.out_w),
            walker.walk.blocks.eq(offered.out_blocks),
            walker.walk.base.eq(offered.out_base),
            walker.walk.plane.eq(offered.out_plane),
            walker.walk.row.eq(offered.out_row),
            walker.walk.x.eq(offered.out_x),
            walker.walk.byte.eq(offered.out_lane),
        ]
        with m.If(start):
            m.d.sync += index.eq(offered.index)
