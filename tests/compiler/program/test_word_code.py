"""The code of words: what it says, read bit by bit as the specification does, and what is no code."""

import random

import pytest

from intloom.common.errors import EncodingError
from intloom.compiler.program.word_code import decode_words, encode_words
from tests.hw.dma.test_word_decoder import random_words


def _read(code: bytes, count: int, rows: int) -> bytes:
    """The words of a code, by the rules of `intloom.hw.spec.word_code`."""
    bits = int.from_bytes(code, "little")
    unit = 0
    words = bytearray()
    while len(words) < count * rows:
        widths = bits >> unit * rows
        unit += 1
        for _ in range(min(rows // 4, count - len(words) // rows)):
            width, widths = widths & 15, widths >> 4
            planes = [bits >> (unit + min(k, width - 1)) * rows if width else 0 for k in range(8)]
            words += bytes(sum((plane >> byte & 1) << k for k, plane in enumerate(planes)) for byte in range(rows))
            unit += width
    assert len(code) == -(-unit // 8) * rows
    return bytes(words)


@pytest.mark.parametrize("rows", [4, 8, 16, 32])
def test_words_come_back(rows: int, rng: random.Random) -> None:
    for count in (1, 2, 3, 7, 8, 9, 65):
        data = random_words(rng, count, rows)
        code = encode_words(data, rows)
        assert decode_words(code, count, rows) == _read(code, count, rows) == data


@pytest.mark.parametrize("byte", range(256))
def test_every_byte_takes_its_bits(byte: int) -> None:
    """Of four words of which one has the byte in all positions, with a unit of widths."""
    signed = byte - 256 if byte > 127 else byte
    width = next(w for w in range(9) if (signed == 0 if w == 0 else -(1 << w - 1) <= signed < 1 << w - 1))
    data = bytes([byte]) * 16 + bytes(48)
    code = encode_words(data, 16)
    assert len(code) == -(-(1 + width) // 8) * 16
    assert decode_words(code, 4, 16) == data


@pytest.mark.parametrize(
    ("code", "count"),
    [(b"\x09" + bytes(15), 1), (b"\x08" + bytes(15), 1), (bytes(32), 1), (bytes(16), 40), (b"\x01" + bytes(31), 2)],
    ids=["width 9", "too few words", "a word too many", "no widths", "an unused word"],
)
def test_what_is_no_code_is_an_error(code: bytes, count: int) -> None:
    with pytest.raises(EncodingError, match=f"must be the code of {count} words"):
        decode_words(code, count, 16)
