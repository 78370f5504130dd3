"""Reference model of the vector instructions, from the instruction table and `intloom.hw.spec.arith` alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from intloom.hw.spec.arith import INT8_MIN, Affine, RoundingMode, add, average, multiply, requantize, wrap
from intloom.hw.spec.isa import SCRATCH_BITS, Instruction, Kind
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, softmax
from intloom.hw.spec.vector_depthwise import TAPS, constant_words, unpack_depthwise_scale
from intloom.hw.vector.lane_functions.registry import lane_functions

_WRAP = 1 << SCRATCH_BITS


def signed(byte: int) -> int:
    """A byte as int8."""
    return byte - 256 if byte > 127 else byte


@dataclass
class Reference:
    """Scratchpad words as bytes, and the vector table."""

    words: list[bytes]
    table: bytes = bytes(256)
    exponentials: list[bytes] = field(default_factory=lambda: [bytes(256)] * EXPONENTIAL_BYTES)
    """Byte by byte, from the lowest on."""
    match: RoundingMode = RoundingMode.ORT
    mantissa_bits: int = 24
    reads: int = 0
    _word_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self._word_bytes = len(self.words[0])

    def run(self, i: Instruction) -> None:
        """Execute one instruction."""
        if i.kind is Kind.VTABLE:
            count = 256 // self._word_bytes
            self.table = b"".join(self.words[i["a_base"] + k] for k in range(count))
            return
        if i.kind is Kind.VEXP:
            count = 256 // self._word_bytes
            self.exponentials[i["part"]] = b"".join(self.words[i["a_base"] + k] for k in range(count))
            return
        if i.kind is Kind.VSOFTMAX:
            self._softmax(i)
            return
        if i.kind is Kind.VDEPTHWISE:
            self._depthwise(i)
            return
        result: dict[Kind, Callable[[Instruction, int, int, int], list[int]]] = {
            Kind.VCOPY: self._copy,
            Kind.VADD: self._add,
            Kind.VMUL: self._multiply,
            Kind.VMAX: self._maximum,
            Kind.VAVG: self._average,
        }
        for block in range(i["blocks"]):
            for y in range(i["out_h"]):
                for x in range(i["out_w"]):
                    values = result.get(i.kind, self._function)(i, block, y, x)
                    word = bytes(self.table[v & 0xFF] if i["table"] else v & 0xFF for v in values)
                    at = i["out_base"] + block * i["out_plane"] + y * i["out_row"] + x * i["out_x"]
                    self._store(i, at % _WRAP, word)

    def _softmax(self, i: Instruction) -> None:
        table = [int.from_bytes(bytes(parts), "little") for parts in zip(*self.exponentials, strict=True)]
        blocks = range(i["blocks"])
        for y in range(i["out_h"]):
            for x in range(i["out_w"]):
                at = i["a_base"] + y * i["a_row"] + x
                values = [v for block in blocks for v in self._word(at + block * i["a_plane"])]
                channels = len(values) - self._word_bytes + i["last_bytes"]
                found = softmax(values, table, i["less"], i["zp_out"], channels)
                for block in blocks:
                    part = found[block * self._word_bytes : (block + 1) * self._word_bytes]
                    word = bytes(self.table[v & 0xFF] if i["table"] else v & 0xFF for v in part)
                    to = i["out_base"] + block * i["out_plane"] + y * i["out_row"] + x * i["out_x"]
                    self.words[to % _WRAP] = word

    def _depthwise(self, i: Instruction) -> None:
        taps = TAPS * i["kernel_h"]
        constants = [self.words[(i["b_base"] + k) % _WRAP] for k in range(constant_words(i["kernel_h"]))]
        channels = b"".join(constants[taps:])
        values = [int.from_bytes(channels[at : at + 4], "little") for at in range(0, len(channels), 4)]
        biases, scales = values[: self._word_bytes], values[self._word_bytes :]
        for y in range(i["out_h"]):
            for x in range(i["out_w"]):
                sums = biases
                for tap in range(taps):
                    word = self._input(i, y * i["stride_h"] + tap // TAPS, x * i["stride_w"] + tap % TAPS)
                    sums = [s + a * signed(w) for s, a, w in zip(sums, word, constants[tap], strict=True)]
                found = [
                    requantize(wrap(s, 32), unpack_depthwise_scale(scale, self.mantissa_bits), i["zp_out"], self.match)
                    for s, scale in zip(sums, scales, strict=True)
                ]
                at = i["out_base"] + y * i["out_row"] + x * i["out_x"]
                self.words[at % _WRAP] = bytes(self.table[v & 0xFF] if i["table"] else v & 0xFF for v in found)

    def _input(self, i: Instruction, row: int, column: int) -> list[int]:
        """A word under a depthwise convolution, counted from its first row and column."""
        iy, ix = i["iy0"] + row, i["ix0"] + column
        if not (0 <= iy < i["in_h"] and 0 <= ix < i["in_w"]):
            return [i["zp_in"]] * self._word_bytes
        offset = (i["a_row_off"] + row * i["a_row"]) % (i["a_ring"] or _WRAP)
        return self._word(i["a_base"] + offset + ix)

    def _store(self, i: Instruction, at: int, word: bytes) -> None:
        if i.kind is not Kind.VCOPY:
            self.words[at] = word
            return
        n = self._word_bytes
        rotated = bytes(word[(k - i["rotate"]) % n] for k in range(n))
        chosen = range(i["first_byte"], i["first_byte"] + i["byte_count"])
        self.words[at] = bytes(rotated[k] if k in chosen else self.words[at][k] for k in range(n))

    def _word(self, addr: int) -> list[int]:
        return [signed(b) for b in self.words[addr % _WRAP]]

    def _copy(self, i: Instruction, block: int, y: int, x: int) -> list[int]:
        row, column = y // i["up_h"], x // i["up_w"]
        return self._word(i["a_base"] + block * i["a_plane"] + row * i["a_row"] + column * i["a_x"])

    def _pair(self, i: Instruction, block: int, y: int, x: int) -> Iterator[tuple[int, int]]:
        a = self._word(i["a_base"] + block * i["a_plane"] + y * i["a_row"] + x)
        b = self._word(i["b_base"] + block * i["b_plane"] + y * i["b_row"] + x)
        return zip(a, b, strict=True)

    def _add(self, i: Instruction, block: int, y: int, x: int) -> list[int]:
        return [add(a, b, _constants(i)) for a, b in self._pair(i, block, y, x)]

    def _multiply(self, i: Instruction, block: int, y: int, x: int) -> list[int]:
        return [multiply(a, b, i["zp_a"], i["zp_b"], _constants(i)) for a, b in self._pair(i, block, y, x)]

    def _function(self, i: Instruction, block: int, y: int, x: int) -> list[int]:
        """An elementwise instruction without affine coefficients: its hardware model."""
        return [lane_functions()[i.kind].model(a, b, 0) for a, b in self._pair(i, block, y, x)]

    def _window(self, i: Instruction, block: int, y: int, x: int) -> Iterator[list[int] | None]:
        for ky in range(i["kernel_h"]):
            for kx in range(i["kernel_w"]):
                iy = i["iy0"] + y * i["stride_h"] + ky
                ix = i["ix0"] + x * i["stride_w"] + kx
                inside = 0 <= iy < i["in_h"] and 0 <= ix < i["in_w"]
                yield self._word(i["a_base"] + block * i["a_plane"] + iy * i["a_row"] + ix) if inside else None

    def _maximum(self, i: Instruction, block: int, y: int, x: int) -> list[int]:
        words = [w for w in self._window(i, block, y, x) if w is not None]
        return [max(lane) for lane in zip([INT8_MIN] * self._word_bytes, *words, strict=True)]

    def _average(self, i: Instruction, block: int, y: int, x: int) -> list[int]:
        outside = [i["zp_in"]] * self._word_bytes
        words = [outside if w is None else w for w in self._window(i, block, y, x)]
        return [average(sum(lane), _constants(i)) for lane in zip(*words, strict=True)]


def _constants(i: Instruction) -> Affine:
    return Affine(i["m1"], i["m2"], i["c"], i["shift"], bool(i["even"]))
