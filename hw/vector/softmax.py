"""Softmax over the channels of each pixel, a group of bytes a cycle in three passes; half as many dividers."""

from collections.abc import Callable
from functools import reduce
from operator import add

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BITS, EXPONENTIAL_BYTES, PASSES, QUEUE_GROUPS, TOTAL_BITS, softmax
from intloom.hw.vector.divider import DIVIDEND_BITS, Divider
from intloom.hw.vector.slicer import collect_groups
from intloom.hw.vector.window_walker import TAP_LAYOUT

_FIELD = BY_KIND[Kind.VSOFTMAX].field
_MAXIMUM, _SUM, _QUOTIENT = range(PASSES)
_LOOKUP = 4
"""Cycles from a byte to its exponential: input register, index, memory, output register, without the reduction of its
group to a maximum."""
_SCALE = 3
"""Cycles from an exponential at the queue's output to its dividend, which the sum may delay by more."""


def _larger(a: Value, b: Value) -> Value:
    return Mux(a > b, a, b)


def _sum_delay(params: HardwareParams) -> int:
    """Cycles that a dividend waits for the sum, beyond those of the queue and the scaling."""
    return max(0, _reduction(params) - CreditFifo.LATENCY - _SCALE + 1)


def _reduction(params: HardwareParams) -> int:
    """Cycles in which the values of a group become one."""
    return max(2, exact_log2(params.softmax_lanes))


