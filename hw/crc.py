"""CRCs in hardware: a CRC is linear, so each of its bits is an XOR of bits of the CRC before and of the word."""

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Value

from intloom.hw.spec.program_check import CRC_BITS, shift_bit


def word_part(word: Value, polynomial: int) -> Value:
    """The part that a word has in the CRC after it, without that of the CRC before it."""
    return _linear(word, lambda bits: _after_word(0, bits, len(word), polynomial))


def crc_part(crc: Value, word_bits: int, polynomial: int) -> Value:
    """The part that a CRC has in the CRC after a word of `word_bits`."""
    return _linear(crc, lambda bits: _after_word(bits, 0, word_bits, polynomial))


def _after_word(crc: int, word: int, word_bits: int, polynomial: int) -> int:
    for number in range(word_bits):
        crc = shift_bit(crc, word >> number & 1, polynomial)
    return crc


def _linear(value: Value, function: Callable[[int], int]) -> Value:
    """A linear function of a value's bits, as one XOR for each of the CRC's bits."""
    columns = [function(1 << number) for number in range(len(value))]
    rows = [sum((column >> bit & 1) << number for number, column in enumerate(columns)) for bit in range(CRC_BITS)]
    return Cat((value & Const(row, len(value))).xor() for row in rows)
