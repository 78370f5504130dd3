"""Correction for the input's zero point: `zp_in` times the sum of each column's weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.weights.fetcher import WEIGHTS_TO_SUM
from intloom.hw.mac.weights.zero_points import ZeroPoints
from intloom.hw.memory.macro import LEAST_BITS
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.arith import WEIGHT_BITS, wrap
from intloom.hw.spec.params import HardwareParams
from intloom.hw.yosys_attributes import NO_COLLISIONS

CORRECTION_SET_BITS = 2
"""Bits of a set's number: one output block is fetched, one multiplied, one read out."""


PRODUCT_STAGES = 3
"""A stage adds pairs of terms; `zp_in` has eight bits."""


def multiply_wide(m: Module, total: Value, zp_in: Value) -> Value:
    """`total * zp_in` by a multiplier with its own registers, in the stages of `multiply`.

    Its adder has the last register: it adds the column's sum.
    """
    factors = [
        pipeline_stages(m, f"factor_{name}", value, PRODUCT_STAGES - 1, reset_less=True)
        for name, value in (("total", total), ("zp_in", zp_in))
    ]
    return pipeline_stages(m, "product", factors[0] * factors[1], 1, reset_less=True)


def multiply(m: Module, total: Value, zp_in: Value) -> Value:
    """`total * zp_in` as a sum of shifted terms, in three stages: an FPGA with narrow multipliers has none left."""
    terms: list[Value] = [Mux(bit, total, 0) for bit in zp_in.as_unsigned()]
    for level in range(PRODUCT_STAGES):
        pairs = list(zip(terms[::2], terms[1::2], strict=True))
        sums = [low + (high << (1 << level)) for low, high in pairs]
        if level == 0:
            # The highest bit is the sign.
            sums[-1] = pairs[-1][0] - (pairs[-1][1] << 1)
        widths = [min(len(s), len(total) + len(zp_in)) for s in sums]
        terms = [Signal(signed(w), name=f"product{level}_{k}", reset_less=True) for k, w in enumerate(widths)]
        m.d.sync += [term.eq(s) for term, s in zip(terms, sums, strict=True)]
    return terms[0]


