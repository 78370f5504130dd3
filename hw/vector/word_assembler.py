"""Assembles the slices of a result into a word and rotates its bytes."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.pipeline import output_register
from intloom.hw.spec.params import HardwareParams


class WordAssembler(wiring.Component):
    """Collects `vector_slices` result slices into one word, rotated by `amount` bytes.

    Result byte `(i + amount) % word_bytes` is byte `i` of the input. The slice is rotated first, so that each byte is
    in its lane; then each lane writes its byte to the addressed slice of the word. Narrow slices therefore cost little
    more than the word's register.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    amount
        Rotation in bytes.
    valid, part
        The next slice of a word, lowest bytes first.
    result_valid, result
        Pulse: `result` holds a complete word.

    Handshake
    ---------
    No back-pressure: a slice is taken in every cycle with `valid`. `result` changes again with the next word's first
    slice.

    Timing
    ------
    One slice a cycle. From a word's last slice to `result_valid`: `LATENCY` = 2 cycles.

    Requirements
    ------------
    `amount` is stable from the cycle before an operation's first slice until its last result.

    Reset and faults
    ----------------
    Soft reset clears the slice count and the valid flags; data registers keep their values. There are no faults.
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
        """The word that `result` holds."""
        return bytes(word[(i - amount) % len(word)] for i in range(len(word)))

    def elaborate(self, platform: object) -> Module:
        """Rotate within the slice; one cycle later write each byte to its slice of the word."""
        m = Module()
        lane_bits = exact_log2(self._lanes)
        # Long route from the operation register, but stable long before the first slice.
        amount = Signal.like(self.amount, reset_less=True)
        m.d.sync += amount.eq(self.amount)
        within, across = amount[:lane_bits], amount[lane_bits:]
        index = Signal(range(self._slices))
        rotated: Value = self.part
        for bit in range(lane_bits):
            rotated = Mux(within[bit], rotated.rotate_left(8 << bit), rotated)
        part, result = Signal.like(self.part, reset_less=True), output_register(m, self.result)
        valid = Signal()
        # Between the rotation and the demultiplexer of the slices, which do not share a cycle.
        m.d.sync += [part.eq(rotated), valid.eq(self.valid)]
        m.d.sync += self.result_valid.eq(valid & (index == self._slices - 1))
        with m.If(valid):
            m.d.sync += index.eq(index + 1)
            for lane in range(self._lanes):
                # Bytes that wrapped around in the rotation belong to the next slice.
                slot = Signal(range(self._slices), name=f"slot{lane}")
                m.d.comb += slot.eq(index + across + (within > lane))
                # A byte's own condition is its clock enable; an index would make multiplexers of all bytes.
                for number in range(self._slices):
                    with m.If(slot == number):
                        at = number * self._lanes + lane
                        m.d.sync += result.word_select(at, 8).eq(part.word_select(lane, 8))
        return m
