"""Memory formats: how constants lie in the weight memory, and how many words a move has.

All numbers are little-endian. A CONV reads one stream of words, from its field `weights` on:

1. the table, if it loads one: `TABLE_BYTES` bytes, the entry of byte value v at index v modulo 256;
2. the residual constants, if it adds a residual: m1 and m2 (int32), c (int64), padded to whole words; hardware ignores
   the bits above `FACTOR_BITS` and `CONSTANT_BITS`;
3. for each output block: the biases (int32) of its `cols` channels, then their scale words, then, with
   `weight_zero_points`, their zero points (int8, padded to whole words), then its weight tiles.

A scale word holds a mantissa in its low bits and a right shift above it. Hardware with `mantissa_bits` below 24 ignores
the higher bits of the mantissa. A weight tile has one word for each column, with an int8 for every row: the weight plus
the zero point of its column. The tiles of an output block are ordered by kernel row, kernel column and input block; the
input block changes fastest.

These functions define the formats. The compiler packs and the instruction simulator unpacks whole arrays with numpy;
both are tested against them.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, FP32_SIGNIFICAND_BITS, MAX_SHIFT, Affine, Scale, wrap
from intloom.hw.spec.isa import Fields, Instruction

TABLE_BYTES = 256
SCALE_SHIFT_LSB = FP32_SIGNIFICAND_BITS
"""Lowest bit of the shift in a scale word; the mantissa is below."""
SCALE_MANTISSA_MASK = (1 << SCALE_SHIFT_LSB) - 1
_RESIDUAL = struct.Struct("<iiq")
RESIDUAL_BYTES = _RESIDUAL.size
_BIAS = struct.Struct("<i")
_SCALE = struct.Struct("<I")
CHANNEL_BYTES = _BIAS.size + _SCALE.size
"""Bytes of one output channel's bias and scale word."""


def pack_scale(scale: Scale) -> int:
    """The scale word."""
    if not 0 <= scale.mantissa <= SCALE_MANTISSA_MASK or not 0 <= scale.shift <= MAX_SHIFT:
        raise EncodingError(
            f"a scale must have a mantissa of {SCALE_SHIFT_LSB} bits and a shift of at most {MAX_SHIFT}, not {scale}"
        )
    return scale.mantissa | scale.shift << SCALE_SHIFT_LSB


def unpack_scale(word: int) -> Scale:
    """The scale in a scale word."""
    return Scale(word & SCALE_MANTISSA_MASK, word >> SCALE_SHIFT_LSB & MAX_SHIFT)


def pack_residual(affine: Affine) -> bytes:
    """The residual adder's constants; shift and rounding are fields of the instruction."""
    for value, bits in ((affine.m1, FACTOR_BITS), (affine.m2, FACTOR_BITS), (affine.c, CONSTANT_BITS)):
        if not -1 << bits - 1 <= value < 1 << bits - 1:
            raise EncodingError(f"a coefficient of a residual must fit {bits} bits with its sign, not {value}")
    return _RESIDUAL.pack(affine.m1, affine.m2, affine.c)


def unpack_residual(data: bytes, shift: int, *, even: bool) -> Affine:
    """The affine operation of the residual adder, from its constants and the fields of the instruction."""
    m1, m2, c = _RESIDUAL.unpack(data[:RESIDUAL_BYTES])
    return Affine(wrap(m1, FACTOR_BITS), wrap(m2, FACTOR_BITS), wrap(c, CONSTANT_BITS), shift, even)


def pack_channels(biases: Sequence[int], scales: Sequence[Scale]) -> bytes:
    """The channel constants of one output block, one bias and one scale for each of its `cols` channels."""
    return b"".join([*map(_BIAS.pack, biases), *(_SCALE.pack(pack_scale(s)) for s in scales)])


def unpack_channels(data: bytes) -> tuple[list[int], list[Scale]]:
    """Biases and scales of one output block."""
    half = len(data) // 2
    biases = [bias for (bias,) in _BIAS.iter_unpack(data[:half])]
    return biases, [unpack_scale(word) for (word,) in _SCALE.iter_unpack(data[half:])]


def pack_zero_points(zero_points: Sequence[int], word_bytes: int) -> bytes:
    """The zero points of one output block's weights, one for each of its `cols` channels, padded to whole words."""
    packed = struct.pack(f"{len(zero_points)}b", *zero_points)
    return packed + bytes(-len(packed) % word_bytes)


def pack_tile(columns: Iterable[Sequence[int]]) -> bytes:
    """A weight tile from its columns, each the weights of all rows."""
    return b"".join(struct.pack(f"{len(column)}b", *column) for column in columns)


def tile_order(conv: Fields) -> Iterator[tuple[int, int, int]]:
    """The (kernel row, kernel column, input block) of an output block's tiles, in order."""
    return product(range(conv["kernel_h"]), range(conv["kernel_w"]), range(conv["in_blocks"]))


def conv_tiles(conv: Fields) -> int:
    """Weight tiles of one output block of a CONV."""
    return conv["kernel_h"] * conv["kernel_w"] * conv["in_blocks"]


def move_words(move: Fields) -> int:
    """Words of local memory that a LOAD or STORE accesses."""
    return move["n0"] * move["n1"] * move["n2"]


def memory_run(move: Instruction) -> int:
    """Words in memory of a run of a LOAD or STORE."""
    return move.values.get("coded") or move["n0"]


def memory_words(move: Instruction) -> int:
    """Words in memory that a LOAD or STORE accesses."""
    return memory_run(move) * move["n1"] * move["n2"]