class ZeroPointCorrection(wiring.Component):
    """Adds up the weights of an output block while they are loaded, and keeps `zp_in` times the sum of each column.

    Readout subtracts it from the biases: `sum((x - zp_in) * w) = sum(x * w) - zp_in * sum(w)`. Where the weights are
    a tensor of the network, the compiler cannot put this product into the bias. A subtraction at the array's input
    instead needs a ninth bit in each operand and product.

    Members
    -------
    to_sum:
        A word that the weight memory is asked for in this cycle. A tile has `cols` words, in the order of columns.
    weights:
        Its weights, one for each row, `WEIGHTS_STAGE` cycles later.
    read, read_set, group:
        Read the corrections of a group of `lanes` columns. The first block has set 0, the next one set 1.
    corrections:
        The corrections, modulo 2^acc_bits; 0 without `read`.

    Handshake
    ---------
    None: every access is accepted.

    Timing
    ------
    One word and one read a cycle. From `read` to `corrections`: `READ_LATENCY` = 2 cycles. From a block's last word to
    the first read that returns its corrections: `latency(rows)` = 11 + log2(rows) cycles.

    Requirements
    ------------
    A set is not read while it is written, nor in the cycle before. Readout of a block begins after its last tile has
    reached the array, and ends before that of the block but one begins, so four sets suffice.

    Reset and faults
    ----------------
    Soft reset returns to column 0 of set 0 and drops the words in flight. There are no faults.
    """

    WEIGHTS_STAGE = WEIGHT_LATENCY + ZeroPoints.LATENCY
    READ_LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._sum = signed(params.acc_bits)
        self._levels = (params.rows - 1).bit_length()
        self._lane_bits = (params.lanes - 1).bit_length()
        self._groups = params.cols // params.lanes
        super().__init__(
            {
                "to_sum": In(WEIGHTS_TO_SUM),
                "weights": In(data.ArrayLayout(signed(WEIGHT_BITS), params.rows)),
                "read": In(1),
                "read_set": In(CORRECTION_SET_BITS),
                "group": In(range(self._groups)),
                "corrections": Out(data.ArrayLayout(self._sum, params.lanes)),
            }
        )

    @classmethod
    def latency(cls, rows: int) -> int:
        """Cycles from a block's last word to a read that returns its corrections."""
        return cls.WEIGHTS_STAGE + (rows - 1).bit_length() + PRODUCT_STAGES + 1

    @staticmethod
    def model(tiles: Iterable[Sequence[Sequence[int]]], zp_in: int, acc_bits: int) -> list[int]:
        """The corrections of a block's columns, from the columns of its tiles."""
        return [wrap(zp_in * sum(map(sum, column)), acc_bits) for column in zip(*tiles, strict=True)]

    def elaborate(self, platform: object) -> Module:
        """An adder tree, a multiplier, an accumulator for each column, and the sets."""
        m = Module()
        word = pipeline_stages(m, "word", self.to_sum, self.WEIGHTS_STAGE, reset_less=False)
        total = self._tree(m)
        word = pipeline_stages(m, "summed", word, self._levels, reset_less=False)
        product = (multiply_wide if self._params.wide_multipliers else multiply)(m, total, word.zp_in)
        word = pipeline_stages(m, "multiplied", word, PRODUCT_STAGES - 1, reset_less=False)
        self._accumulate(m, word, product)
        return m

    def _tree(self, m: Module) -> Value:
        """The sum of a column's weights; one adder level a stage."""
        terms: list[Value] = [self.weights[row] for row in range(self._params.rows)]
        for level in range(self._levels):
            shape = signed(WEIGHT_BITS + level + 1)
            sums = [Signal(shape, name=f"sum{level}_{i}", reset_less=True) for i in range(len(terms) // 2)]
            m.d.sync += [s.eq(a + b) for s, a, b in zip(sums, terms[::2], terms[1::2], strict=True)]
            terms = [*sums]
        return terms[0]

    def _accumulate(self, m: Module, word: data.View[data.StructLayout], product: Value) -> None:
        """Add a product to its column's sum; with the last tile, the sum is the correction.

        `word` leads the product by one cycle, in which the sum so far is read. Its column recurs no earlier than
        `cols` >= 4 cycles later: 2 cycles after its new sum is stored.
        """
        column = Signal(range(self._params.cols))
        with m.If(word.valid):
            m.d.sync += column.eq(column + 1)
        memory = Memory(shape=self._sum, depth=self._params.cols, init=[])
        m.submodules.sums = memory
        read, write = memory.read_port(domain="comb"), memory.write_port()
        operand, total = Signal(self._sum, reset_less=True), Signal(self._sum, reset_less=True)
        m.d.sync += [operand.eq(Mux(word.first, 0, read.data)), total.eq(operand + product)]
        stored = data.StructLayout({"valid": 1, "last": 1, "column": column.shape()})
        request = Signal(stored)
        m.d.comb += [request.valid.eq(word.valid), request.last.eq(word.last), request.column.eq(column)]
        request = pipeline_stages(m, "request", request, 2, reset_less=False)
        m.d.comb += [
            read.addr.eq(column),
            write.en.eq(request.valid),
            write.addr.eq(request.column),
            write.data.eq(total),
        ]
        self._store(m, request, total)

    def _store(self, m: Module, request: data.View[data.StructLayout], total: Value) -> None:
        """A memory of each lane's corrections, with a set for each of the latest blocks."""
        number = Signal(CORRECTION_SET_BITS)
        complete = request.valid & request.last
        with m.If(complete & (request.column == self._params.cols - 1)):
            m.d.sync += number.eq(number + 1)
        group_bits = (self._groups - 1).bit_length()
        depth = self._groups << CORRECTION_SET_BITS
        # A small memory is distributed RAM, which needs no register behind it; a larger one may be a macro.
        clocked = self._sum.width * depth >= LEAST_BITS
        used = pipeline_stages(m, "used", self.read, self.READ_LATENCY, reset_less=False)
        address = Cat(self.group[:group_bits], self.read_set)
        address = pipeline_stages(m, "address", address, self.READ_LATENCY - clocked, reset_less=True)
        for lane in range(self._params.lanes):
            memory = Memory(shape=self._sum, depth=depth, init=[], attrs=NO_COLLISIONS)
            m.submodules[f"sets{lane}"] = memory
            read, write = memory.read_port(domain="sync" if clocked else "comb"), memory.write_port()
            m.d.comb += [
                read.addr.eq(address),
                write.en.eq(complete & (request.column[: self._lane_bits] == lane)),
                write.addr.eq(Cat(request.column[self._lane_bits :], number)),
                write.data.eq(total),
            ]
            m.d.comb += self.corrections[lane].eq(Mux(used, read.data, 0))
