"""The writer: puts result bytes into their output words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.jobs import WRITE_JOB
from intloom.hw.mac.walker import OutputWalker
from intloom.hw.ports import WritePort
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams


def _write_layout(params: HardwareParams) -> data.StructLayout:
    """A write, the bytes of its group once, and the instruction that makes it."""
    results = data.ArrayLayout(8, params.lanes)
    return data.StructLayout({"addr": SCRATCH_BITS, "bytes": results, "mask": params.word_bytes, "index": COUNT_BITS})


class Writer(wiring.Component):
    """One group of `lanes` bytes a cycle.

    Members
    -------
    jobs:
        One an instruction.
    run:
        Low: offer no new write.
    results:
        Bytes, in the walker's order.
    drain:
        Write port.
    done:
        All writes of an instruction are visible; high for one cycle each.
    pending:
        A write was offered and not taken.
    fault, fault_index:
        A write was outside the memory, and the instruction that made it.
    """

    LATENCY = 1
    """Cycles from a result taken to its write on offer, and from an instruction's last write taken to `done`."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "jobs": In(stream.Signature(WRITE_JOB)),
                "run": In(1),
                "results": In(stream.Signature(data.ArrayLayout(8, params.lanes))),
                "drain": Out(WritePort(params.word_bytes)),
                "done": Out(1),
                "pending": Out(1),
                "fault": Out(1),
                "fault_index": Out(COUNT_BITS),
            }
        )

    @staticmethod
    def model(
        job: Mapping[str, int], results: Iterable[bytes], params: HardwareParams
    ) -> Iterator[tuple[int, bytes, int]]:
        """The writes of an instruction's results, in order: address, data, mask. A group stands in all its places."""
        walk = {name: job[name] for name in ("out_h", "out_w")} | {"blocks": job["out_blocks"], "byte": job["out_lane"]}
        walk |= {name: job[f"out_{name}"] for name in ("base", "plane", "row", "x")}
        for place, result in zip(OutputWalker.model(walk, params), results, strict=True):
            mask = sum(1 << place["byte"] + lane for lane in range(params.lanes))
            yield place["address"], result * (params.word_bytes // params.lanes), mask

    def elaborate(self, platform: object) -> Module:
        """A walker for addresses, and an output register."""
        m = Module()
        m.submodules.walker = walker = OutputWalker(self._params)
        last, index = Signal(), Signal(COUNT_BITS, reset_less=True)
        place, at = Signal(_write_layout(self._params), reset_less=True), walker.o.payload
        copies = self._params.word_bytes // self._params.lanes
        taken, joins = self.drain.valid & self.drain.ready, Signal()
        self._begin(m, walker, index)
        with m.If(taken):
            m.d.sync += self.drain.valid.eq(0)
        m.d.sync += self.done.eq(taken & last)
        m.d.comb += [
            self.results.ready.eq(walker.o.valid & self.run & (~self.drain.valid | self.drain.ready)),
            joins.eq(self.results.valid & self.results.ready),
            walker.o.ready.eq(joins),
            self.pending.eq(self.drain.valid),
            self.fault.eq(taken & self.drain.fault),
            self.drain.addr.eq(place.addr),
            self.drain.data.eq(Cat(place.bytes).replicate(copies)),
            self.drain.mask.eq(place.mask),
            self.fault_index.eq(place.index),
        ]
        with m.If(joins):
            m.d.sync += [
                self.drain.valid.eq(1),
                place.addr.eq(at.address),
                place.bytes.eq(self.results.payload),
                place.mask.eq(((1 << self._params.lanes) - 1) << at.byte),
                place.index.eq(index),
                last.eq(at.last),
            ]
        return m

    def _begin(self, m: Module, walker: OutputWalker, index: Signal) -> None:
        offered = self.jobs.payload
        # The job goes to registers that lie far apart.
        start = Signal()
        m.d.sync += start.eq(self.jobs.valid & ~start & ~walker.active)
        m.d.comb += [
            self.jobs.ready.eq(start),
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
