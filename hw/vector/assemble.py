"""Puts the slices of a result together to a word, with its bytes rotated."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.pipeline import output_register
from intloom.hw.spec.params import HardwareParams


class WordAssembler(wiring.Component):
    """Result byte (i + amount) mod word is byte i; a word is there `LATENCY` cycles after its last slice.

    Rotating a slice brings every byte into its lane; then each lane writes it to the place where it belongs, so that
    narrow slices need little more than the word's register.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    amount
        Must hold from the cycle before the first slice while slices are under way.
    valid, part
        The next slice of a word.
    result_valid, result
        The word.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
        self._slices = params.vector_slices
        super().__init__(
            {
                "amount": In(exact_log2(params.word_bytes)),
                "valid": In(1),
                "part": In(8 * params.vector_lanes),
                "result_valid": Out(1),
                "result": Out(8 * params.word_bytes),
            }
        )

    @staticmethod
    def model(word: bytes, amount: int) -> bytes:
        """What `result` is."""
        return bytes(word[(i - amount) % len(word)] for i in range(len(word)))

    def elaborate(self, platform: object) -> Module:
        """Rotate within the slice; in the next cycle find each byte's slice."""
        m = Module()
        lane_bits = exact_log2(self._lanes)
        # From far, but long before the first slice.
        amount = Signal.like(self.amount, reset_less=True)
        m.d.sync += amount.eq(self.amount)
        within, across = amount[:lane_bits], amount[lane_bits:]
        index = Signal(range(self._slices))
        rotated: Value = self.part
        for bit in range(lane_bits):
            rotated = Mux(within[bit], rotated.rotate_left(8 << bit), rotated)
        part, result = Signal.like(self.part, reset_less=True), output_register(m, self.result)
        valid = Signal()
        m.d.sync += [part.eq(rotated), valid.eq(self.valid)]
        m.d.sync += self.result_valid.eq(valid & (index == self._slices - 1))
        with m.If(valid):
            m.d.sync += index.eq(index + 1)
            for lane in range(self._lanes):
                # Lanes below the amount hold bytes that were carried over into the next slice.
                place = Signal(range(self._slices), name=f"place{lane}")
                m.d.comb += place.eq(index + across + (within > lane))
                m.d.sync += result.word_select(place * self._lanes + lane, 8).eq(part.word_select(lane, 8))
        return m
