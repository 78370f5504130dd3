"""The check of constants: a CRC-32 of the words that a LOAD reads.

Field `crc` of a LOAD is the CRC-32 (IEEE 802.3, as in zlib) of all words that it reads from memory, in the order in
which it reads them; of coded words, that is their code. The hardware computes it while the words pass, and another
result is a fault with cause CONSTANT_CHECK and the index of the LOAD. Up to two changed bits in a LOAD's words are
found, any burst of 32, and three changed bits in up to 11 KB. 0 means that the words are not checked: activations
have no CRC that the compiler could know.
"""

import zlib

POLYNOMIAL = 0xEDB88320
"""CRC-32, bits reversed."""
INITIAL = 0xFFFFFFFF
"""The CRC before the first word. The field is the complement of the CRC after the last one."""


def block_crc(words: bytes) -> int:
    """Field `crc` of a LOAD that reads these words."""
    return zlib.crc32(words)
