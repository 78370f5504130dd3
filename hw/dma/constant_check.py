"""The check of constants in hardware: `intloom.hw.spec.constant_check` defines it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.crc import crc_after
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.spec.constant_check import INITIAL, POLYNOMIAL, block_crc
from intloom.hw.spec.isa import COUNT_BITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import CRC_BITS

CHECKED_IN_FLIGHT = 8
"""Loads with a CRC that may be in flight: constants come in long runs, so fewer are in flight than loads of rows."""


class ConstantCheck(wiring.Component):
    """Computes the CRC of the beats of each load and compares it with that of the instruction.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    space, issue, crc
        Another load with a CRC may issue; it issues; its CRC.
    beat, word
        A word from memory.
    last, checked, index
        A load has its last word; it has a CRC; its index.
    mismatch, mismatch_index
        The CRC differs; the load's index.
    busy
        The end of a load with a CRC has not been compared.

    Handshake
    ---------
    `issue` only while `space` is high. `beat`, `last` and `mismatch` are pulses. `last` comes with or after the load's
    last beat, before the next load's first one.

    Timing
    ------
    One word per cycle. From `last` to `mismatch`: `LATENCY` = 2 cycles: 1 for the CRC, 1 for the comparison. `busy` is
    high in these 2 cycles.

    Requirements
    ------------
    Loads end in the order of issue.

    Reset and faults
    ----------------
    Reset drops all loads. The load unit raises the fault.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._word_bits = params.word_bits
        super().__init__(
            {
                "space": Out(1),
                "issue": In(1),
                "crc": In(CRC_BITS),
                "beat": In(1),
                "word": In(self._word_bits),
                "last": In(1),
                "checked": In(1),
                "index": In(COUNT_BITS),
                "mismatch": Out(1),
                "mismatch_index": Out(COUNT_BITS),
                "busy": Out(1),
            }
        )

    @staticmethod
    def model(loads: Iterable[tuple[Mapping[str, Any], bytes]]) -> Iterator[bool]:
        """Whether each load is a mismatch, from its instruction and the words that arrive."""
        for load, words in loads:
            yield load["crc"] not in (0, block_crc(words))

    def elaborate(self, platform: object) -> Module:
        """Two stages, as in `ProgramCheck`; the CRCs of the instructions wait in a FIFO."""
        m = Module()
        m.submodules.expected = expected = CreditFifo(CRC_BITS, CHECKED_IN_FLIGHT)
        crc = Signal(CRC_BITS, name="crc_so_far", reset_less=True)
        ended, compared, differs = Signal(), Signal(), Signal(reset_less=True)
        ended_index = Signal(COUNT_BITS, reset_less=True)
        first = Signal(init=1)
        m.d.comb += [
            self.space.eq(expected.credit_available),
            expected.take_credit.eq(self.issue),
            expected.push.eq(self.issue),
            expected.word.eq(self.crc),
            expected.o.ready.eq(ended),
            self.mismatch.eq(compared & differs),
            self.busy.eq(ended | compared),
        ]
        m.d.sync += [
            ended.eq(self.last & self.checked),
            ended_index.eq(self.index),
            compared.eq(ended),
            differs.eq(expected.o.payload != ~crc),
            self.mismatch_index.eq(ended_index),
        ]
        # The initial CRC has all bits set.
        assert INITIAL == (1 << CRC_BITS) - 1
        with m.If(self.beat):
            before = crc | first.replicate(CRC_BITS)
            m.d.sync += [crc.eq(crc_after(m, before, self.word, POLYNOMIAL)), first.eq(0)]
        with m.If(self.last):
            m.d.sync += first.eq(1)
        return m
