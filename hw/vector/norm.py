"""Layer normalization of each pixel's channels, a group of bytes a cycle in two passes."""

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.norm import (
    BETA_FRACTION,
    CONSTANT_BITS,
    CONSTANT_WORDS,
    COUNT_BITS,
    DEVIATION_BITS,
    EPSILON_BITS,
    FACTOR_BITS,
    LARGEST_COUNT,
    LARGEST_LINE,
    OFFSET_BITS,
    RESULT_SHIFT,
    SQUARE_BITS,
    SUM_BITS,
    VALUE_BITS,
    VALUE_SHIFT,
    normalize,
)
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.norm_factors import NormFactors
from intloom.hw.vector.slicer import collect_groups
from intloom.hw.vector.window_walker import TAP_LAYOUT

_FIELD = BY_KIND[Kind.VNORM].field
_RESULT = 7
"""Cycles from a byte of the second pass to its result."""
_PRODUCT = 2
"""Cycles from a deviation to its square."""


class Norm(wiring.Component):
    """Sums deviations and squares in a pixel's first pass, and scales the deviations in the second.

    The first passes of up to `LARGEST_LINE` pixels may come before their second ones. Constants of all channels are
    loaded at the start of an instruction.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    start
        Pulse: an instruction begins.
    constants_valid, constants
        A word of the constants.
    blocks, last_bytes, center, zp_in, epsilon
        Fields of the instruction.
    valid, group, position, tap, applies
        `softmax_lanes` bytes, the position of the first one in its word, whether their word is a pixel's first or last,
        and whether the pass is the second one.
    taken
        A pixel's last word of the second pass is on its way.
    ready
        The constants are loaded, and the next pixel's second pass may begin.
    result_valid, result
        A slice of results.

    Handshake
    ---------
    No back-pressure: a group is taken in every cycle with `valid`, a word of constants in every one with
    `constants_valid`.

    Timing
    ------
    One group a cycle. From the last group of a slice in the second pass to `result_valid`: `LATENCY` = 8 cycles. From
    the last group of a pixel's first pass to `ready`: `statistics(params)` cycles.

    Requirements
    ------------
    All bytes of a pixel come in order, in each of its passes. A second pass begins while `ready` is high; `taken` comes
    before the pixel's last group. Fields are stable from `start` until the last result.

    Reset and faults
    ----------------
    Soft reset clears valid flags and all counts; constants survive. There are no faults.
    """

    LATENCY = _RESULT + 1

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
        self._group = params.softmax_lanes
        self._words = params.norm_words
        self._word_bytes = params.word_bytes
        super().__init__(
            {
                "start": In(1),
                "constants_valid": In(1),
                "constants": In(8 * params.word_bytes),
                "blocks": In(_FIELD("blocks").width),
                "last_bytes": In(_FIELD("last_bytes").width),
                "center": In(1),
                "zp_in": In(signed(8)),
                "epsilon": In(EPSILON_BITS),
                "valid": In(1),
                "group": In(8 * self._group),
                "position": In(exact_log2(params.word_bytes)),
                "tap": In(TAP_LAYOUT),
                "applies": In(1),
                "taken": In(1),
                "ready": Out(1),
                "result_valid": Out(1),
                "result": Out(8 * self._lanes),
            }
        )

    @staticmethod
    def statistics(params: HardwareParams) -> int:
        """Cycles from the last group of a pixel's first pass to `ready`."""
        return 3 + _PRODUCT + exact_log2(params.softmax_lanes) + NormFactors.LATENCY + 1

    @staticmethod
    def model(
        values: list[int],
        constants: list[tuple[int, int]],
        center: bool,
        zp_in: int,
        epsilon: int,
        counted: int | None = None,
    ) -> list[int]:
        """The results of a pixel's int8 values."""
        return normalize(values, constants, center, zp_in, epsilon, counted)

    def elaborate(self, platform: object) -> Module:
        """Deviations, sums, factors, lanes."""
        m = Module()
        values = [Signal(signed(8), name=f"value{lane}", reset_less=True) for lane in range(self._group)]
        counted = Signal(self._group, reset_less=True)
        opens, closes, applies = (Signal(name=name, reset_less=True) for name in ("opens", "closes", "applied"))
        valid = Signal()
        m.d.sync += [
            valid.eq(self.valid),
            *(value.eq(self.group.word_select(lane, 8)) for lane, value in enumerate(values)),
            counted.eq(Cat(~self.tap.last | ((self.position | k) < self.last_bytes) for k in range(self._group))),
            opens.eq(self.tap.first & (self.position == 0)),
            closes.eq(self.tap.last & (self.position[exact_log2(self._group) :].all())),
            applies.eq(self.applies),
        ]
        deviations = [
            Signal(signed(DEVIATION_BITS), name=f"deviation{lane}", reset_less=True) for lane in range(self._group)
        ]
        m.d.sync += [d.eq(Mux(counted[k], values[k] - self.zp_in, 0)) for k, d in enumerate(deviations)]
        m.submodules.factors = factors = self._factors = NormFactors()
        factor, minus_offset = self._next_factors(m, valid & applies, closes)
        products = [
            self._multiply(m, k, d, Mux(applies, 0, values[k] - self.zp_in), (factor, minus_offset))
            for k, d in enumerate(deviations)
        ]
        self._sum(m, list(zip(deviations, products, strict=True)), valid & ~applies, opens, closes)
        waiting = Signal(range(LARGEST_LINE + 1))
        m.d.sync += waiting.eq(waiting + factors.result_valid - self.taken)
        loaded, constants = self._load(m, valid & applies, opens)
        m.d.comb += self.ready.eq(loaded & (waiting != 0))
        results = [self._lane(m, k, product, constants[k]) for k, product in enumerate(products)]
        made = pipeline_stages(m, "made", valid & applies, _RESULT - 1, reset_less=False)
        collect_groups(m, made, Cat(results), self.result_valid, self.result)
        return m

    def _multiply(self, m: Module, lane: int, deviation: Signal, own: Value, scale: tuple[Signal, Signal]) -> Value:
        """The deviation's square in the first pass; its product with the factor, less the offset, in the second.

        The factor and the offset are 0 in the first pass, `own` is in the second one. So one multiplier serves both:
        on an FPGA, its pre-adder forms the second operand, and the adder behind it adds the third.
        """
        factor, minus_offset = scale
        register = Signal(signed(DEVIATION_BITS), name=f"own{lane}", reset_less=True)
        m.d.sync += register.eq(own)
        operand = (register + Cat(factor, 0).as_signed())[: FACTOR_BITS + 1].as_signed()
        scaled = pipeline_stages(m, f"scaled{lane}_", deviation * operand, 1, reset_less=True)
        moved = (scaled + minus_offset)[: VALUE_SHIFT + VALUE_BITS]
        return pipeline_stages(m, f"moved{lane}_", moved, 1, reset_less=True)

    def _sum(self, m: Module, lanes: list[tuple[Signal, Value]], valid: Value, opens: Value, closes: Value) -> None:
        """The sums of a pixel's deviations and squares, from which its factors follow."""
        squares: list[Value] = [product[: 2 * DEVIATION_BITS - 1] for _, product in lanes]
        terms: list[Value] = [deviation for deviation, _ in lanes]
        levels = exact_log2(self._group)
        for level in range(levels):
            terms, squares = (
                [
                    pipeline_stages(m, f"{name}{level}_{k}_", reduce(add, nodes[2 * k : 2 * k + 2]), 1, reset_less=True)
                    for k in range(len(nodes) // 2)
                ]
                for name, nodes in (("sum", terms), ("squares", squares))
            )
        term = pipeline_stages(m, "sum_late", terms[0], _PRODUCT, reset_less=True)
        sums_valid = pipeline_stages(m, "sums_valid", valid, 1 + _PRODUCT + levels, reset_less=False)
        first = pipeline_stages(m, "sums_first", opens, 1 + _PRODUCT + levels, reset_less=True)
        total, square = Signal(signed(SUM_BITS), reset_less=True), Signal(SQUARE_BITS, reset_less=True)
        with m.If(sums_valid):
            m.d.sync += [
                total.eq(Mux(first, 0, total) + term),
                square.eq(Mux(first, 0, square) + squares[0]),
            ]
        factors = self._factors
        count = Signal(COUNT_BITS, reset_less=True)
        m.d.sync += count.eq(Cat(Signal(exact_log2(self._word_bytes)), self.blocks - 1) + self.last_bytes)
        m.d.comb += [
            factors.count.eq(count),
            factors.center.eq(self.center),
            factors.epsilon.eq(self.epsilon),
            factors.valid.eq(pipeline_stages(m, "complete", valid & closes, 2 + _PRODUCT + levels, reset_less=False)),
            factors.total.eq(total),
            factors.squares.eq(square),
        ]

    def _next_factors(self, m: Module, applies: Value, closes: Value) -> tuple[Signal, Signal]:
        """The factor of the pixel whose second pass runs, a cycle later its negative offset; both wait in a memory."""
        made = self._factors
        # An offset comes a cycle after its factor, and is read together with it.
        written = pipeline_stages(m, "factor_valid", made.result_valid, 1, reset_less=False)
        found: list[Value] = []
        for name, valid, bits in (("factor", made.result_valid, FACTOR_BITS), ("offset", written, OFFSET_BITS)):
            m.submodules[f"{name}_line"] = memory = Memory(shape=unsigned(bits), depth=LARGEST_LINE, init=[])
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.en.eq(valid), write.data.eq(made.result)]
            m.d.sync += write.addr.eq(write.addr + valid)
            with m.If(applies & closes):
                m.d.sync += read.addr.eq(read.addr + 1)
            found.append(read.data)
        factor = Signal(FACTOR_BITS, reset_less=True)
        offset = Signal(signed(OFFSET_BITS), reset_less=True)
        m.d.sync += Cat(factor, offset).eq(Mux(applies, Cat(found), 0))
        # Negative: the adder behind an FPGA's multiplier adds.
        return factor, pipeline_stages(m, "minus_offset", (-offset)[:OFFSET_BITS].as_signed(), 1, reset_less=True)

    def _load(self, m: Module, valid: Value, opens: Value) -> tuple[Value, list[tuple[Value, Value]]]:
        """Whether all constants are loaded; of each lane gamma three cycles after its group, beta four cycles after."""
        number = Signal(range(LARGEST_COUNT * CONSTANT_WORDS // self._word_bytes + 1))
        loaded = Signal()
        with m.If(self.start):
            m.d.sync += [number.eq(0), loaded.eq(0)]
        with m.Else():
            m.d.sync += [number.eq(number + self.constants_valid), loaded.eq(number == Cat(0, 0, self.blocks))]
        index = Signal(range(LARGEST_COUNT // self._group), reset_less=True)
        with m.If(valid):
            m.d.sync += index.eq(Mux(opens, 0, index + 1))
        low = exact_log2(self._words)
        # Of two memories the second one has the betas; their address waits, not they.
        addresses = index, pipeline_stages(m, "beta_index", index, 1, reset_less=True)
        found: list[Value] = []
        for k in range(self._words):
            memory = Memory(shape=unsigned(8 * self._word_bytes), depth=LARGEST_COUNT // self._group, init=[])
            m.submodules[f"constants{k}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(self.constants_valid & (number[:low] == k)),
                write.addr.eq(number[low:]),
                write.data.eq(self.constants),
                read.addr.eq(addresses[k]),
                read.en.eq(1),
            ]
            found.append(read.data)
        words = pipeline_stages(m, "constants_late", Cat(found), 1, reset_less=True)
        numbers = [words.word_select(k, CONSTANT_BITS).as_signed() for k in range(2 * self._group)]
        gammas, betas = numbers[: self._group], numbers[self._group :]
        late = (pipeline_stages(m, f"beta{k}_", beta, 2 - self._words, reset_less=True) for k, beta in enumerate(betas))
        return loaded, list(zip(gammas, late, strict=True))

    def _lane(self, m: Module, lane: int, moved: Value, constants: tuple[Value, Value]) -> Signal:
        """The normalized value, its product with gamma, beta, and the clamp."""

        def later(name: str, value: Value) -> Value:
            return pipeline_stages(m, f"{name}{lane}_", value, 1, reset_less=True)

        gamma, beta = constants
        product = later("product", moved[VALUE_SHIFT:].as_signed() * gamma)
        # The bits below beta's pass the addition unchanged, and the result has none of them.
        fraction = RESULT_SHIFT - BETA_FRACTION
        total = later("total", (product[fraction:].as_signed() + beta)[BETA_FRACTION:])
        byte = Signal(8, name=f"byte{lane}", reset_less=True)
        negative = total[-1]
        fits = total[7:] == negative.replicate(len(total) - 7)
        m.d.sync += byte.eq(Mux(fits, total[:8], Mux(negative, INT8_MIN, INT8_MAX)))
        return byte
