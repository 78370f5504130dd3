"""The program check in hardware: the CRC of all words of a program, compared at every instruction and at END."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.crc import crc_after
from intloom.hw.spec.isa import BY_KIND, CHECK_BITS, CHECK_LSB, INSTRUCTION_BYTES, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import CRC_BITS, INITIAL, POLYNOMIAL, check_bits, crc_of


class ProgramCheck(wiring.Component):
    """Accumulates the CRC of a program's words and compares it with the check bits of each instruction.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    valid, last, word
        A word of the program; it is the last one of an instruction.
    end
        The instruction is END.
    mismatch
        The check bits of the instruction differ from those of the CRC, or END does not leave a CRC of 0.

    Handshake
    ---------
    `valid` qualifies `last` and `word`; there is no back-pressure.

    Timing
    ------
    One word per cycle. From an instruction's last word to `mismatch`: `LATENCY` = 2 cycles: 1 for the CRC, 1
    for the comparison.

    Requirements
    ------------
    `word` and `end` are stable from 1 cycle after an instruction's last word until `mismatch` has been read. The next
    instruction's first word comes after that.

    Reset and faults
    ----------------
    Reset starts a new program. A mismatch lasts until the next word.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._word_bits = params.word_bits
        super().__init__(
            {
                "valid": In(1),
                "last": In(1),
                "word": In(self._word_bits),
                "end": In(1),
                "mismatch": Out(1),
            }
        )

    @staticmethod
    def model(program: Sequence[bytes]) -> list[bool]:
        """Whether `mismatch` is high after each instruction."""
        found, crc = [], INITIAL
        for code in program:
            word = int.from_bytes(code, "little")
            crc = crc_of((word & (1 << CHECK_LSB) - 1).to_bytes(INSTRUCTION_BYTES, "little"), crc)
            found.append(word >> CHECK_LSB != check_bits(crc) or (code[0] == BY_KIND[Kind.END].opcode and crc != 0))
        return found

    def elaborate(self, platform: object) -> Module:
        """Two stages: the CRC, the comparison."""
        m = Module()
        payload_bits = self._word_bits - CHECK_BITS
        crc = Signal(CRC_BITS, init=INITIAL)
        # The check bits themselves count as zeros.
        found = self.word[payload_bits:]
        payload = Cat(self.word[:payload_bits], found & ~self.last.replicate(CHECK_BITS))
        with m.If(self.valid):
            m.d.sync += crc.eq(crc_after(m, crc, payload, POLYNOMIAL))
        m.d.sync += self.mismatch.eq((found != Cat(crc.xor(), crc)[:CHECK_BITS]) | (self.end & crc.any()))
        return m
