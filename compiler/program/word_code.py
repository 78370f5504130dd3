"""Encodes and decodes whole arrays of words; `intloom.hw.spec.word_code` defines the code."""

import numpy as np

from intloom.common.errors import EncodingError
from intloom.hw.spec.word_code import UNITS, WIDTH_BITS, group_words


def encode_words(data: bytes, rows: int) -> bytes:
    """The code of words of `rows` bytes, padded to whole words."""
    words = np.frombuffer(data, np.int8).reshape(-1, rows)
    group = group_words(rows)
    words = np.concatenate([words, np.zeros((-len(words) % group, rows), np.int8)])
    significant = np.bitwise_or.reduce(np.where(words < 0, ~words, words), axis=1)
    widths = np.where(words.any(1), np.frexp(significant)[1] + 1, 0).astype(np.uint8)
    bits = np.unpackbits(words.view(np.uint8)[:, :, None], axis=2, bitorder="little").swapaxes(1, 2)
    heads = np.unpackbits(widths[:, None], axis=1, bitorder="little")[:, :WIDTH_BITS].reshape(-1, 1, rows)
    units = np.concatenate([heads, bits.reshape(-1, group * UNITS, rows)], axis=1)
    used = (np.arange(UNITS) < widths[:, None]).reshape(-1, group * UNITS)
    code = units[np.concatenate([np.ones((len(used), 1), bool), used], axis=1)]
    padded = np.concatenate([code, np.zeros((-len(code) % UNITS, rows), np.uint8)])
    return np.packbits(padded, bitorder="little").tobytes()


def decode_words(code: bytes, count: int, rows: int) -> bytes:
    """The `count` words that whole words of code stand for; EncodingError if they are no code of as many."""
    units = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").reshape(-1, rows)
    heads = (units.reshape(len(units), -1, WIDTH_BITS) @ (1 << np.arange(WIDTH_BITS))).tolist()
    widths: list[int] = []
    firsts: list[int] = []
    at = 0
    while len(widths) < count and at < len(units):
        group = heads[at][: count - len(widths)]
        at += 1
        for width in group:
            firsts.append(at)
            at += width
        widths += group
    if len(widths) < count or max(widths) > UNITS or -(-at // UNITS) * UNITS != len(units):
        raise EncodingError(f"{len(units) // UNITS} coded words must be the code of {count} words, but they are not")
    width = np.array(widths)[:, None]
    # Bits above a byte's sign repeat it; a word without units has no sign.
    index = np.array(firsts)[:, None] + np.minimum(np.arange(UNITS), width - 1)
    bits = units[np.where(width > 0, index, 0)] * (width > 0)[:, :, None]
    return np.packbits(bits.swapaxes(1, 2), axis=2, bitorder="little").tobytes()
