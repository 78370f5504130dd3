"""Reference model of CONV, pixel by pixel, from docs/architecture.md alone."""

from __future__ import annotations

from itertools import product

import numpy as np

from intloom.hw.spec.arith import Affine, Scale, affine, requantize, wrap
from intloom.hw.spec.isa import SCRATCH_BITS, ConvMode, Instruction, TableUse
from intloom.hw.spec.params import HardwareParams

_ADDRESSES = 1 << SCRATCH_BITS


class Reference:
    """A scratchpad, a weight memory, and the table that instructions may keep."""

    def __init__(self, params: HardwareParams, scratch: np.ndarray, weights: np.ndarray) -> None:
        self.params = params
        self.scratch = scratch.reshape(-1, params.rows).copy()
        self.weights = weights.reshape(-1, params.rows)
        self.table: list[int] = [0] * 256

    def _weight_bytes(self, address: int, words: int) -> bytes:
        count = len(self.weights)
        return b"".join(self.weights[(address + i) % count].tobytes() for i in range(words))

    def conv(self, i: Instruction) -> None:
        p = self.params
        at = i["weights"]
        if i["table"] == TableUse.LOAD:
            self.table = list(np.frombuffer(self._weight_bytes(at, p.table_words), np.int8))
            at += p.table_words
        residual = None
        if i["residual"]:
            raw = self._weight_bytes(at, p.residual_words)
            at += p.residual_words
            m1, m2 = (int.from_bytes(raw[k : k + 4], "little", signed=True) for k in (0, 4))
            c = wrap(int.from_bytes(raw[8:16], "little", signed=True), 48)
            residual = Affine(m1, m2, c, i["res_shift"], bool(i["res_even"]))
        tiles = i["kernel_h"] * i["kernel_w"] * i["in_blocks"]
        if i["mode"] >= ConvMode.DEPTHWISE:
            tiles = 1 if i["mode"] == ConvMode.DEPTHWISE else i["kernel_h"]
        for block in range(i["out_blocks"]):
            channels = self._weight_bytes(at, p.channel_words)
            at += p.channel_words
            zero_points = np.zeros(p.cols, np.int64)
            if i["weight_zero_points"]:
                words = -(-p.cols // p.rows)
                zero_points += np.frombuffer(self._weight_bytes(at, words), np.int8)[: p.cols]
                at += words
            raw = self._weight_bytes(at, tiles * p.cols)
            at += tiles * p.cols
            weights = np.frombuffer(raw, np.int8).reshape(tiles, p.cols, p.rows) - zero_points[:, None]
            for oy in range(i["out_h"]):
                for ox in range(i["out_w"]):
                    self._pixel(i, block, oy, ox, weights, channels, residual)

    def _pixel(
        self,
        i: Instruction,
        block: int,
        oy: int,
        ox: int,
        weights: np.ndarray,
        channels: bytes,
        residual: Affine | None,
    ) -> None:
        p = self.params
        if i["mode"] >= ConvMode.DEPTHWISE:
            sums = self._depthwise(i, block, oy, ox, weights)
        else:
            sums = np.zeros(p.cols, np.int64)
            taps = product(range(i["kernel_h"]), range(i["kernel_w"]), range(i["in_blocks"]))
            for tile, (ky, kx, b) in enumerate(taps):
                sums += weights[tile] @ self._input(i, block, oy, ox, ky, kx, b)
        for column in range(p.cols):
            bias, packed = (
                int.from_bytes(channels[at : at + 4], "little", signed=signed)
                for at, signed in ((4 * column, True), (4 * (p.cols + column), False))
            )
            scale = Scale(packed & ((1 << p.mantissa_bits) - 1), packed >> 24 & 63)
            correction = i["subtract_zp_in"] * i["zp_in"] * int(weights[:, column].sum())
            total = wrap(wrap(int(sums[column]), p.acc_bits) + bias - wrap(correction, p.acc_bits), 32)
            value = requantize(total, scale, i["zp_out"], p.match)
            if i["table"] != TableUse.NONE:
                value = int(self.table[value & 255])
            self._write(i, block * p.cols + column, oy, ox, value, residual)

    def _write(self, i: Instruction, channel: int, oy: int, ox: int, value: int, residual: Affine | None) -> None:
        rows = self.params.rows
        if residual is not None:
            word = i["res_base"] + channel // rows * i["res_plane"] + oy * i["res_row"] + ox
            value = affine(value, int(self.scratch[word % _ADDRESSES, channel % rows]), residual)
        channel_byte = i["out_lane"] + channel
        word = i["out_base"] + channel_byte // rows * i["out_plane"] + oy * i["out_row"] + ox * i["out_x"]
        self.scratch[word % _ADDRESSES, channel_byte % rows] = value

    def _depthwise(self, i: Instruction, block: int, oy: int, ox: int, weights: np.ndarray) -> np.ndarray:
        """The sums of a pixel; array row r holds the word that was read r words before the pixel's last one."""
        whole = i["mode"] == ConvMode.DEPTHWISE
        reach = (i["kernel_h"] - 1) * i["dilation_h"] + 1 if whole else 1
        height = max(i["in_blocks"], (i["out_h"] - 1) * i["stride_h"] + reach)
        last_column = ox * i["stride_w"] + (i["kernel_w"] - 1) * i["dilation_w"]
        last = last_column * height + oy * i["stride_h"] + reach - 1
        word = i.with_fields(mode=ConvMode.BLOCKS, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1)
        sums = np.zeros(self.params.cols, np.int64)
        for tile, columns in enumerate(weights):
            for row in range(min(self.params.rows, last + 1)):
                column, below = divmod(last - row, height)
                read = self._input(word, block, below + tile * i["dilation_h"], column, 0, 0, 0)
                sums += columns[:, row] * read[: self.params.cols]
        return sums

    def _input(self, i: Instruction, block: int, oy: int, ox: int, ky: int, kx: int, b: int) -> np.ndarray:
        rows = self.params.rows
        pixels = rows // 4 if i["mode"] == ConvMode.PACKED else 1
        steps = oy * i["stride_h"] + ky * i["dilation_h"]
        iy = i["iy0"] + steps
        ix = i["ix0"] + ox * i["stride_w"] + kx * i["dilation_w"] * pixels
        row = i["in_row_off"] + steps * i["in_row"]
        row %= i["in_ring"] or _ADDRESSES
        base = i["in_base"] + block * i["in_block_step"] + b * i["in_plane"] + row
        if i["mode"] != ConvMode.PACKED:
            inside = 0 <= iy < i["in_h"] and 0 <= ix < i["in_w"]
            return self.scratch[(base + ix) % _ADDRESSES].astype(np.int64) if inside else np.full(rows, i["zp_in"])
        word = np.full((pixels, 4), i["zp_in"], np.int64)
        for number in range(pixels):
            x = ix + number
            if 0 <= iy < i["in_h"] and 0 <= x < i["in_w"]:
                word[number] = self.scratch[(base + x // pixels) % _ADDRESSES].reshape(pixels, 4)[x % pixels]
        return word.reshape(rows)
