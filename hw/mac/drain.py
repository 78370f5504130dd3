"""The drain: reads finished strips out of the accumulators, and the residual operand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.buffer import StreamBuffer
from hw.mac.epilogue import TAG
from hw.mac.jobs import DRAIN_JOB
from hw.mac.walker import OutputWalker
from hw.ports import READ_LATENCY, ReadPort
from hw.spec.isa import COUNT_BITS, TableUse
from hw.spec.params import HardwareParams


class Drain(wiring.Component):
    """One item, a group of `lanes` sums of a pixel, a cycle.

    An item goes out when its strip and its block's parameters are there, `room` is left behind the epilogue, and its
    residual read is taken. An instruction with residual, or after one, waits until the epilogue is `empty`.

    Members
    -------
    jobs:
        One an instruction.
    run:
        Low: no new item from the next cycle but one on, but a residual read that was offered is still offered.
    strip_ready, strip_length:
        Another strip has sums to read: pixel n can be read n cycles from now.
    bank_released:
        The last sum of a strip is read in this cycle.
    channels_loaded, channels_released:
        A block's parameters are complete; they are no longer needed by items still to come.
    room, empty:
        The epilogue's results will find a place, those of two more items after the last one counted; nothing is under
        way in it.
    residual:
        Read port of the residual operand.
    item, groups, address, group, tag, channel_set:
        The item, for accumulators and epilogue.
    residual_arrived, residual_bytes:
        The operand of an item that went out `READ_LATENCY` cycles ago.
    activate, table_switched:
        The residual constants, the other table are in use from this cycle's item on.
    fault_index:
        The instruction at work.
    """

    LATENCY = 2
    """Cycles from a job taken to its first item, when all that it waits for is there."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._groups = params.cols // params.lanes
        super().__init__(
            {
                "jobs": In(stream.Signature(DRAIN_JOB)),
                "run": In(1),
                "strip_ready": In(1),
                "strip_length": In(params.strip.bit_length()),
                "bank_released": Out(1),
                "channels_loaded": In(1),
                "channels_released": Out(1),
                "room": In(1),
                "empty": In(1),
                "residual": Out(ReadPort(params.word_bytes)),
                "item": Out(1),
                "groups": Out(self._groups),
                "address": Out(params.strip.bit_length()),
                "group": Out(range(self._groups)),
                "tag": Out(TAG),
                "channel_set": Out(1),
                "residual_arrived": Out(1),
                "residual_bytes": Out(data.ArrayLayout(8, params.lanes)),
                "activate": Out(1),
                "shift": Out(6),
                "even": Out(1),
                "table_switched": Out(1),
                "fault_index": Out(COUNT_BITS),
            }
        )

    @staticmethod
    def model(
        jobs: Iterable[Mapping[str, int]], lengths: Iterable[int], params: HardwareParams
    ) -> Iterator[dict[str, int]]:
        """Each item in order, from strips of these lengths: its tag and outputs, and word and byte of its operand."""
        strips = iter(lengths)
        bank, table_set, channel_set = 1, 0, 0
        length = number = 0
        for job in jobs:
            table_set ^= job["table"] == TableUse.LOAD
            walk = {name: job[name] for name in ("out_h", "out_w")} | {"blocks": job["out_blocks"], "x": 1, "byte": 0}
            walk |= {name: job[f"res_{name}"] for name in ("base", "plane", "row")}
            for item, place in enumerate(OutputWalker.model(walk, params)):
                if number == length:
                    length, number, bank = next(strips), 0, bank ^ 1
                yield {
                    "zp_out": job["zp_out"],
                    "use_table": job["table"] != TableUse.NONE,
                    "table_set": table_set,
                    "residual": job["residual"],
                    "address": bank * params.strip + number,
                    "group": place["group"],
                    "channel_set": channel_set,
                    "bank_released": place["pixel_end"] and number == length - 1,
                    "channels_released": place["block_end"],
                    "activate": item == 0 and job["residual"],
                    "shift": job["res_shift"],
                    "even": job["res_even"],
                    "fault_index": job["index"],
                    "word": place["address"],
                    "byte": place["byte"],
                }
                number += place["pixel_end"]
                channel_set ^= place["block_end"]

    def elaborate(self, platform: object) -> Module:
        """A walker over the output, with the residual operand's addresses, and counters of what is there."""
        m = Module()
        m.submodules.walker = walker = OutputWalker(self._params)
        job = Signal(DRAIN_JOB, reset_less=True)
        walking = Signal()
        places = self._places(m, walker, walking)
        active, place = places.valid, places.payload
        self._begin(m, walker, walking, active, job)
        strip_there = self._strips(m, place)
        blocks_there = self._blocks(m, place)
        # Known a cycle before, like all that an item waits for but the scratchpad.
        goes_on = Signal()
        m.d.sync += goes_on.eq(self.run & self.room)
        wanted = Signal()
        offered = Signal()
        m.d.comb += [
            wanted.eq(active & strip_there & blocks_there & (goes_on | offered)),
            self.residual.valid.eq(wanted & job.residual),
            self.residual.addr.eq(place.address),
            self.item.eq(wanted & (self.residual.ready | ~job.residual)),
            self.groups.eq(self.item << place.group),
            self.group.eq(place.group),
            self.fault_index.eq(job.index),
        ]
        m.d.sync += offered.eq(self.residual.valid & ~self.residual.ready)
        self._residual(m, job, walker.start, place.byte)
        return m

    def _places(self, m: Module, walker: OutputWalker, walking: Signal) -> stream.Interface:
        """The items' places, in a buffer: the scratchpad looks at their addresses, and no grant reaches the walker."""
        names = ("address", "byte", "group", "pixel_end", "block_end", "last")
        layout = data.StructLayout({name: getattr(walker, name).shape() for name in names})
        m.submodules.places = places = StreamBuffer(layout)
        m.d.comb += [
            places.i.valid.eq(walking),
            *(places.i.payload[name].eq(getattr(walker, name)) for name in names),
            walker.step.eq(walking & places.i.ready),
            places.o.ready.eq(self.item),
        ]
        return places.o

    def _begin(
        self,
        m: Module,
        walker: OutputWalker,
        walking: Signal,
        active: Signal,
        job: data.View[data.StructLayout],
    ) -> None:
        """Take a job when the last one's items are out; keep residual and other instructions apart."""
        offered = self.jobs.payload
        apart = Signal()
        m.d.comb += [
            apart.eq(offered.residual | job.residual),
            self.jobs.ready.eq(~active & ~walking & (self.empty | ~apart)),
            walker.start.eq(self.jobs.valid & self.jobs.ready),
            walker.walk.out_h.eq(offered.out_h),
            walker.walk.out_w.eq(offered.out_w),
            walker.walk.blocks.eq(offered.out_blocks),
            walker.walk.base.eq(offered.res_base),
            walker.walk.plane.eq(offered.res_plane),
            walker.walk.row.eq(offered.res_row),
            walker.walk.x.eq(1),
            self.tag.zp_out.eq(job.zp_out),
            self.tag.use_table.eq(job.table != TableUse.NONE),
            self.tag.residual.eq(job.residual),
            self.table_switched.eq(walker.start & (offered.table == TableUse.LOAD)),
            self.shift.eq(job.res_shift),
            self.even.eq(job.res_even),
        ]
        with m.If(walker.start):
            m.d.sync += [walking.eq(1), job.eq(offered)]
        with m.Elif(walker.step & walker.last):
            m.d.sync += walking.eq(0)
        with m.If(self.table_switched):
            m.d.sync += self.tag.table_set.eq(~self.tag.table_set)

    def _strips(self, m: Module, place: data.View[data.StructLayout]) -> Value:
        """Pixel number in the strip; both banks' strips may be waiting."""
        bits = self._params.strip.bit_length()
        lengths = Signal(data.ArrayLayout(bits, 2), reset_less=True)
        waiting = Signal(range(3))
        arriving, bank = Signal(), Signal()
        number = Signal(bits)
        last = number == lengths[bank] - 1
        with m.If(self.strip_ready):
            m.d.sync += [lengths[arriving].eq(self.strip_length), arriving.eq(~arriving)]
        m.d.sync += waiting.eq(waiting + self.strip_ready - self.bank_released)
        m.d.comb += self.bank_released.eq(self.item & place.pixel_end & last)
        with m.If(self.item & place.pixel_end):
            m.d.sync += number.eq(number + 1)
            with m.If(last):
                m.d.sync += [number.eq(0), bank.eq(~bank)]
        m.d.comb += [self.address[:-1].eq(number), self.address[-1].eq(bank)]
        return waiting != 0

    def _blocks(self, m: Module, place: data.View[data.StructLayout]) -> Value:
        """Blocks whose parameters are there."""
        loaded = Signal(range(3))
        m.d.comb += self.channels_released.eq(self.item & place.block_end)
        m.d.sync += loaded.eq(loaded + self.channels_loaded - self.channels_released)
        with m.If(self.channels_released):
            m.d.sync += self.channel_set.eq(~self.channel_set)
        return loaded != 0

    def _residual(self, m: Module, job: data.View[data.StructLayout], start: Value, byte: Value) -> None:
        """Constants are activated with the first item, since they are complete when its parameters are."""
        first = Signal()
        with m.If(start):
            m.d.sync += first.eq(1)
        with m.Elif(self.item):
            m.d.sync += first.eq(0)
        m.d.comb += self.activate.eq(self.item & first & job.residual)
        taken = Signal(data.StructLayout({"valid": 1, "byte": range(self._params.rows)}))
        m.d.comb += [taken.valid.eq(self.item & job.residual), taken.byte.eq(byte)]
        for number in range(READ_LATENCY):
            after = Signal.like(taken, name=f"taken{number + 1}")
            m.d.sync += after.eq(taken)
            taken = after
        lanes = self._params.lanes
        byte_bits = (lanes - 1).bit_length()
        word = self.residual.data.word_select(taken.byte >> byte_bits, 8 * lanes)
        m.d.comb += [self.residual_arrived.eq(taken.valid), self.residual_bytes.eq(word)]
