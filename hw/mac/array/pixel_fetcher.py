"""Pixel fetcher: reads a pixel's word, substitutes padding, and aligns packed words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.product import sum_with_carry
from intloom.hw.mac.issue.tile_planner import COORDINATE
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import ReadPort
from intloom.hw.spec import timing
from intloom.hw.spec.isa import COORDINATE_BITS, COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams

PIXEL_BYTES = 4
"""Bytes of a pixel in a packed word."""

PIXEL_REQUEST = data.StructLayout({"swap": 1, "row_inside": 1, "ix": COORDINATE, "address": SCRATCH_BITS})
"""A pixel to fetch: `address` is that of its row's column 0; `swap` accompanies it to the array."""
PIXEL_INSTRUCTION = data.StructLayout({"in_w": COORDINATE_BITS, "packed": 1, "zp_in": signed(8), "index": COUNT_BITS})
"""What all pixels of an instruction have in common."""


class PixelFetcher(wiring.Component):
    """Reads one input word a cycle for the array.

    A packed pixel may span two words, which are read through two ports in the same cycle and shifted together. Pixels
    outside the input become `zp_in`.

    Members
    -------
    valid, pixel:
        The pixel to fetch.
    instruction:
        Fields of its instruction, a cycle later.
    act0, act1:
        Read ports of its word and of that word's neighbor.
    word_valid, word, swap:
        The word for the array.
    fault, fault_index:
        Pulse: a read was outside the memory, and its instruction.

    Handshake
    ---------
    No back-pressure. `act0.ready` and `act1.ready` are ignored.

    Timing
    ------
    One pixel a cycle. From a pixel to its word: `LATENCY` = 7 cycles: input register, address register, read latency.

    Requirements
    ------------
    The scratchpad grants both ports in every cycle; neighboring words lie in different banks.

    Reset and faults
    ----------------
    Soft reset clears the valid pipeline. A read outside the memory pulses `fault` 2 cycles after its pixel; its word is
    undefined.
    """

    LATENCY = timing.PIXEL_FETCH

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._pixels = params.pixels_per_word
        super().__init__(
            {
                "valid": In(1),
                "pixel": In(PIXEL_REQUEST),
                "instruction": In(PIXEL_INSTRUCTION),
                "act0": Out(ReadPort(params.word_bytes)),
                "act1": Out(ReadPort(params.word_bytes)),
                "word_valid": Out(1),
                "word": Out(8 * params.word_bytes),
                "swap": Out(1),
                "fault": Out(1),
                "fault_index": Out(COUNT_BITS),
            }
        )

    @staticmethod
    def model(pixel: Mapping[str, int], words: Sequence[bytes]) -> bytes | None:
        """The word made from a memory's words; None, and a fault, if it needs one outside the memory."""
        word_bytes = len(words[0])
        pixel_bytes = PIXEL_BYTES if pixel["packed"] else word_bytes
        pixels = word_bytes // pixel_bytes
        parts = []
        for x in range(pixel["ix"], pixel["ix"] + pixels):
            at, slot = divmod(x, pixels)
            at = (pixel["address"] + at) % (1 << SCRATCH_BITS)
            if not (pixel["row_inside"] and 0 <= x < pixel["in_w"]):
                parts.append(bytes([pixel["zp_in"] & 0xFF]) * pixel_bytes)
            elif at < len(words):
                parts.append(words[at][slot * pixel_bytes : (slot + 1) * pixel_bytes])
            else:
                return None
        return b"".join(parts)

    def elaborate(self, platform: object) -> Module:
        """Pixel and request registers, a pipeline as long as the read latency, and selection of data or padding."""
        m = Module()
        self._valid, self._pixel = Signal(), Signal(PIXEL_REQUEST, reset_less=True)
        m.d.sync += [self._valid.eq(self.valid), self._pixel.eq(self.pixel)]
        first, second = self._request(m)
        index = Signal(COUNT_BITS, reset_less=True)
        with m.If(self._valid):
            m.d.sync += index.eq(self.instruction.index)
        m.d.comb += [self.fault.eq((self.act0.valid & self.act0.fault) | (self.act1.valid & self.act1.fault))]
        m.d.comb += self.fault_index.eq(index)
        delayed_request = self._delay(m, first, second)
        self._assemble(m, delayed_request)
        return m

    def _request(self, m: Module) -> tuple[Value, Value]:
        """Addresses of the word and, for pixels that span two words, of its neighbor."""
        pixel, instruction, pixels = self._pixel, self.instruction, self._pixels
        shift = pixels.bit_length() - 1
        inside = self._inside_pixels(m)
        column = Mux(instruction.packed, pixel.ix >> shift, pixel.ix)
        m.d.sync += [self.act0.valid.eq(self._valid & inside[0]), self.act1.valid.eq(0)]
        with m.If(self._valid):
            m.d.sync += self.act0.addr.eq(pixel.address + column)
        if shift:
            # The neighbor's first pixel is one of the pixels after the first.
            neighbor = Cat((pixel.ix[:shift] == pixels - number) & inside[number] for number in range(1, pixels)).any()
            with m.If(self._valid & instruction.packed):
                m.d.sync += [
                    self.act1.valid.eq(neighbor),
                    self.act1.addr.eq(sum_with_carry(pixel.address, pixel.ix[shift:].as_signed(), Const(1))),
                ]
        return inside[0], inside

    def _inside_pixels(self, m: Module) -> Signal:
        """For each packed pixel of the word, whether it lies inside the row."""
        inside = Signal(self._pixels, name="inside_pixels")
        ix = self._pixel.ix
        # Of a column and its distance to the row's end: one subtraction serves all pixels.
        beyond = (ix - self.instruction.in_w).as_signed()
        for number in range(self._pixels):
            before_end, before_row = (self._is_negative_after(value, number) for value in (beyond, ix))
            m.d.comb += inside[number].eq(self._pixel.row_inside & before_end & ~before_row)
        return inside

    def _is_negative_after(self, value: Value, number: int) -> Value:
        """Whether a signed value is less than 0 if `number`, less than the pixels of a word, is added."""
        bits = self._pixels.bit_length() - 1
        if number == 0:
            return value[-1]
        return value[-1] & ~(value[bits:].all() & (value[:bits] >= self._pixels - number))

    def _delay(self, m: Module, inside: Value, inside_pixels: Value) -> data.View[data.StructLayout]:
        """What is still needed when the data arrives."""
        layout = data.StructLayout(
            {
                "valid": 1,
                "swap": 1,
                "packed": 1,
                "inside": 1,
                "zp_in": signed(8),
                "inside_pixels": self._pixels,
                "shift": max(1, self._pixels.bit_length() - 1),
            }
        )
        request = Signal(layout)
        m.d.comb += [
            request.valid.eq(self._valid),
            request.swap.eq(self._valid & self._pixel.swap),
            request.packed.eq(self.instruction.packed),
            request.inside.eq(inside),
            request.zp_in.eq(self.instruction.zp_in),
            request.inside_pixels.eq(inside_pixels),
            request.shift.eq(self._pixel.ix[: self._pixels.bit_length() - 1]),
        ]
        # With a reset, because the layout contains `valid` and `swap`.
        return pipeline_stages(m, "delayed_request", request, self.LATENCY - 1, reset_less=False)

    def _assemble(self, m: Module, delayed_request: data.View[data.StructLayout]) -> None:
        # The input's zero point is the byte that stands for the value 0.
        pad = Cat(*[delayed_request.zp_in] * self._params.word_bytes)
        m.d.comb += [self.word_valid.eq(delayed_request.valid), self.swap.eq(delayed_request.swap)]
        with m.If(delayed_request.packed & (self._pixels > 1)):
            bits = 8 * PIXEL_BYTES
            both = Cat(self.act0.data, self.act1.data)
            for number in range(self._pixels):
                source = Cat(both.word_select(number + i, bits) for i in range(self._pixels))
                with m.If(delayed_request.inside_pixels[number]):
                    m.d.comb += self.word.word_select(number, bits).eq(source.word_select(delayed_request.shift, bits))
                with m.Else():
                    m.d.comb += self.word.word_select(number, bits).eq(pad[:bits])
        with m.Elif(delayed_request.inside):
            m.d.comb += self.word.eq(self.act0.data)
        with m.Else():
            m.d.comb += self.word.eq(pad)
