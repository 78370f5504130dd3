"""Zero points of weights: subtracts each column's from the words on their way from the weight memory to the array."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.one_hot import one_hot_value
from intloom.hw.pipeline import output_register
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import HardwareParams


class ZeroPoints(wiring.Component):
    """Holds the zero points of one output block and subtracts them: `word - zero point` for every row of a column.

    Every weight then has `WEIGHT_BITS` bits. A correction by sums of the input, in the epilogue, would leave the
    array at eight bits, but needs a multiplier in each lane, and one sum for all columns holds only while all columns
    see the same input.

    Members
    -------
    word:
        The word that the weight memory returns in this cycle.
    store:
        Bit k: it is word k of an output block's zero points.
    clear:
        All zero points become 0.
    load_next:
        Bit c: the next cycle's word belongs to column c.
    load, weights:
        Bit c: `weights` belongs to column c; one weight for each row.

    Handshake
    ---------
    No back-pressure in either direction.

    Timing
    ------
    One word a cycle. From `word` to `weights`: `LATENCY` = 1 cycle. New zero points, or 0, hold from the second word
    after `store` or `clear` on.

    Requirements
    ------------
    No word of a column comes in the cycle after `store` or `clear`. At most one bit of `load_next` is high.

    Reset and faults
    ----------------
    Soft reset clears `load`. The zero points are not reset: `store` or `clear` precedes every instruction's first tile.
    There are no faults.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._rows, self._cols = params.rows, params.cols
        super().__init__(
            {
                "word": In(8 * params.rows),
                "store": In(params.zero_point_words),
                "clear": In(1),
                "load_next": In(params.cols),
                "load": Out(params.cols),
                "weights": Out(data.ArrayLayout(signed(WEIGHT_BITS), params.rows)),
            }
        )

    @staticmethod
    def model(word: Sequence[int], zero_point: int) -> list[int]:
        """The weights of a column, from its word and its zero point."""
        return [value - zero_point for value in word]

    def elaborate(self, platform: object) -> Module:
        """A register of zero points, one for the next word's column, and the subtraction before the output register."""
        m = Module()
        zero_points = self._zero_points(m)
        next_one, here = Signal(signed(8)), Signal(signed(8), reset_less=True)
        # The memory's words come in a known order, so the choice is made in the cycle before, outside the subtraction.
        m.d.comb += next_one.eq(one_hot_value(self.load_next, zero_points))
        weights = output_register(m, self.weights, "weights")
        load = Signal(self._cols)
        m.d.sync += [here.eq(next_one), load.eq(self.load_next), self.load.eq(load)]
        for row in range(self._rows):
            m.d.sync += weights[row].eq(self.word.word_select(row, 8).as_signed() - here)
        return m

    def _zero_points(self, m: Module) -> list[Signal]:
        """The bytes of the block's words, as far as there are columns."""
        held = []
        for column in range(self._cols):
            number, byte = divmod(column, self._rows)
            zero_point = Signal(signed(8), name=f"zero_point{column}", reset_less=True)
            with m.If(self.clear | self.store[number]):
                m.d.sync += zero_point.eq(Mux(self.clear, 0, self.word.word_select(byte, 8)))
            held.append(zero_point)
        return held
