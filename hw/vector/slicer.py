"""Splits operand words into slices of one byte per lane, into single bytes, or into groups of bytes."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.pipeline import output_register
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.window_walker import TAP_LAYOUT


def collect_groups(m: Module, valid: Value, group: Value, result_valid: Signal, result: Signal) -> None:
    """Join groups to a slice on the port `result`, a cycle after its last group; they enter at the top."""
    register = output_register(m, result)
    groups = len(result) // len(group)
    count = Signal(range(max(2, groups)), name="groups_collected")
    m.d.sync += result_valid.eq(valid & (count == groups - 1))
    with m.If(valid):
        m.d.sync += register.eq(Cat(register, group)[len(group) :])
        if groups > 1:
            m.d.sync += count.eq(count + 1)


class Slicer(wiring.Component):
    """Steps through a pair of words, one slice, byte or group of `softmax_lanes` bytes a cycle.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    bytewise, grouped
        Output single bytes of `a`; with `grouped`, groups of bytes.
    words_valid, a, b, tap
        A pair of words, and the window position of `a`.
    step
        This cycle's slice or byte is the words' last.
    valid, index, slice_a, slice_b, slice_tap
        A slice of each word, and its index.
    byte_valid, byte, byte_position
        A byte of `a`, and its position in the word.
    group
        With `grouped`: the bytes from `byte_position` on.

    Handshake
    ---------
    The words must hold from `words_valid` until `step`, which acts as their `ready`. Outputs have no back-pressure.

    Timing
    ------
    One slice, byte or group a cycle. From a slice selected to its output: `LATENCY` = 1 cycle.

    Requirements
    ------------
    `bytewise` and `grouped` are stable while there are words. `grouped` only with `bytewise`.

    Reset and faults
    ----------------
    Soft reset returns to the first byte. There are no faults.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
        self._group = params.softmax_lanes
        self._word_bytes = params.word_bytes
        word, part = 8 * params.word_bytes, 8 * params.vector_lanes
        super().__init__(
            {
                "bytewise": In(1),
                "grouped": In(1),
                "words_valid": In(1),
                "a": In(word),
                "b": In(word),
                "tap": In(TAP_LAYOUT),
                "step": Out(1),
                "valid": Out(1),
                "index": Out(range(params.vector_slices)),
                "slice_a": Out(part),
                "slice_b": Out(part),
                "slice_tap": Out(TAP_LAYOUT),
                "byte_valid": Out(1),
                "byte": Out(8),
                "byte_position": Out(range(params.word_bytes)),
                "group": Out(8 * params.softmax_lanes),
            }
        )

    @staticmethod
    def model(word: bytes, lanes: int) -> list[bytes]:
        """A word's slices, in order."""
        return [word[at : at + lanes] for at in range(0, len(word), lanes)]

    def elaborate(self, platform: object) -> Module:
        """A byte counter: its high bits select the slice, its low bits the byte in a slice."""
        m = Module()
        low_bits = exact_log2(self._lanes)
        at = Signal(range(self._word_bytes))
        byte_index = Signal(low_bits)
        # Its carry tells that the word ends: no comparison, for slices and bytes alike.
        after = Signal(len(at) + 1)
        m.d.comb += [
            after.eq(at + Mux(self.bytewise, Mux(self.grouped, self._group, 1), self._lanes)),
            self.step.eq(self.words_valid & after[-1]),
            # From the registered slice: the selection of a byte does not follow that of the slice in one cycle.
            self.byte.eq(self.slice_a.word_select(byte_index, 8)),
            self.group.eq(self.slice_a.word_select(byte_index[exact_log2(self._group) :], 8 * self._group)),
            self.byte_position.eq(Cat(byte_index, self.index)),
        ]
        slice_a, slice_b = output_register(m, self.slice_a), output_register(m, self.slice_b)
        m.d.sync += [
            self.valid.eq(self.words_valid & ~self.bytewise),
            self.byte_valid.eq(self.words_valid & self.bytewise),
        ]
        with m.If(self.words_valid):
            m.d.sync += [
                at.eq(after),
                byte_index.eq(at[:low_bits]),
                self.index.eq(at[low_bits:]),
                slice_a.eq(self.a.word_select(at[low_bits:], 8 * self._lanes)),
                slice_b.eq(self.b.word_select(at[low_bits:], 8 * self._lanes)),
                self.slice_tap.eq(self.tap),
            ]
        return m
