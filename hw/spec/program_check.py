"""The program check: a CRC-32C over all instructions, of which every instruction carries a part.

The CRC runs over the instructions in the order of memory, lowest bit first, from `INITIAL`. The check bits, the highest
`CHECK_BITS` of every instruction, count as zeros. They hold the parity of the CRC after the instruction, and above it
the lowest bits of that CRC. CRC-32C has the factor x + 1, so its parity is the parity of all bits so far: an odd number
of changed bits in an instruction is found before that instruction executes, an even number with probability 31/32.

END carries the CRC of all bits before it in its field `crc`. The CRC after END is therefore 0. CRC-32C has a Hamming
distance of 4 up to 2^31 - 1 bits, and the longest program has 2^29: at END, any 3 changed bits in a program are found,
and any burst of 32.
"""

from collections.abc import Iterable, Iterator

from intloom.common.errors import EncodingError
from intloom.hw.spec.fields import CHECK_BITS, CHECK_LSB, INSTRUCTION_BYTES
from intloom.hw.spec.instructions import BY_KIND, Kind

CRC_BITS = 32
POLYNOMIAL = 0x82F63B78
"""CRC-32C, bits reversed."""
INITIAL = 0xFFFFFFFF
_END = BY_KIND[Kind.END]
_CRC_BYTE = _END.offsets["crc"] // 8
_PAYLOAD = (1 << CHECK_LSB) - 1


def shift_bit(crc: int, bit: int, polynomial: int = POLYNOMIAL) -> int:
    """The CRC after one more bit."""
    return crc >> 1 ^ (polynomial if (crc ^ bit) & 1 else 0)


def _after_byte(crc: int) -> int:
    for _ in range(8):
        crc = shift_bit(crc, 0)
    return crc


_TABLE = tuple(map(_after_byte, range(256)))


def crc_of(data: bytes, crc: int = INITIAL) -> int:
    """The CRC after these bytes."""
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def check_bits(crc: int) -> int:
    """The check bits of an instruction, from the CRC after it."""
    return crc.bit_count() & 1 | (crc << 1 & (1 << CHECK_BITS) - 1)


def _payload(code: bytes) -> bytes:
    """An instruction with zeros for its check bits."""
    return (int.from_bytes(code, "little") & _PAYLOAD).to_bytes(INSTRUCTION_BYTES, "little")


def _checked(codes: Iterable[bytes]) -> Iterator[bytes]:
    crc = INITIAL
    for code in map(_payload, codes):
        if code[0] == _END.opcode:
            before = crc_of(code[:_CRC_BYTE], crc)
            # With zeros to the end the CRC after END is 0; END's check bits alone would miss some changes there.
            code = (code[:_CRC_BYTE] + before.to_bytes(CRC_BITS // 8, "little")).ljust(INSTRUCTION_BYTES, b"\0")
        crc = crc_of(code, crc)
        yield (int.from_bytes(code, "little") | check_bits(crc) << CHECK_LSB).to_bytes(INSTRUCTION_BYTES, "little")


def add_check(codes: Iterable[bytes]) -> bytes:
    """A program from its encoded instructions, with all check bits and END's CRC."""
    return b"".join(_checked(codes))


def remove_check(program: bytes) -> list[bytes]:
    """The encoded instructions of a program without check bits and END's CRC.

    Raises
    ------
    EncodingError
        An instruction's check bits do not match, or END's CRC, or the last instruction is not END.
    """
    starts = range(0, len(program), INSTRUCTION_BYTES)
    codes = [program[at : at + INSTRUCTION_BYTES] for at in starts]
    for index, (code, wanted) in enumerate(zip(codes, _checked(codes), strict=True)):
        if code != wanted:
            raise EncodingError(f"instruction {index} was altered: the program check does not match; compile it again")
    # END without its opcode has check bits alone, which an even number of changed bits can leave right.
    if codes and codes[-1][0] != _END.opcode:
        raise EncodingError(f"instruction {len(codes) - 1} was altered: a program ends with END; compile it again")
    crc_field = ((1 << CRC_BITS) - 1) << _END.offsets["crc"]
    payloads = (int.from_bytes(code, "little") & _PAYLOAD for code in codes)
    cleared = (word & ~crc_field if word & 0xFF == _END.opcode else word for word in payloads)
    return [word.to_bytes(INSTRUCTION_BYTES, "little") for word in cleared]
