"""Random instructions of every kind, from the instruction table.

Every field takes any value that the table allows, except those that the methods below choose, one for each access
pattern: loop counts, addresses and steps, which must keep an instruction short and inside the memories, and values that
depend on what was loaded before.
"""

import random
from collections.abc import Sequence

from intloom.hw.spec.arith import FACTOR_BITS
from intloom.hw.spec.fields import COORDINATE_BITS, SCRATCH_BITS
from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import BY_KIND, ConvMode, Instruction, Kind, LoadTarget, TableUse, Unit, make
from intloom.hw.spec.norm import EPSILON_BITS, LARGEST_COUNT
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.hw.spec.vector_depthwise import walk_columns, walk_words
from intloom.sim.random_programs.values import any_fields, any_value, size, sizes, some, step

Fields = dict[str, int]

_LONGEST = (1 << COORDINATE_BITS) - 1
_BLOCKS = (1 << 12) - 1
_AVERAGE_TAPS = 1023
"""The most window words whose sum fits 18 bits with its sign."""
_OUTPUT_WORDS = 600


def make_known(kind: Kind, fields: Fields) -> Instruction:
    """The instruction with those of the fields that it has."""
    known = {f.name for f in BY_KIND[kind].fields}
    return make(kind, **{name: value for name, value in fields.items() if name in known})


