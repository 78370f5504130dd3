"""Softmax over the channels of each pixel, a byte a cycle in three passes."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.pipeline import output_register, pipeline_stages
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BITS, EXPONENTIAL_BYTES, PASSES, TOTAL_BITS, softmax
from intloom.hw.vector.divider import DIVIDEND_BITS, Divider
from intloom.hw.vector.window_walker import TAP_LAYOUT

_FIELD = BY_KIND[Kind.VSOFTMAX].field
_MAXIMUM, _SUM, _QUOTIENT = range(PASSES)
_LOOKUP = 4
"""Cycles from a byte to its exponential: input register, index, memory, output register."""
_SCALE = 3
"""Cycles from an exponential to its dividend."""


class Softmax(wiring.Component):
    """Computes maximum, sum and quotients of a pixel's bytes, which pass three times.

    Three memories hold a byte each of 256 exponentials; the program loads them. An exponential's index is 255 plus the
    byte minus the maximum.

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
    valid, byte, position, tap, number
        A byte, its position in its word, whether its word is a pixel's first or last, and the number of the pass.
    result_valid, result
        A slice of results.

    Handshake
    ---------
    No back-pressure: a byte is taken in every cycle with `valid`.

    Timing
    ------
    One byte a cycle. From the last byte of a slice to `result_valid`: `LATENCY` = 18 cycles.

    Requirements
    ------------
    All bytes of a pixel come in order, in each of its passes. Fields are stable while bytes are in flight, and no
    exponential is written meanwhile. A word has at least 4 bytes: the divisor then holds until the last division.

    Reset and faults
    ----------------
    Soft reset clears the valid flags and the number of bytes in the slice; exponentials survive. There are no faults.
    """

    LATENCY = _LOOKUP + _SCALE + Divider.LATENCY + 2

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
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
                "byte": In(8),
                "position": In(exact_log2(params.word_bytes)),
                "tap": In(TAP_LAYOUT),
                "number": In(range(PASSES)),
                "result_valid": Out(1),
                "result": Out(8 * self._lanes),
            }
        )

    @staticmethod
    def model(values: list[int], exponentials: list[int], less: int, zp_out: int, counted: int) -> list[int]:
        """The results of a pixel's int8 values."""
        return softmax(values, exponentials, less, zp_out, counted)

    def elaborate(self, platform: object) -> Module:
        """Maximum, exponential, sum, dividend, quotient, slice."""
        m = Module()
        # int8 as its distance from -128: all comparisons are unsigned.
        value = Signal(8, reset_less=True)
        counted, first = Signal(reset_less=True), Signal(reset_less=True)
        number = Signal.like(self.number, reset_less=True)
        valid = Signal()
        m.d.sync += [
            valid.eq(self.valid),
            value.eq(self.byte ^ 0x80),
            counted.eq(~self.tap.last | (self.position < self.last_bytes)),
            first.eq(self.tap.first & (self.position == 0)),
            number.eq(self.number),
        ]
        largest = self._maximum(m, valid & (number == _MAXIMUM) & counted, first, value)
        entry = self._look_up(m, value, largest, counted)
        delayed = {
            name: pipeline_stages(m, name, signal, _LOOKUP - 1, reset_less=name != "passed")
            for name, signal in (("passed", valid), ("opens", first), ("pass_number", number))
        }
        total = self._sum(m, delayed["passed"] & (delayed["pass_number"] == _SUM), delayed["opens"], entry)
        dividing = Signal()
        m.d.comb += dividing.eq(delayed["passed"] & (delayed["pass_number"] == _QUOTIENT))
        self._collect(m, *self._divide(m, dividing, entry, total))
        return m

    def _maximum(self, m: Module, valid: Value, first: Value, value: Value) -> Signal:
        largest = Signal(8, reset_less=True)
        with m.If(valid & (first | (value > largest))):
            m.d.sync += largest.eq(value)
        return largest

    def _look_up(self, m: Module, value: Value, largest: Value, counted: Value) -> Signal:
        """The exponential of a byte, 3 cycles later; 0 beyond the channels."""
        index = Signal(8, reset_less=True)
        # ~maximum is 255 - maximum.
        m.d.sync += index.eq(value + ~largest)
        found: list[Value] = []
        for part in range(EXPONENTIAL_BYTES):
            memory = Memory(shape=unsigned(8), depth=TABLE_BYTES, init=[])
            m.submodules[f"memory{part}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(self.write_en & (self.write_part == part)),
                write.addr.eq(self.write_index),
                write.data.eq(self.write_byte),
                read.addr.eq(index),
                read.en.eq(1),
            ]
            found.append(read.data)
        counts = pipeline_stages(m, "counts", counted, 2, reset_less=True)
        entry = Signal(EXPONENTIAL_BITS, reset_less=True)
        m.d.sync += entry.eq(Mux(counts, Cat(found), 0))
        return entry

    def _sum(self, m: Module, valid: Value, first: Value, entry: Value) -> Signal:
        """The sum of a pixel's exponentials, which stays at its largest value."""
        total = Signal(TOTAL_BITS, reset_less=True)
        after = Signal(TOTAL_BITS + 1)
        m.d.comb += after.eq(Mux(first, 0, total) + entry)
        with m.If(valid):
            m.d.sync += total.eq(after[:TOTAL_BITS] | after[-1].replicate(TOTAL_BITS))
        return total

    def _divide(self, m: Module, valid: Value, entry: Signal, total: Signal) -> tuple[Value, Value]:
        """Dividend in three stages, quotient, zero point."""
        m.submodules.divider = divider = Divider()
        held = Signal(EXPONENTIAL_BITS, reset_less=True)
        removed = Signal(EXPONENTIAL_BITS + 2, reset_less=True)
        scaled, dividend = Signal(DIVIDEND_BITS, reset_less=True), Signal(DIVIDEND_BITS, reset_less=True)
        divisor = Signal(TOTAL_BITS, reset_less=True)
        in_flight = Signal(_SCALE)
        m.d.sync += in_flight.eq(Cat(valid, in_flight))
        m.d.sync += [
            held.eq(entry),
            removed.eq(Mux(self.less[0], entry, 0) + Mux(self.less[1], entry << 1, 0)),
            scaled.eq((held << 8) - removed),
            dividend.eq(scaled + (total >> 1)),
        ]
        # A copy: the sum of the next pixel begins while quotients of this one are in flight.
        with m.If(in_flight[1]):
            m.d.sync += divisor.eq(total)
        m.d.comb += [divider.valid.eq(in_flight[-1]), divider.dividend.eq(dividend), divider.divisor.eq(divisor)]
        shifted, byte = Signal(10), Signal(8, reset_less=True)
        m.d.comb += shifted.eq(divider.quotient + (self.zp_out ^ 0x80))
        m.d.sync += byte.eq((shifted[:8] | shifted[8:].any().replicate(8)) ^ 0x80)
        return pipeline_stages(m, "divided", divider.result_valid, 1, reset_less=False), byte

    def _collect(self, m: Module, valid: Value, byte: Value) -> None:
        """Bytes enter at the top of the slice."""
        result = output_register(m, self.result)
        count = Signal(range(max(2, self._lanes)))
        m.d.sync += self.result_valid.eq(valid & (count == self._lanes - 1))
        with m.If(valid):
            m.d.sync += result.eq(Cat(result, byte)[8:])
            if self._lanes > 1:
                m.d.sync += count.eq(count + 1)
