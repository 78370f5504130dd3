"""Even parity of words in memories: encoding, and a check of every word that is read."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec.isa import QUEUED_UNITS

BYTE_GRANULE = 9
"""Bits of a byte with its parity bit, which is the highest one."""
READER_BITS = (len(QUEUED_UNITS) - 1).bit_length()
"""Bits of the unit that reads."""


def parity_error_layout(address_bits: int) -> data.StructLayout:
    """A parity error: the unit that read the word, and the word's address."""
    return data.StructLayout({"valid": 1, "unit": READER_BITS, "address": address_bits})


def groups(value: Value, bits: int) -> Iterator[Value]:
    """Groups of `bits` bits, lowest first; the last one may be shorter."""
    return (value[at : at + bits] for at in range(0, len(value), bits))


def add_byte_parity(word: Value) -> Value:
    """The word with an even-parity bit above each byte."""
    return Cat(Cat(byte, byte.xor()) for byte in groups(word, 8))


def drop_byte_parity(word: Value) -> Value:
    """The word without the parity bits of its bytes."""
    return Cat(granule[:8] for granule in groups(word, BYTE_GRANULE))


def registered_parity(m: Module, name: str, value: Value) -> Value:
    """Whether the value had an odd number of ones 1 cycle before: a register takes the XOR of each nine bits."""
    parts = [part.xor() for part in groups(value, BYTE_GRANULE)]
    register = Signal(len(parts), name=name, reset_less=True)
    m.d.sync += register.eq(Cat(parts))
    return register.xor()


class ParityChecker(wiring.Component):
    """Checks the parity of the words that a memory returns.

    A word consists of granules, each with an even number of ones: the XOR of its bits is 0.

    Parameters
    ----------
    word_bits
        Bits of a word with its parity bits.
    granule_bits
        Bits of a granule with its parity bit.
    address_bits
        Bits of an address.
    read_latency
        Cycles from `read` to `word`.

    Members
    -------
    read, unit, address
        A read, the unit that it is for, and its address.
    word
        The memory's output register.
    error
        The word that was read has a granule of odd parity.

    Handshake
    ---------
    None. `error.valid` is a pulse; without it `error` is undefined.

    Timing
    ------
    One read per cycle. From `word` to `error`: `LATENCY` = 2 cycles, one for the XOR of at most nine bits each, one for
    the word.

    Requirements
    ------------
    Every word is written before it is read.

    Reset and faults
    ----------------
    Reset drops reads in flight. `error` is a fault, which `FaultLatch` keeps.
    """

    LATENCY = 2

    def __init__(self, word_bits: int, granule_bits: int, address_bits: int, read_latency: int) -> None:
        self._granule_bits = granule_bits
        self._read_latency = read_latency
        super().__init__(
            {
                "read": In(1),
                "unit": In(READER_BITS),
                "address": In(address_bits),
                "word": In(word_bits),
                "error": Out(parity_error_layout(address_bits)),
            }
        )

    @staticmethod
    def model(word: int, granules: int, granule_bits: int) -> bool:
        """Whether a word has a granule of odd parity."""
        return any((word >> n * granule_bits & (1 << granule_bits) - 1).bit_count() % 2 for n in range(granules))

    def elaborate(self, platform: object) -> Module:
        """A register with the XOR of each group of nine bits, then one with the word's error."""
        m = Module()
        granules = enumerate(groups(self.word, self._granule_bits))
        odd = [registered_parity(m, f"parts{number}", granule) for number, granule in granules]
        # `error.valid` is the last stage of `read`.
        cycles = self._read_latency + self.LATENCY
        read = pipeline_stages(m, "read", self.read, cycles - 1, reset_less=False)
        valid = Signal()
        m.d.sync += valid.eq(read & Cat(odd).any())
        m.d.comb += [
            self.error.valid.eq(valid),
            self.error.unit.eq(pipeline_stages(m, "unit", self.unit, cycles, reset_less=True)),
            self.error.address.eq(pipeline_stages(m, "address", self.address, cycles, reset_less=True)),
        ]
        return m
