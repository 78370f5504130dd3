"""The drain: reads finished strips out of the accumulators, and the residual operand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.epilogue import TAG
from intloom.hw.mac.jobs import DRAIN_JOB
from intloom.hw.mac.walker import OutputWalker
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import READ_LATENCY, ReadPort
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS, TableUse
from intloom.hw.spec.params import HardwareParams


class Drain(wiring.Component):
    """One item, a group of `lanes` sums of a pixel, a cycle.

    An item steps up when its strip and its block's parameters are there and `room` is left behind the epilogue; it goes
    out a cycle later, or when its residual read is taken. An instruction with residual, or after one, waits until the
    epilogue is `empty`.

    Members
    -------
    jobs:
        One an instruction.
    run:
        Low: no new item steps up from the next cycle but one on, but one that has still goes out.
    strip_ready, strip_length:
        Another strip has sums to read: pixel n can be read n cycles from now.
    bank_released:
        The last sum of a strip is read in this cycle.
    channels_loaded, channels_released:
        A block's parameters are complete; they are no longer needed by items still to come.
    room, empty:
        The epilogue's results will find a place, those of three more items after the last one counted; nothing is under
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

    LATENCY = 4
    """Cycles from a job on offer to its first item, when all that it waits for is there."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._groups = params.cols // params.lanes
        self._item = data.StructLayout(
            {
                "address": SCRATCH_BITS,
                "byte": range(params.rows),
                "group": range(self._groups),
                "sums": params.strip.bit_length(),
                "channel_set": 1,
                "strip_end": 1,
                "block_end": 1,
            }
        )
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
        """A walker over the output, with the residual operand's addresses, and counters of what is there.

        What asks the scratchpad comes from registers, and a grant goes no further than to the item that stands there.
        """
        m = Module()
        m.submodules.walker = walker = OutputWalker(self._params)
        job = Signal(DRAIN_JOB, reset_less=True)
        self._enter, self._standing = Signal(), Signal()
        places = walker.o
        self._begin(m, walker, walker.active | self._standing, job)
        there = self._stand(m, job, places.payload, walker.start)
        goes_on = Signal()
        m.d.sync += goes_on.eq(self.run & self.room)
        m.d.comb += [
            self._enter.eq(places.valid & there & goes_on & (~self._standing | self.item)),
            places.ready.eq(self._enter),
        ]
        return m

    def _stand(
        self, m: Module, job: data.View[data.StructLayout], place: data.View[data.StructLayout], start: Signal
    ) -> Value:
        """The item that goes out next, and whether what the one behind it waits for is there."""
        item = Signal(self._item, reset_less=True)
        with m.If(self._enter):
            m.d.sync += [self._standing.eq(1), *(item[name].eq(place[name]) for name in ("address", "byte", "group"))]
        with m.Elif(self.item):
            m.d.sync += self._standing.eq(0)
        strip_there = self._strips(m, place, item)
        blocks_there = self._blocks(m, place, item)
        m.d.comb += [
            self.residual.valid.eq(self._standing & job.residual),
            self.residual.addr.eq(item.address),
            self.item.eq(self._standing & (self.residual.ready | ~job.residual)),
            self.groups.eq(self.item << item.group),
            self.group.eq(item.group),
            self.address.eq(item.sums),
            self.channel_set.eq(item.channel_set),
            self.bank_released.eq(self.item & item.strip_end),
            self.channels_released.eq(self.item & item.block_end),
            self.fault_index.eq(job.index),
        ]
        self._residual(m, job, start, item.byte)
        return strip_there & blocks_there

    def _begin(self, m: Module, walker: OutputWalker, at_work: Value, job: data.View[data.StructLayout]) -> None:
        """Take a job when the last one's items are out; keep residual and other instructions apart.

        What the job goes to lies far apart, so that it is taken stands in a register.
        """
        offered = self.jobs.payload
        apart, start = Signal(), Signal()
        m.d.sync += start.eq(self.jobs.valid & ~start & ~at_work & (self.empty | ~apart))
        m.d.comb += [
            apart.eq(offered.residual | job.residual),
            self.jobs.ready.eq(start),
            walker.start.eq(start),
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
            self.table_switched.eq(start & (offered.table == TableUse.LOAD)),
            self.shift.eq(job.res_shift),
            self.even.eq(job.res_even),
        ]
        with m.If(start):
            m.d.sync += job.eq(offered)
        with m.If(self.table_switched):
            m.d.sync += self.tag.table_set.eq(~self.tag.table_set)

    def _strips(self, m: Module, place: data.View[data.StructLayout], item: data.View[data.StructLayout]) -> Value:
        """Pixel number in the strip; both banks' strips may be waiting."""
        bits = self._params.strip.bit_length()
        finals = Signal(data.ArrayLayout(bits, 2), reset_less=True)
        waiting = Signal(range(3))
        arriving, bank = Signal(), Signal()
        number = Signal(bits)
        last, strip_end = Signal(), Signal()
        m.d.comb += [last.eq(number == finals[bank]), strip_end.eq(place.pixel_end & last)]
        with m.If(self.strip_ready):
            m.d.sync += [finals[arriving].eq(self.strip_length - 1), arriving.eq(~arriving)]
        m.d.sync += waiting.eq(waiting + self.strip_ready - (self._enter & strip_end))
        with m.If(self._enter):
            m.d.sync += [item.sums.eq(Cat(number[:-1], bank)), item.strip_end.eq(strip_end)]
        with m.If(self._enter & place.pixel_end):
            m.d.sync += number.eq(number + 1)
            with m.If(last):
                m.d.sync += [number.eq(0), bank.eq(~bank)]
        return waiting != 0

    def _blocks(self, m: Module, place: data.View[data.StructLayout], item: data.View[data.StructLayout]) -> Value:
        """Blocks whose parameters are there."""
        loaded, channel_set = Signal(range(3)), Signal()
        released = self._enter & place.block_end
        m.d.sync += [loaded.eq(loaded + self.channels_loaded - released), channel_set.eq(channel_set ^ released)]
        with m.If(self._enter):
            m.d.sync += [item.channel_set.eq(channel_set), item.block_end.eq(place.block_end)]
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
        taken = pipeline_stages(m, "taken", taken, READ_LATENCY, reset_less=False)
        lanes = self._params.lanes
        byte_bits = (lanes - 1).bit_length()
        word = self.residual.data.word_select(taken.byte >> byte_bits, 8 * lanes)
        m.d.comb += [self.residual_arrived.eq(taken.valid), self.residual_bytes.eq(word)]
