"""Executes instructions byte by byte as the manual describes them, with the arithmetic of `hw.spec.arith`."""

from collections.abc import Iterator
from itertools import product

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.hw.spec import arith
from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import ConvMode, Instruction, Kind, LoadTarget, TableUse
from intloom.hw.spec.norm import normalize, unpack_constants
from intloom.hw.spec.softmax import softmax
from intloom.sim.isa_sim.machine import Machine


def _signed(byte: int) -> int:
    return arith.wrap(byte, 8)


def _int(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


class SlowMachine:
    """Works on copies of a machine's memories; `scratch`, `weights` and `dram` are the result."""

    def __init__(self, machine: Machine) -> None:
        self.params = machine.params
        self.scratch = [bytearray(w.tobytes()) for w in machine.scratch]
        self.weights = [w.tobytes() for w in machine.weights]
        self.dram = [w.tobytes() for w in machine.dram]
        self.mac_table = machine.mac_table.tobytes()
        self.vector_table = machine.vector_table.tobytes()
        self.exponentials = machine.exponentials
        self.sums = machine.sums.tolist()

    def execute(self, i: Instruction) -> None:
        """Execute an instruction, of LOAD only one without a code."""
        if i.kind in (Kind.LOAD, Kind.STORE):
            self._move(i)
            return
        if i.kind is Kind.CONV:
            self._conv(i)
            return
        if i.kind is Kind.VSOFTMAX:
            self._softmax(i)
            return
        if i.kind is Kind.VNORM:
            self._norm(i)
            return
        if i.kind is Kind.VDEPTHWISE:
            self._depthwise(i)
            return
        for block in range(i["blocks"]):
            for oy in range(i["out_h"]):
                for ox in range(i["out_w"]):
                    self._vector_word(i, block, oy, ox)

    def _move(self, i: Instruction) -> None:
        for plane, row, word in product(range(i["n2"]), range(i["n1"]), range(i["n0"])):
            far = i["dram"] + plane * i["dram_s2"] + row * i["dram_s1"] + word
            near = (i["local"] + plane * i["local_s2"] + row * i["local_s1"] + word) % ADDRESS_SPACE
            if i.kind is Kind.STORE:
                self.dram[far] = bytes(self.scratch[near])
            elif i["target"] == LoadTarget.WEIGHT:
                self.weights[near % len(self.weights)] = self.dram[far]
            else:
                self.scratch[near] = bytearray(self.dram[far])

    def _vector_word(self, i: Instruction, block: int, oy: int, ox: int) -> None:
        rows = self.params.rows
        target = self._word(i["out_base"] + block * i["out_plane"] + oy * i["out_row"] + ox * i["out_x"])
        if i.kind is Kind.VCOPY:
            pixel = oy // i["up_h"] * i["a_row"] + ox // i["up_w"] * i["a_x"]
            source = self._word(i["a_base"] + block * i["a_plane"] + pixel)
            for byte in range(rows):
                position = (byte + i["rotate"]) % rows
                if i["first_byte"] <= position < i["first_byte"] + i["byte_count"]:
                    target[position] = self._tabled(i, source[byte])
            return
        results = [self._vector_byte(i, block, oy, ox, byte) for byte in range(rows)]
        for byte, value in enumerate(results):
            target[byte] = self._tabled(i, value & 0xFF)

    def _softmax(self, i: Instruction) -> None:
        table = [int.from_bytes(bytes(int(b) for b in parts), "little") for parts in self.exponentials.T]
        rows, blocks = self.params.rows, range(i["blocks"])
        for oy in range(i["out_h"]):
            for ox in range(i["out_w"]):
                at = i["a_base"] + oy * i["a_row"] + ox
                values = [_signed(b) for block in blocks for b in self._word(at + block * i["a_plane"])]
                channels = len(values) - rows + i["last_bytes"]
                found = softmax(values, table, i["less"], i["zp_out"], channels)
                for k, value in enumerate(found):
                    to = i["out_base"] + k // rows * i["out_plane"] + oy * i["out_row"] + ox * i["out_x"]
                    self._word(to)[k % rows] = self._tabled(i, value & 0xFF)

    def _norm(self, i: Instruction) -> None:
        rows, blocks = self.params.rows, range(i["blocks"])
        packed = b"".join(self._word(i["b_base"] + k) for k in range(4 * i["blocks"]))
        constants = unpack_constants(packed, self.params.softmax_lanes)
        results = []
        for oy in range(i["out_h"]):
            for ox in range(i["out_w"]):
                at = i["a_base"] + oy * i["a_row"] + ox
                values = [_signed(b) for block in blocks for b in self._word(at + block * i["a_plane"])]
                channels = len(values) - rows + i["last_bytes"]
                found = normalize(values, constants, bool(i["center"]), i["zp_in"], i["epsilon"], channels)
                results.append((oy, ox, found))
        for oy, ox, found in results:
            for k, value in enumerate(found):
                to = i["out_base"] + k // rows * i["out_plane"] + oy * i["out_row"] + ox * i["out_x"]
                self._word(to)[k % rows] = self._tabled(i, value & 0xFF)

    def _depthwise(self, i: Instruction) -> None:
        rows, found = self.params.rows, {}
        data = b"".join(self.scratch[i["b_base"] + k] for k in range(i["kernel_h"] * i["kernel_w"] + 8))
        at_biases = i["kernel_h"] * i["kernel_w"] * rows
        for oy in range(i["out_h"]):
            for ox in range(i["out_w"]):
                for c in range(rows):
                    total = _int(data[at_biases + 4 * c :][:4])
                    for ky in range(i["kernel_h"]):
                        for kx in range(i["kernel_w"]):
                            value = self._depthwise_word(i, oy * i["stride_h"] + ky, ox * i["stride_w"] + kx)[c]
                            total += _signed(data[(i["kernel_w"] * ky + kx) * rows + c]) * value
                    word = int.from_bytes(data[at_biases + 4 * (rows + c) :][:4], "little")
                    mantissa = word & (1 << self.params.mantissa_bits) - 1
                    scale = arith.Scale(mantissa if mantissa >> self.params.mantissa_bits - 1 else 0, word >> 24 & 127)
                    value = arith.requantize(arith.wrap(total, 32), scale, i["zp_out"], self.params.match)
                    found[oy, ox, c] = self._tabled(i, value & 0xFF)
        for (oy, ox, c), byte in found.items():
            self._word(i["out_base"] + oy * i["out_row"] + ox * i["out_x"])[c] = byte

    def _depthwise_word(self, i: Instruction, down: int, right: int) -> list[int]:
        """The input word in a row and a column under the windows."""
        y, x = i["iy0"] + down, i["ix0"] + right
        if not (0 <= y < i["in_h"] and 0 <= x < i["in_w"]):
            return [i["zp_in"]] * self.params.rows
        offset = (i["a_row_off"] + down * i["a_row"]) % (i["a_ring"] or ADDRESS_SPACE)
        return [_signed(v) for v in self._word(i["a_base"] + offset + x)]

    def _word(self, address: int) -> bytearray:
        """A word of the scratchpad; addresses wrap."""
        return self.scratch[address % ADDRESS_SPACE]

    def _tabled(self, i: Instruction, byte: int) -> int:
        return self.vector_table[byte] if i["table"] else byte

    def _vector_byte(self, i: Instruction, block: int, oy: int, ox: int, byte: int) -> int:
        if i.kind is Kind.VMAX:
            return max((v for v in self._window(i, block, oy, ox, byte) if v is not None), default=arith.INT8_MIN)
        affine = arith.Affine(i["m1"], i["m2"], i["c"], i["shift"], bool(i["even"]))
        if i.kind is Kind.VAVG:
            total = sum(i["zp_in"] if v is None else v for v in self._window(i, block, oy, ox, byte))
            return arith.average(total, affine)
        a, b = (
            _signed(self._word(i[f"{n}_base"] + block * i[f"{n}_plane"] + oy * i[f"{n}_row"] + ox)[byte]) for n in "ab"
        )
        return arith.add(a, b, affine) if i.kind is Kind.VADD else arith.multiply(a, b, i["zp_a"], i["zp_b"], affine)

    def _window(self, i: Instruction, block: int, oy: int, ox: int, byte: int) -> Iterator[int | None]:
        for ky in range(i["kernel_h"]):
            for kx in range(i["kernel_w"]):
                y, x = i["iy0"] + oy * i["stride_h"] + ky, i["ix0"] + ox * i["stride_w"] + kx
                inside = 0 <= y < i["in_h"] and 0 <= x < i["in_w"]
                at = i["a_base"] + block * i["a_plane"] + y * i["a_row"] + x
                yield _signed(self._word(at)[byte]) if inside else None

    def _weight(self, word: int) -> bytes:
        return self.weights[word % len(self.weights)]

    def _take(self, words: int) -> bytes:
        data = b"".join(self._weight(self._at + k) for k in range(words))
        self._at += words
        return data

    def _conv(self, i: Instruction) -> None:
        p, self._at = self.params, i["weights"]
        before, self.sums = self.sums, [[0] * p.cols for _ in range(i["out_h"] * i["out_w"])]
        if i["table"] == TableUse.LOAD:
            self.mac_table = self._take(p.table_words)
        constants = self._take(p.residual_words) if i["residual"] else b""
        for block in range(i["out_blocks"]):
            parameters = self._take(p.channel_words)
            self._zero_points = self._take(-(-p.cols // p.rows)) if i["weight_zero_points"] else bytes(p.cols)
            tiles = self._take(conv_tiles(i) * p.cols)
            for column in range(p.cols):
                bias = _int(parameters[4 * column : 4 * column + 4])
                scale = int.from_bytes(parameters[4 * (p.cols + column) :][:4], "little")
                if i["subtract_zp_in"]:
                    bias -= arith.wrap(i["zp_in"] * self._weight_sum(column, tiles), p.acc_bits)
                for oy in range(i["out_h"]):
                    for ox in range(i["out_w"]):
                        pixel = oy * i["out_w"] + ox
                        start = before[pixel][column] if i["continue_sums"] else 0
                        total = arith.wrap(start + self._sum(i, block, column, oy, ox, tiles), p.acc_bits)
                        self.sums[pixel][column] = total
                        k = block * p.cols + column
                        self._finish(i, k, oy, ox, arith.wrap(total + bias, 32), scale, constants)

    def _weight_sum(self, column: int, tiles: bytes) -> int:
        """The sum of a column's weights over all tiles and rows, less the zero points."""
        p, zero_point = self.params, _signed(self._zero_points[column])
        starts = range(column * p.rows, len(tiles), p.cols * p.rows)
        return sum(_signed(tiles[at + row]) - zero_point for at in starts for row in range(p.rows))

    def _sum(self, i: Instruction, block: int, column: int, oy: int, ox: int, tiles: bytes) -> int:
        p, total, tile = self.params, 0, 0
        zero_point = _signed(self._zero_points[column])
        for ky in range(i["kernel_h"]):
            for kx in range(i["kernel_w"]):
                for b in range(i["in_blocks"]):
                    weights = tiles[(tile * p.cols + column) * p.rows :][: p.rows]
                    word = self._input(i, block, b, oy, ox, (ky, kx))
                    total += sum((_signed(w) - zero_point) * x for w, x in zip(weights, word, strict=True))
                    tile += 1
        return total

    def _input(self, i: Instruction, block: int, b: int, oy: int, ox: int, tap: tuple[int, int]) -> list[int]:
        group = self.params.pixels_per_word if i["mode"] == ConvMode.PACKED else 1
        rows_down = oy * i["stride_h"] + tap[0] * i["dilation_h"]
        first = i["ix0"] + ox * i["stride_w"] + tap[1] * i["dilation_w"] * group
        size = self.params.rows // group
        word: list[int] = []
        for ix in range(first, first + group):
            if not (0 <= i["iy0"] + rows_down < i["in_h"] and 0 <= ix < i["in_w"]):
                word += [i["zp_in"]] * size
                continue
            offset = (i["in_row_off"] + rows_down * i["in_row"]) % (i["in_ring"] or ADDRESS_SPACE)
            base = i["in_base"] + block * i["in_block_step"] + b * i["in_plane"]
            source = self._word(base + offset + ix // group)
            word += [_signed(v) for v in source[ix % group * size :][:size]]
        return word

    def _finish(self, i: Instruction, k: int, oy: int, ox: int, total: int, scale: int, constants: bytes) -> None:
        rows = self.params.rows
        factor = arith.Scale(scale & 0xFFFFFF, scale >> 24)
        value = arith.requantize(total, factor, i["zp_out"], self.params.match)
        if i["table"] != TableUse.NONE:
            value = _signed(self.mac_table[value & 0xFF])
        if i["residual"]:
            at = i["res_base"] + k // rows * i["res_plane"] + oy * i["res_row"] + ox
            m1, m2 = (arith.wrap(_int(constants[at : at + 4]), arith.FACTOR_BITS) for at in (0, 4))
            c = arith.wrap(_int(constants[8:16]), arith.CONSTANT_BITS)
            affine = arith.Affine(m1, m2, c, i["res_shift"], bool(i["res_even"]))
            value = arith.affine(value, _signed(self._word(at)[k % rows]), affine)
        byte = i["out_lane"] + k
        at = i["out_base"] + byte // rows * i["out_plane"] + oy * i["out_row"] + ox * i["out_x"]
        self._word(at)[byte % rows] = value & 0xFF