class Softmax(wiring.Component):
    """Computes maximum, sum and quotients of a pixel's bytes, which pass three times.

    Each byte of a group has a port of a copy of the 256 exponentials, which the program loads byte by byte. An
    exponential's index is 255 plus the byte minus the maximum. Two bytes share a divider: quotients are a third of the
    passes, so that the dividers also work while the next pixel's maximum and sum are computed.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write_en, write_part, write_index, write_byte
        Write a byte of an exponential.
    last_bytes, less, zp_out
        Fields of the instruction.
    valid, group, position, tap, number
        `softmax_lanes` bytes, the position of the first one in its word, whether their word is a pixel's first or last,
        and the number of the pass.
    ready, taken
        A group may be sent to the third pass; one is on its way.
    result_valid, result
        A slice of results.

    Handshake
    ---------
    A group is taken in every cycle with `valid`. `taken` comes with or before a group of the third pass, and only
    while `ready` is high.

    Timing
    ------
    One group a cycle, in the third pass one in two cycles while the queue is full. From the last group of a slice to
    `result_valid`, with an empty queue: `latency(params)` = 20 + r cycles for r = 2 and 3, 25 for r = 4; a group of 2^r
    bytes becomes one value in r cycles, but no fewer than 2.

    Requirements
    ------------
    All bytes of a pixel come in order, in each of its passes. Fields are stable while bytes are in flight, and no
    exponential is written meanwhile or in the cycle before. Pixels whose bytes are in flight have equally many words,
    and a word has at least 2 groups: of a pixel of n groups the last division begins at most n cycles after the last
    one has entered the queue. The next pixel's first one begins at least n + 1 cycles later, before its sum replaces
    the one before. So each divisor register serves one pixel at a time.

    Reset and faults
    ----------------
    Soft reset clears the valid flags, the queue and the number of groups in the slice; exponentials survive. There are
    no faults.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._reduction = _reduction(params)
        self._sum_delay = _sum_delay(params)
        self._dividers = params.softmax_dividers
        self._lanes = params.vector_lanes
        self._group = params.softmax_lanes
        super().__init__(
            {
                "write_en": In(1),
                "write_part": In(range(EXPONENTIAL_BYTES)),
                "write_index": In(range(TABLE_BYTES)),
                "write_byte": In(8),
                "last_bytes": In(_FIELD("last_bytes").width),
                "less": In(_FIELD("less").width),
                "zp_out": In(8),
                "valid": In(1),
                "group": In(8 * self._group),
                "position": In(exact_log2(params.word_bytes)),
                "tap": In(TAP_LAYOUT),
                "number": In(range(PASSES)),
                "ready": Out(1),
                "taken": In(1),
                "result_valid": Out(1),
                "result": Out(8 * self._lanes),
            }
        )

    @staticmethod
    def latency(params: HardwareParams) -> int:
        """Cycles from the last group of a slice to its results."""
        queue = CreditFifo.LATENCY + params.softmax_lanes // params.softmax_dividers - 1
        return _LOOKUP + _reduction(params) + queue + _sum_delay(params) + _SCALE + Divider.LATENCY + 2

    @staticmethod
    def model(values: list[int], exponentials: list[int], less: int, zp_out: int, counted: int) -> list[int]:
        """The results of a pixel's int8 values."""
        return softmax(values, exponentials, less, zp_out, counted)

    def elaborate(self, platform: object) -> Module:
        """Maximum, exponentials, sum, dividends, quotients, slice."""
        m = Module()
        # int8 as its distance from -128: all comparisons are unsigned.
        values = [Signal(8, name=f"value{lane}", reset_less=True) for lane in range(self._group)]
        counted = Signal(self._group, reset_less=True)
        first = Signal(reset_less=True)
        number = Signal.like(self.number, reset_less=True)
        valid = Signal()
        m.d.sync += [
            valid.eq(self.valid),
            *(value.eq(self.group.word_select(lane, 8) ^ 0x80) for lane, value in enumerate(values)),
            # The position of a group's first byte has zeros where the number of the byte has ones.
            counted.eq(Cat(~self.tap.last | ((self.position | k) < self.last_bytes) for k in range(self._group))),
            first.eq(self.tap.first & (self.position == 0)),
            number.eq(self.number),
        ]
        reduced = {
            name: pipeline_stages(m, name, signal, self._reduction, reset_less=name != "grouped")
            for name, signal in (("grouped", valid), ("first_group", first), ("pass_of_group", number))
        }
        # A register before the memories: an FPGA has them far from the logic.
        writes = (self.write_en, self.write_part, self.write_index, self.write_byte)
        self._write = [
            pipeline_stages(m, signal.name, signal, 1, reset_less=signal is not self.write_en) for signal in writes
        ]
        largest = self._maximum(m, values, counted, reduced)
        entries = self._look_up(m, values, largest, counted)
        delayed = {
            name: pipeline_stages(m, f"{name}_", signal, _LOOKUP - 1, reset_less=name != "grouped")
            for name, signal in reduced.items()
        }
        total = self._sum(m, delayed, entries)
        dividing = Signal()
        m.d.comb += dividing.eq(delayed["grouped"] & (delayed["pass_of_group"] == _QUOTIENT))
        collect_groups(m, *self._divide(m, *self._queue(m, dividing, entries), total), self.result_valid, self.result)
        return m

    def _reduce(self, m: Module, name: str, values: list[Value], join: Callable[[Value, Value], Value]) -> Value:
        """The values of a group joined, pairs in each stage."""
        for stage in range(self._reduction):
            pairs = [reduce(join, values[at : at + 2]) for at in range(0, len(values), 2)]
            values = [pipeline_stages(m, f"{name}{stage}_{k}_", p, 1, reset_less=True) for k, p in enumerate(pairs)]
        return values[0]

    def _maximum(self, m: Module, values: list[Signal], counted: Signal, group: dict[str, Signal]) -> Signal:
        """The maximum of a pixel: a byte beyond its channels is as small as the smallest one."""
        largest = Signal(8, reset_less=True)
        chosen: list[Value] = [Mux(counts, value, 0) for counts, value in zip(counted, values, strict=True)]
        found = self._reduce(m, "largest_of_group", chosen, _larger)
        with m.If(group["grouped"] & (group["pass_of_group"] == _MAXIMUM) & (group["first_group"] | (found > largest))):
            m.d.sync += largest.eq(found)
        return largest

    def _look_up(self, m: Module, values: list[Signal], largest: Value, counted: Signal) -> list[Signal]:
        """The exponentials of a group, 0 beyond the channels."""
        indices = []
        for lane, value in enumerate(values):
            index = Signal(8, name=f"index{lane}", reset_less=True)
            late = pipeline_stages(m, f"value{lane}_", value, self._reduction, reset_less=True)
            # ~maximum is 255 - maximum.
            m.d.sync += index.eq(late + ~largest)
            indices.append(index)
        found: list[Value] = []
        for first in range(0, self._group, 2):
            found += self._exponentials(m, first, indices[first : first + 2])
        counts = pipeline_stages(m, "counts", counted, self._reduction + 2, reset_less=True)
        entries = [Signal(EXPONENTIAL_BITS, name=f"entry{lane}", reset_less=True) for lane in range(self._group)]
        m.d.sync += [entry.eq(Mux(counts[k], found[k], 0)) for k, entry in enumerate(entries)]
        return entries

    def _exponentials(self, m: Module, first: int, indices: list[Signal]) -> list[Value]:
        """The exponentials of two lanes, which share a block memory's two ports."""
        write_en, write_part, write_index, write_byte = self._write
        memory = Memory(shape=unsigned(EXPONENTIAL_BITS), depth=TABLE_BYTES, init=[])
        m.submodules[f"memory{first}"] = memory
        write = memory.write_port(granularity=8)
        # One address for the write port and the first read port: Yosys then maps both to one block memory port.
        shared = Signal(8, name=f"shared{first}")
        m.d.comb += [
            shared.eq(Mux(write_en, write_index, indices[0])),
            write.en.eq(Cat(write_en & (write_part == part) for part in range(EXPONENTIAL_BYTES))),
            write.addr.eq(shared),
            write.data.eq(write_byte.replicate(EXPONENTIAL_BYTES)),
        ]
        found: list[Value] = []
        for index in indices:
            read = memory.read_port()
            m.d.comb += [read.addr.eq(index if found else shared), read.en.eq(~write_en)]
            found.append(read.data)
        return found

    def _sum(self, m: Module, group: dict[str, Signal], entries: list[Signal]) -> Signal:
        """The sum of a pixel's exponentials, which stays at its largest value."""
        adds, opens = Signal(), Signal()
        m.d.comb += [adds.eq(group["grouped"] & (group["pass_of_group"] == _SUM)), opens.eq(group["first_group"])]
        late = pipeline_stages(m, "adds", adds, self._reduction, reset_less=False)
        first = pipeline_stages(m, "opens", opens, self._reduction, reset_less=True)
        total = Signal(TOTAL_BITS, reset_less=True)
        after = Signal(TOTAL_BITS + 1)
        m.d.comb += after.eq(Mux(first, 0, total) + self._reduce(m, "sum_of_group", [*entries], add))
        with m.If(late):
            m.d.sync += total.eq(after[:TOTAL_BITS] | after[-1].replicate(TOTAL_BITS))
        return total

    def _queue(self, m: Module, valid: Value, entries: list[Signal]) -> tuple[Value, list[Value]]:
        """The exponentials of a group in parts of one for each divider, a part a cycle."""
        shape = data.ArrayLayout(EXPONENTIAL_BITS, self._group)
        m.submodules.queue = queue = CreditFifo(shape, QUEUE_GROUPS)
        parts = self._group // self._dividers
        part = Signal(range(max(2, parts)))
        last = part == parts - 1
        with m.If(queue.o.valid):
            m.d.sync += part.eq(Mux(last, 0, part + 1))
        m.d.comb += [
            self.ready.eq(queue.credit_available),
            queue.take_credit.eq(self.taken),
            queue.push.eq(valid),
            queue.word.eq(Cat(entries)),
            queue.o.ready.eq(last),
        ]
        chosen = Value.cast(queue.o.payload).word_select(part, EXPONENTIAL_BITS * self._dividers)
        return queue.o.valid, [chosen.word_select(k, EXPONENTIAL_BITS) for k in range(self._dividers)]

    def _divide(self, m: Module, valid: Value, entries: list[Value], total: Signal) -> tuple[Value, Value]:
        """Dividends, quotients, zero point."""
        half = Signal(TOTAL_BITS - 1)
        # Bit k: dividends are complete in k cycles less, or in stage k of the dividers beyond that.
        dividends = _SCALE + self._sum_delay
        in_flight = Signal(dividends - 1 + (Divider.DIVISORS - 1) * Divider.STAGES)
        m.d.sync += in_flight.eq(Cat(valid, in_flight))
        m.d.comb += half.eq(total >> 1)
        # Copies: the sum of the next pixel begins while quotients of this one are in flight, and so may its divisions.
        divisors, before = Signal(data.ArrayLayout(TOTAL_BITS, Divider.DIVISORS), reset_less=True), total
        for number in range(Divider.DIVISORS):
            with m.If(in_flight[dividends - 2 + number * Divider.STAGES]):
                m.d.sync += divisors[number].eq(before)
            before = divisors[number]
        valids, quotients = [], []
        for lane, entry in enumerate(entries):
            m.submodules[f"divider{lane}"] = divider = Divider()
            m.d.comb += [
                divider.valid.eq(in_flight[dividends - 1]),
                divider.dividend.eq(self._dividend(m, lane, entry, half)),
                divider.divisors.eq(divisors),
            ]
            valids.append(divider.result_valid)
            quotients.append(self._result(m, lane, divider.quotient))
        return pipeline_stages(m, "divided", valids[0], 1, reset_less=False), Cat(quotients)

    def _dividend(self, m: Module, lane: int, entry: Value, half: Signal) -> Signal:
        """The exponential, delayed until the sum is complete, scaled, and half of the sum."""
        held = Signal(EXPONENTIAL_BITS, name=f"held{lane}", reset_less=True)
        removed = Signal(EXPONENTIAL_BITS + 2, name=f"removed{lane}", reset_less=True)
        scaled = Signal(DIVIDEND_BITS, name=f"scaled{lane}", reset_less=True)
        dividend = Signal(DIVIDEND_BITS, name=f"dividend{lane}", reset_less=True)
        late = pipeline_stages(m, f"entry{lane}_", entry, self._sum_delay, reset_less=True)
        # `less` times the exponential: the exponential less 1, 0, -1 or -2 times itself. A difference from a register
        # takes one LUT a bit on the 7 series, a sum of two choices two. A negative multiple is a complement, and the
        # lowest bit borrows.
        negative = self.less[1]
        multiple = Mux(self.less == 1, 0, late << (self.less == 3))[: len(removed)]
        subtracted = Cat(negative, multiple ^ negative.replicate(len(removed)))
        m.d.sync += [
            held.eq(late),
            removed.eq((Cat(0, late) - subtracted)[1:]),
            scaled.eq((held << 8) - removed),
            dividend.eq(scaled + half),
        ]
        return dividend

    def _result(self, m: Module, lane: int, quotient: Value) -> Signal:
        shifted, clamped = Signal(10, name=f"shifted{lane}"), Signal(8, name=f"clamped{lane}")
        byte = Signal(8, name=f"byte{lane}", reset_less=True)
        m.d.comb += [
            shifted.eq(quotient + (self.zp_out ^ 0x80)),
            clamped.eq(shifted[:8] | shifted[8:].any().replicate(8)),
        ]
        m.d.sync += byte.eq(clamped ^ 0x80)
        return byte
