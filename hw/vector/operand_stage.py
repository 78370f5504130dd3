"""Prepares the operands of the affine operation: bytes, products of two bytes, or sums."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.pool import SUM_BITS

DIFFERENCE_BITS = 9
WIDE_BITS = max(SUM_BITS, 2 * DIFFERENCE_BITS)
"""Width of a sum or a product."""

LANE_FUNCTIONS: Mapping[str, Kind] = {"multiply": Kind.VMUL, "average": Kind.VAVG}
"""Functions of a lane: the flag of the decoded operation, and the instruction that sets it."""


class OperandStage(wiring.Component):
    """Forms both operands of each affine lane from two slices, or from a slice of a window's sums.

    With the flag of a lane function, x1 is its value and x2 is zero; otherwise x1 and x2 are the bytes. `multiply` is
    the product of both bytes less their zero points, `average` the sum.

    Parameters
    ----------
    params
        The accelerator's parameters; they say whether products and sums exist.

    Members
    -------
    valid, a, b, total
        Slices and sums.
    zp_a, zp_b
        Zero points, subtracted first.
    multiply, average
        Flags of the lane functions, at most one of them set.
    result_valid, x1, x2
        The operands.

    Handshake
    ---------
    No back-pressure: a slice is taken in every cycle with `valid`.

    Timing
    ------
    One slice a cycle. From `valid` to `result_valid`: `LATENCY` = 5 cycles, the same for all selections.

    Requirements
    ------------
    Zero points and selection are stable from the first slice until the last result. Zero points are 0
    unless `multiply` is set.

    Reset and faults
    ----------------
    Soft reset clears the valid flags only. There are no faults.
    """

    LATENCY = 5

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        lanes = params.vector_lanes
        part = data.ArrayLayout(signed(8), lanes)
        super().__init__(
            {
                "valid": In(1),
                "a": In(part),
                "b": In(part),
                "total": In(data.ArrayLayout(signed(SUM_BITS), lanes)),
                "zp_a": In(signed(8)),
                "zp_b": In(signed(8)),
                **{flag: In(1) for flag in LANE_FUNCTIONS},
                "result_valid": Out(1),
                "x1": Out(data.ArrayLayout(signed(WIDE_BITS), lanes)),
                "x2": Out(part),
            }
        )

    @staticmethod
    def model(a: int, b: int, total: int, zp_a: int, zp_b: int, function: str) -> tuple[int, int]:
        """The operands x1 and x2 under a lane function or none; zero points are 0 except for products."""
        functions = {"multiply": (a - zp_a) * (b - zp_b), "average": total}
        return (functions[function], 0) if function else (a, b)

    def elaborate(self, platform: object) -> Module:
        """Input registers, differences or sum, two product stages, selection."""
        m = Module()
        in_flight = Signal(self.LATENCY)
        m.d.sync += in_flight.eq(Cat(self.valid, in_flight))
        m.d.comb += self.result_valid.eq(in_flight[-1])
        # Routing registers: slices and constants come from other parts of the unit, and the subtractions take a cycle.
        self._a, self._b, self._total = (
            Signal.like(port, name=f"routed_{name}", reset_less=True)
            for name, port in (("a", self.a), ("b", self.b), ("total", self.total))
        )
        with m.If(self.valid):
            m.d.sync += [self._a.eq(self.a), self._b.eq(self.b), self._total.eq(self.total)]
        self._routed = {
            name: pipeline_stages(m, f"routed_{name}", getattr(self, name), 1, reset_less=True)
            for name in ("zp_a", "zp_b", *LANE_FUNCTIONS)
        }
        for lane in range(self._params.vector_lanes):
            self._lane(m, lane, list(in_flight))
        return m

    def _lane(self, m: Module, lane: int, stage: list[Signal]) -> None:
        first = Signal(signed(WIDE_BITS), name=f"first{lane}", reset_less=True)
        seconds = [Signal(signed(DIFFERENCE_BITS), name=f"second{lane}_{i}", reset_less=True) for i in range(1, 4)]
        with m.If(stage[0]):
            self._first_stage(m, lane, first, seconds[0])
        for i in (1, 2):
            with m.If(stage[i]):
                m.d.sync += seconds[i].eq(seconds[i - 1])
        x2 = Signal(signed(8), name=f"x2_{lane}", reset_less=True)
        m.d.comb += [self.x1[lane].eq(self._product(m, lane, first, seconds[0])), self.x2[lane].eq(x2)]
        with m.If(stage[3]):
            single = reduce(or_, (self._routed[flag] for flag in LANE_FUNCTIONS))
            m.d.sync += x2.eq(Mux(single, 0, seconds[2]))

    def _product(self, m: Module, lane: int, first: Signal, second: Signal) -> Value:
        """Three stages: a product, or the first factor alone, which is multiplied by 1.

        An FPGA multiplier has its own input and output registers, which absorb these if they feed nothing else. They
        are always enabled.
        """
        if not self._params.vector_multiply:
            return pipeline_stages(m, f"x1_{lane}_", first, 3, reset_less=True)
        factors = [
            Signal.like(value, name=f"factor{lane}_{i}", reset_less=True) for i, value in enumerate((first, second), 1)
        ]
        m.d.sync += [factors[0].eq(first), factors[1].eq(Mux(self._routed["multiply"], second, 1))]
        product = (factors[0] * factors[1])[:WIDE_BITS].as_signed()
        return pipeline_stages(m, f"product{lane}_", product, 2, reset_less=True)

    def _first_stage(self, m: Module, lane: int, first: Signal, second: Signal) -> None:
        """Differences, or the value of a lane function of one cycle."""
        a, b, total = self._a[lane], self._b[lane], self._total[lane]
        m.d.sync += [first.eq(a - self._routed["zp_a"]), second.eq(b - self._routed["zp_b"])]
        if self._params.vector_average:
            with m.If(self._routed["average"]):
                m.d.sync += first.eq(total)