class InstructionMaker:
    """Random instructions for one accelerator; addresses are in range only by chance, so callers check them."""

    def __init__(
        self,
        rng: random.Random,
        params: HardwareParams,
        islands: Sequence[tuple[int, int]] = (),
        words: int = _OUTPUT_WORDS,
    ) -> None:
        self._rng = rng
        self.params = params
        self.islands = islands
        """First word and number of words of the memory ranges that loads and stores use."""
        self._words = words
        """The most result words of an instruction; other lengths follow."""
        self.loaded: set[Unit] = set()
        """The units with a loaded table."""
        self.exponentials: set[int] = set()
        """The bytes of the exponentials that are loaded."""
        self.pixels = 0
        """Pixels of the last CONV whose sums the next one may continue."""

    def instruction(self, kind: Kind) -> Instruction:
        """One random instruction of `kind`."""
        missing = sorted(set(range(EXPONENTIAL_BYTES)) - self.exponentials)
        if kind is Kind.VSOFTMAX and missing:
            # Exponentials keep what an earlier program left.
            kind = Kind.VEXP
        fields = any_fields(self._rng, kind, self.params) | getattr(self, f"_{BY_KIND[kind].pattern}")(kind)
        if kind is Kind.VEXP and missing:
            fields["part"] = missing[0]
        return make_known(kind, fields)

    def _base(self) -> int:
        words = self.params.scratch_words
        return self._rng.choice((0, words - 1, self._rng.randrange(words), self._rng.randrange(words)))

    def _reach(self) -> int:
        return self._rng.choice((8, 64, 512, self.params.scratch_words))

    def _output(self, budget: int) -> Fields:
        rng = self._rng
        h, w, blocks = sizes(rng, (_LONGEST, _LONGEST, _BLOCKS), budget)
        x = rng.choice((1, 1, rng.randint(1, 15)))
        reach = self._reach()
        return {
            "out_h": h,
            "out_w": w,
            "blocks": blocks,
            "out_x": x,
            "out_row": rng.choice((w * x, step(rng, h, reach, 16))) % (1 << 16),
            "out_plane": rng.choice((w * x * h, step(rng, blocks, reach, SCRATCH_BITS))) % (1 << SCRATCH_BITS),
            "out_base": self._base(),
            "table": int(Unit.VEC in self.loaded and rng.random() < 0.5),
        }

    def _operand(self, name: str, rows: int, columns: int, blocks: int) -> Fields:
        rng, reach = self._rng, self._reach()
        return {
            f"{name}_row": rng.choice((columns, step(rng, rows, reach, 16))) % (1 << 16),
            f"{name}_plane": rng.choice((rows * columns, step(rng, blocks, reach, SCRATCH_BITS))) % (1 << SCRATCH_BITS),
            f"{name}_base": self._base(),
        }

    def _affine(self, kind: Kind) -> Fields:
        """Coefficients, for instructions that have them."""
        rng = self._rng
        if "m1" not in BY_KIND[kind].offsets:
            return {}
        fields = some(rng, kind, "m1", "m2", "c", "shift")
        if rng.random() < 0.8:
            # Most results then are inside int8.
            shift = rng.randint(0, 30)
            scale = min(1 << shift >> (6 if BY_KIND[kind].one_factor else 0), (1 << FACTOR_BITS - 1) - 1)
            fields |= {"shift": shift, "m1": rng.randint(-scale, scale), "m2": rng.randint(-scale, scale)}
            fields["c"] = rng.randint(-(1 << shift), 1 << shift) << 5
        return fields | {"m2": fields["m1"]} if BY_KIND[kind].one_factor else fields

    def _elementwise(self, kind: Kind) -> Fields:
        fields = self._output(self._words)
        shape = (fields["out_h"], fields["out_w"], fields["blocks"])
        return fields | self._operand("a", *shape) | self._operand("b", *shape) | self._affine(kind)

    def _table(self, kind: Kind) -> Fields:
        return {"a_base": self._rng.randint(0, self.params.scratch_words - self.params.table_words)}

    def _norm(self, kind: Kind) -> Fields:
        rng = self._rng
        while (fields := self._channels(kind))["blocks"] > LARGEST_COUNT // self.params.rows:
            pass
        spread = {"epsilon": rng.getrandbits(rng.randint(1, EPSILON_BITS))}
        return fields | spread | {"b_base": self._base()}

    def _channels(self, kind: Kind) -> Fields:
        rng = self._rng
        limits = {name: BY_KIND[kind].field(name).maximum for name in ("out_h", "out_w", "blocks")}
        # Each takes three cycles per group of bytes, up to three per byte.
        fields = self._output(self._words // 10)
        while any(fields[name] > limit for name, limit in limits.items()):
            fields = self._output(self._words // 10)
        fields |= self._operand("a", fields["out_h"], fields["out_w"], fields["blocks"])
        return fields | {"last_bytes": rng.randint(1, self.params.word_bytes)}

    def _copy(self, kind: Kind) -> Fields:
        rng, word = self._rng, self.params.word_bytes
        fields = self._output(self._words) | some(rng, kind, "up_h", "up_w")
        if rng.random() < 0.5:
            fields |= {"up_h": rng.randint(1, 3), "up_w": rng.randint(1, 3)}
        rows, columns = -(-fields["out_h"] // fields["up_h"]), -(-fields["out_w"] // fields["up_w"])
        first = rng.choice((0, rng.randrange(word)))
        return {
            **fields,
            **self._operand("a", rows, columns, fields["blocks"]),
            "a_x": step(rng, columns, self._reach(), 8),
            "rotate": rng.randrange(word),
            "first_byte": first,
            "byte_count": rng.choice((word - first, rng.randint(1, word - first))),
        }

    def _window(self, kind: Kind) -> Fields:
        rng = self._rng
        fields = self._output(self._words)
        outputs = fields["out_h"] * fields["out_w"] * fields["blocks"]
        taps = min(_AVERAGE_TAPS, 1 + 8 * self._words // outputs)
        kernel_h, kernel_w = sizes(rng, (255, 255), taps)
        window = some(rng, kind, "stride_h", "stride_w", "in_h", "in_w", "iy0", "ix0")
        if rng.random() < 0.8:
            window |= {"iy0": rng.randint(-4, 4), "ix0": rng.randint(-4, 4), "stride_h": rng.randint(1, 3)}
            window |= {"stride_w": rng.randint(1, 3), "in_h": rng.randint(1, 40), "in_w": rng.randint(1, 40)}
        rows = min(window["in_h"], fields["out_h"] * window["stride_h"] + kernel_h)
        columns = min(window["in_w"], fields["out_w"] * window["stride_w"] + kernel_w)
        fields |= window | {"kernel_h": kernel_h, "kernel_w": kernel_w}
        fields |= self._operand("a", rows, columns, fields["blocks"])
        if rng.random() < 0.3:
            # Row 0 then lies outside, and the address of the window's first row wraps.
            fields["a_base"] = (fields["a_base"] - max(0, window["iy0"]) * fields["a_row"]) % (1 << SCRATCH_BITS)
        return fields | self._affine(kind)

    def _depthwise(self, kind: Kind) -> Fields:
        rng = self._rng
        while True:
            fields = self._output(rng.choice((30, 200, self._words)))
            fields |= some(rng, kind, "kernel_w", "stride_h", "stride_w")
            fields["kernel_h"] = rng.choice((3, size(rng, 15, 15)))
            # It takes about a cycle for each word that it reads.
            if fields["blocks"] == 1 and walk_words(make_known(kind, fields)) <= 20 * self._words // 3:
                break
        fields["b_base"] = self._base()
        rows = (fields["out_h"] - 1) * fields["stride_h"] + fields["kernel_h"]
        fields |= self._under(kind, rows, walk_columns(make_known(kind, fields)))
        columns = min(fields["in_w"], walk_columns(make_known(kind, fields)) + 8)
        row = rng.choice((columns, columns + rng.randint(0, 3), step(rng, rows, self._reach(), 16))) % (1 << 16)
        ring = rng.choice((0, 0, rng.randint(1, 8) * max(1, row), any_value(rng, BY_KIND[kind].field("a_ring"))))
        ring = max(ring, row) % (1 << SCRATCH_BITS) if ring else 0
        offset = rng.choice((min(fields["iy0"], 0) * row, 0, rng.randint(0, 4 * max(1, row))))
        layout = {"a_row": row, "a_ring": ring, "a_row_off": offset % (ring or 1 << SCRATCH_BITS)}
        return fields | layout | {"a_base": self._base()}

    def _under(self, kind: Kind, rows: int, columns: int) -> Fields:
        """Size of the input, and the position of windows that are so many rows and columns in all."""
        rng = self._rng
        window = some(rng, kind, "in_h", "in_w", "iy0", "ix0")
        if rng.random() < 0.8:
            window = {"in_h": max(1, rows + rng.randint(-3, 2)), "in_w": max(1, columns + rng.randint(-3, 2))}
            window |= {"iy0": rng.randint(-3, 3), "ix0": rng.randint(-5, 5)}
        return {n: min(max(v, BY_KIND[kind].field(n).minimum), _LONGEST) for n, v in window.items()}

    def _move(self, kind: Kind) -> Fields:
        rng, p = self._rng, self.params
        n0, n1, n2 = sizes(rng, (p.scratch_words, (1 << 16) - 1, (1 << 16) - 1), 5 * self._words // 2)
        first, words = rng.choice(self.islands)
        other, _ = rng.choice(self.islands)
        far = (other - first) % (1 << 32)
        reach = self._reach()
        steps = (n0, step(rng, n1, min(words, reach), 32), *((far,) if n1 == 2 else ()))
        planes = (n0 * n1, step(rng, n2, min(words, reach), 32), *((far,) if n2 == 2 else ()))
        fields = {
            "dram": first + rng.choice((0, rng.randrange(words), max(0, words - n0))),
            "n0": n0,
            "n1": n1,
            "n2": n2,
            "dram_s1": rng.choice(steps) % (1 << 32),
            "dram_s2": rng.choice(planes) % (1 << 32),
            "local": self._base(),
            "local_s1": rng.choice((n0, step(rng, n1, reach, SCRATCH_BITS))) % (1 << SCRATCH_BITS),
            "local_s2": rng.choice((n0 * n1, step(rng, n2, reach, SCRATCH_BITS))) % (1 << SCRATCH_BITS),
            "target": LoadTarget.SCRATCH,
            # Noise is no code; programs have loads of coded words of their own.
            "coded": 0,
            "crc": 0,
        }
        if kind is Kind.LOAD and rng.random() < 0.4:
            # The weight memory takes every address.
            return fields | some(rng, kind, "local", "local_s1", "local_s2") | {"target": LoadTarget.WEIGHT}
        return fields

    def _conv(self, kind: Kind) -> Fields:
        rng, p = self._rng, self.params
        fields = self._conv_shape()
        fields |= self._conv_input(fields)
        reach, planes = self._reach(), -(-fields["out_blocks"] * p.cols // p.rows) + 1
        lane = rng.randrange(0, p.rows, p.lanes)
        choices = [TableUse.NONE, TableUse.LOAD, *([TableUse.KEEP] if Unit.MAC in self.loaded else [])]
        return fields | {
            "table": rng.choice(choices),
            "out_lane": rng.choice((0, lane)),
            "residual": int(rng.random() < 0.3),
            "res_base": self._base(),
            "res_row": rng.choice((fields["out_w"], step(rng, fields["out_h"], reach, 16))) % (1 << 16),
            "res_plane": rng.choice((fields["out_w"] * fields["out_h"], step(rng, planes, reach, SCRATCH_BITS))),
        }

    def _conv_shape(self) -> Fields:
        rng, p = self._rng, self.params
        while True:
            budget = rng.choice((20, 100, self._words))
            fields = self._output(budget)
            fields["out_blocks"] = size(rng, max(1, budget * p.rows // p.cols), 4095)
            fields["continue_sums"] = int(self.pixels > 0 and rng.random() < 0.4)
            if fields["continue_sums"]:
                fields |= {"out_h": 1, "out_w": self.pixels, "out_blocks": 1}
            kernel_h, kernel_w, in_blocks = sizes(rng, (15, 15, 4095), rng.choice((9, 40, 4095)))
            fields |= {"kernel_h": kernel_h, "kernel_w": kernel_w, "in_blocks": in_blocks}
            fields |= {"weight_zero_points": int(rng.random() < 0.3), "mode": self._conv_mode()}
            fields |= some(rng, Kind.CONV, "stride_h", "stride_w", "dilation_h", "dilation_w")
            if rng.random() < 0.6:
                fields |= {"dilation_h": 1, "dilation_w": 1}
            planes = -(-fields["out_blocks"] * p.cols // p.rows) + 1
            pixels = fields["out_h"] * fields["out_w"]
            fields["out_plane"] = rng.choice((fields["out_row"] * fields["out_h"], step(rng, planes, 4096, 20)))
            fields["out_plane"] %= 1 << SCRATCH_BITS
            if pixels * planes <= 4 * self._words and self._products(fields) <= 100 * self._words // 3:
                return fields

    def _conv_mode(self) -> ConvMode:
        return ConvMode.PACKED if self._rng.random() < 0.2 else ConvMode.BLOCKS

    def _products(self, fields: Fields) -> int:
        """Cycles of the array for a CONV."""
        conv = make_known(Kind.CONV, fields)
        return conv_tiles(conv) * conv["out_blocks"] * max(conv["out_h"] * conv["out_w"], self.params.cols)

    def _conv_input(self, f: Fields) -> Fields:
        rng, p = self._rng, self.params
        group = p.pixels_per_word if f["mode"] == ConvMode.PACKED else 1
        rows = (f["out_h"] - 1) * f["stride_h"] + (f["kernel_h"] - 1) * f["dilation_h"] + 1
        columns = (f["out_w"] - 1) * f["stride_w"] + ((f["kernel_w"] - 1) * f["dilation_w"] + 1) * group
        window = self._under(Kind.CONV, rows, columns)
        words = -(-min(window["in_w"], columns + 8) // group)
        row = rng.choice((words, words + rng.randint(0, 3), step(rng, rows, self._reach(), 16))) % (1 << 16)
        ring = rng.choice((0, 0, rng.randint(1, 8) * max(1, row), any_value(rng, BY_KIND[Kind.CONV].field("in_ring"))))
        plane = rng.choice((row * min(rows, window["in_h"]), step(rng, f["in_blocks"], self._reach(), SCRATCH_BITS)))
        # Row iy0 may lie before the tensor; its offset then wraps.
        offset = rng.choice((min(window["iy0"], 0) * row, 0, rng.randint(0, 4 * max(1, row))))
        ring %= 1 << SCRATCH_BITS
        return window | {
            "in_row": row,
            "in_ring": ring,
            "in_plane": plane % (1 << SCRATCH_BITS),
            "in_row_off": offset % (ring or 1 << SCRATCH_BITS),
            "in_base": self._base(),
            "in_block_step": rng.choice((0, plane, step(rng, f["out_blocks"], self._reach(), SCRATCH_BITS)))
            % (1 << SCRATCH_BITS),
        }
