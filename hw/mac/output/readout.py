"""Accumulator readout: reads finished strips, one group of sums a cycle, with the residual operand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.epilogue.epilogue import TAG
from intloom.hw.mac.issue.descriptors import READOUT_DESCRIPTOR
from intloom.hw.mac.output.output_walker import OutputWalker
from intloom.hw.mac.weights.zero_point_correction import CORRECTION_SET_BITS
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import READ_LATENCY, ReadPort
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS, TableUse
from intloom.hw.spec.params import HardwareParams


class AccumulatorReadout(wiring.Component):
    """Reads finished strips out of the accumulators, one item a cycle.

    An item is a group of `lanes` sums of one pixel. An item issues into the item register when its strip is complete,
    its block's parameters are loaded, and the epilogue has credit for its result. It retires one cycle later, or when
    its residual read is granted. Issue is in order; both accumulator banks may hold strips that wait for readout.

    Members
    -------
    descriptors:
        One per instruction.
    run:
        Low stops issue from the next cycle on; an item in the item register still retires.
    strip_ends, strip_length:
        Pulse: the array ends another strip; its pixels.
    strip_ready:
        Pulse: this strip may be read, pixel n from n cycles after the pulse on.
    bank_released:
        Pulse: the last sum of the oldest strip is read in this cycle.
    channels_loaded, channels_released:
        Pulse: a block's parameters are complete. Pulse: the last item that uses the oldest block's parameters retires.
    credit_available:
        The result FIFO has credit for three more items than those counted.
    epilogue_idle:
        No item is in flight in the epilogue.
    residual:
        Read port of the residual operand.
    item, groups, address, group, tag, channel_set:
        The item that retires in this cycle, for accumulators and epilogue; `groups` is `group` one-hot.
    corrected, correction_set:
        An item retires whose instruction subtracts `zp_in`; the set of its block's corrections.
    residual_arrived, residual_bytes:
        The operand of the item that retired `READ_LATENCY` cycles ago.
    activate, table_switched:
        Pulses: from this cycle's item on the loaded residual constants, or the other table set, are in use.
    shift, even:
        Residual shift and rounding mode of the current instruction.
    fault_index:
        Index of the current instruction.

    Handshake
    ---------
    `descriptors` is a stream; a descriptor is taken after the last item of the previous instruction has retired.
    `residual.valid` does not depend on `residual.ready` and holds its address until the grant. The other outputs are
    strobes without back-pressure.

    Timing
    ------
    One item a cycle. From a descriptor offered to its first item: `LATENCY` cycles, if strip, parameters and credit are
    available. From `strip_ready` or `channels_loaded` to an item that waits for it: 2 cycles.

    Requirements
    ------------
    At most two strips and two parameter sets are ready at a time. `strip_ends` comes no later than `strip_ready`, and
    for the next strip of a bank after its release. An instruction with residual, or after one, starts
    only while `epilogue_idle`, because items with residual have a longer epilogue.

    Reset and faults
    ----------------
    Soft reset clears the walker, the item register and all counters. While `run` is low nothing issues. A residual read
    outside the scratchpad is granted; the unit reports the fault with `fault_index`.
    """

    LATENCY = 4
    """Cycles from a descriptor on offer to its first item, if strip, parameters and credit are available."""

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
                "correction_set": CORRECTION_SET_BITS,
                "strip_end": 1,
                "block_end": 1,
            }
        )
        super().__init__(
            {
                "descriptors": In(stream.Signature(READOUT_DESCRIPTOR)),
                "run": In(1),
                "strip_ready": In(1),
                "strip_ends": In(1),
                "strip_length": In(params.strip.bit_length()),
                "bank_released": Out(1),
                "channels_loaded": In(1),
                "channels_released": Out(1),
                "credit_available": In(1),
                "epilogue_idle": In(1),
                "residual": Out(ReadPort(params.word_bytes)),
                "item": Out(1),
                "groups": Out(self._groups),
                "address": Out(params.strip.bit_length()),
                "group": Out(range(self._groups)),
                "tag": Out(TAG),
                "channel_set": Out(1),
                "corrected": Out(1),
                "correction_set": Out(CORRECTION_SET_BITS),
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
        descriptors: Iterable[Mapping[str, int]], lengths: Iterable[int], params: HardwareParams
    ) -> Iterator[dict[str, int]]:
        """Each item in order, from strips of these lengths: its tag and outputs, and word and byte of its operand."""
        strips = iter(lengths)
        bank, table_set, channel_set, correction_set = 1, 0, 0, 0
        length = number = 0
        for descriptor in descriptors:
            table_set ^= descriptor["table"] == TableUse.LOAD
            walk = {name: descriptor[name] for name in ("out_h", "out_w")} | {
                "blocks": descriptor["out_blocks"],
                "x": 1,
                "byte": 0,
            }
            walk |= {name: descriptor[f"res_{name}"] for name in ("base", "plane", "row")}
            for item, position in enumerate(OutputWalker.model(walk, params)):
                if number == length:
                    length, number, bank = next(strips), 0, bank ^ 1
                yield {
                    "zp_out": descriptor["zp_out"],
                    "use_table": descriptor["table"] != TableUse.NONE,
                    "table_set": table_set,
                    "residual": descriptor["residual"],
                    "address": bank * params.strip + number,
                    "group": position["group"],
                    "channel_set": channel_set,
                    "corrected": descriptor["subtract_zp_in"],
                    "correction_set": correction_set,
                    "bank_released": position["pixel_end"] and number == length - 1,
                    "channels_released": position["block_end"],
                    "activate": item == 0 and descriptor["residual"],
                    "shift": descriptor["res_shift"],
                    "even": descriptor["res_even"],
                    "fault_index": descriptor["index"],
                    "word": position["address"],
                    "byte": position["byte"],
                }
                number += position["pixel_end"]
                channel_set ^= position["block_end"]
                correction_set += position["block_end"] and descriptor["subtract_zp_in"]
                correction_set %= 1 << CORRECTION_SET_BITS

    def elaborate(self, platform: object) -> Module:
        """An output walker, which also gives the residual addresses, and counters of strips and parameter sets.

        The residual port is driven from registers: a grant only reaches the item register.
        """
        m = Module()
        m.submodules.walker = walker = OutputWalker(self._params)
        descriptor = Signal(READOUT_DESCRIPTOR, reset_less=True)
        self._issue, self._item_valid = Signal(), Signal()
        positions = walker.o
        self._begin(m, walker, walker.active | self._item_valid, descriptor)
        operands_ready = self._item_register(m, descriptor, positions.payload, walker.start)
        # Registered, since credits end a long path: three credits beyond the count cover items that it has not seen.
        enabled = Signal()
        m.d.sync += enabled.eq(self.run & self.credit_available)
        m.d.comb += [
            self._issue.eq(positions.valid & operands_ready & enabled & (~self._item_valid | self.item)),
            positions.ready.eq(self._issue),
        ]
        return m

    def _item_register(
        self, m: Module, descriptor: data.View[data.StructLayout], position: data.View[data.StructLayout], start: Signal
    ) -> Value:
        """The item that retires next; returns whether strip and parameters of the following one are ready."""
        item = Signal(self._item, reset_less=True)
        with m.If(self._issue):
            m.d.sync += [
                self._item_valid.eq(1),
                *(item[name].eq(position[name]) for name in ("address", "byte", "group")),
            ]
        with m.Elif(self.item):
            m.d.sync += self._item_valid.eq(0)
        strip_ready = self._strips(m, position, item)
        block_ready = self._blocks(m, position, item, descriptor.subtract_zp_in)
        m.d.comb += [
            # From the item register, not from issue: VALID must not depend on this or another port's grant.
            self.residual.valid.eq(self._item_valid & descriptor.residual),
            self.residual.addr.eq(item.address),
            self.item.eq(self._item_valid & (self.residual.ready | ~descriptor.residual)),
            # One-hot: each group of columns has its own enable, without a decoder behind the register there.
            self.groups.eq(self.item << item.group),
            self.group.eq(item.group),
            self.address.eq(item.sums),
            self.channel_set.eq(item.channel_set),
            self.corrected.eq(self.item & descriptor.subtract_zp_in),
            self.correction_set.eq(item.correction_set),
            self.bank_released.eq(self.item & item.strip_end),
            self.channels_released.eq(self.item & item.block_end),
            self.fault_index.eq(descriptor.index),
        ]
        self._residual(m, descriptor, start, item.byte)
        return strip_ready & block_ready

    def _begin(self, m: Module, walker: OutputWalker, busy: Value, descriptor: data.View[data.StructLayout]) -> None:
        """Take a descriptor once the previous one's items have retired; serialize instructions around a residual.

        The start pulse is registered, because it has a long route to all descriptor registers.
        """
        offered = self.descriptors.payload
        exclusive, start = Signal(), Signal()
        m.d.sync += start.eq(self.descriptors.valid & ~start & ~busy & (self.epilogue_idle | ~exclusive))
        m.d.comb += [
            exclusive.eq(offered.residual | descriptor.residual),
            self.descriptors.ready.eq(start),
            walker.start.eq(start),
            walker.walk.out_h.eq(offered.out_h),
            walker.walk.out_w.eq(offered.out_w),
            walker.walk.blocks.eq(offered.out_blocks),
            walker.walk.base.eq(offered.res_base),
            walker.walk.plane.eq(offered.res_plane),
            walker.walk.row.eq(offered.res_row),
            walker.walk.x.eq(1),
            self.tag.zp_out.eq(descriptor.zp_out),
            self.tag.use_table.eq(descriptor.table != TableUse.NONE),
            self.tag.residual.eq(descriptor.residual),
            self.table_switched.eq(start & (offered.table == TableUse.LOAD)),
            self.shift.eq(descriptor.res_shift),
            self.even.eq(descriptor.res_even),
        ]
        with m.If(start):
            m.d.sync += descriptor.eq(offered)
        with m.If(self.table_switched):
            m.d.sync += self.tag.table_set.eq(~self.tag.table_set)

    def _strips(self, m: Module, position: data.View[data.StructLayout], item: data.View[data.StructLayout]) -> Value:
        """Pixel number in the strip; strips of both banks may be ready."""
        bits = self._params.strip.bit_length()
        # One length per bank: the next strip may end, with another length, while this one is read. Its bank is free,
        # so the length that it had before is not read any more.
        last_pixels = Signal(data.ArrayLayout(bits, 2), reset_less=True)
        strips_ready = Signal(range(3))
        ending, bank = Signal(), Signal()
        number = Signal(bits)
        last, strip_end = Signal(), Signal()
        m.d.comb += [last.eq(number == last_pixels[bank]), strip_end.eq(position.pixel_end & last)]
        with m.If(self.strip_ends):
            m.d.sync += [last_pixels[ending].eq(self.strip_length - 1), ending.eq(~ending)]
        m.d.sync += strips_ready.eq(strips_ready + self.strip_ready - (self._issue & strip_end))
        with m.If(self._issue):
            m.d.sync += [item.sums.eq(Cat(number[:-1], bank)), item.strip_end.eq(strip_end)]
        with m.If(self._issue & position.pixel_end):
            m.d.sync += number.eq(number + 1)
            with m.If(last):
                m.d.sync += [number.eq(0), bank.eq(~bank)]
        return strips_ready != 0

    def _blocks(
        self, m: Module, position: data.View[data.StructLayout], item: data.View[data.StructLayout], corrected: Value
    ) -> Value:
        """Count of blocks whose parameters are loaded."""
        loaded, channel_set, correction_set = Signal(range(3)), Signal(), Signal(CORRECTION_SET_BITS)
        released = self._issue & position.block_end
        m.d.sync += [loaded.eq(loaded + self.channels_loaded - released), channel_set.eq(channel_set ^ released)]
        m.d.sync += correction_set.eq(correction_set + (released & corrected))
        with m.If(self._issue):
            m.d.sync += [
                item.channel_set.eq(channel_set),
                item.correction_set.eq(correction_set),
                item.block_end.eq(position.block_end),
            ]
        return loaded != 0

    def _residual(self, m: Module, descriptor: data.View[data.StructLayout], start: Value, byte: Value) -> None:
        """Activate the constants with the first item, since they are loaded before its parameters; align the operand.

        The operand's byte offset waits READ_LATENCY cycles for its word.
        """
        first = Signal()
        with m.If(start):
            m.d.sync += first.eq(1)
        with m.Elif(self.item):
            m.d.sync += first.eq(0)
        m.d.comb += self.activate.eq(self.item & first & descriptor.residual)
        taken = Signal(data.StructLayout({"valid": 1, "byte": range(self._params.rows)}))
        m.d.comb += [taken.valid.eq(self.item & descriptor.residual), taken.byte.eq(byte)]
        taken = pipeline_stages(m, "taken", taken, READ_LATENCY, reset_less=False)
        lanes = self._params.lanes
        byte_bits = (lanes - 1).bit_length()
        word = self.residual.data.word_select(taken.byte >> byte_bits, 8 * lanes)
        m.d.comb += [self.residual_arrived.eq(taken.valid), self.residual_bytes.eq(word)]
