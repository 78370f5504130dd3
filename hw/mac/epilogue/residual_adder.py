"""Residual adder: adds a tensor's bytes to the result bytes by the affine operation."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.affine import AFFINE_LAYOUT, AffineConstants, AffineLane
from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE, ConstantKind
from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, SHIFT_BITS, Affine
from intloom.hw.spec.params import HardwareParams


class ResidualAdder(wiring.Component):
    """Holds residual bytes in a FIFO until their results arrive, and adds both.

    Parameters
    ----------
    params
        The accelerator's parameters.
    depth
        FIFO depth in groups of residual bytes, a power of two.

    Members
    -------
    write:
        From the constants loader; words of kind RESIDUAL go to shadow registers.
    activate, shift, even:
        Pulse: the shadow constants, and these, become active.
    arrived, operands:
        Residual bytes, in order.
    result_next:
        A result arrives in the next cycle.
    valid, results:
        Result bytes, in order.
    sums_valid, sums:
        The sums.

    Handshake
    ---------
    No back-pressure: each residual group is consumed by exactly one result.

    Timing
    ------
    One group a cycle. From `valid` to `sums_valid`: `LATENCY` = 7 cycles.

    Requirements
    ------------
    A result's residual bytes arrive before `result_next`; at most `depth` groups wait. `activate` comes at least 3
    cycles before the first result and while no item is in flight.

    Reset and faults
    ----------------
    Soft reset empties the FIFO; constants survive. There are no faults.
    """

    LATENCY = AffineLane.LATENCY

    def __init__(self, params: HardwareParams, depth: int) -> None:
        self._lanes = params.lanes
        self._depth = depth
        self._wide = params.wide_multipliers
        lanes = data.ArrayLayout(8, params.lanes)
        super().__init__(
            {
                "write": In(CONSTANT_WRITE),
                "activate": In(1),
                "shift": In(SHIFT_BITS),
                "even": In(1),
                "arrived": In(1),
                "operands": In(lanes),
                "result_next": In(1),
                "valid": In(1),
                "results": In(lanes),
                "sums_valid": Out(1),
                "sums": Out(lanes),
            }
        )

    @staticmethod
    def model(result: int, residual: int, k: Affine) -> int:
        """The sum of a result byte and a residual byte."""
        return AffineLane.model(result, residual, k)

    def elaborate(self, platform: object) -> Module:
        """Operand FIFO, shadow and active constants, one affine lane per byte."""
        m = Module()
        operands = self._operand_fifo(m)
        m.submodules.constants = constants = AffineConstants()
        m.d.comb += constants.operation.eq(self._constants(m))
        for number in range(self._lanes):
            lane = AffineLane(self._wide)
            m.submodules[f"lane{number}"] = lane
            m.d.comb += [
                lane.valid.eq(self.valid),
                lane.x1.eq(self.results[number].as_signed()),
                lane.x2.eq(operands.word_select(number, 8).as_signed()),
                lane.constants.eq(constants.prepared),
                self.sums[number].eq(lane.result),
            ]
            if number == 0:
                m.d.comb += self.sums_valid.eq(lane.result_valid)
        return m

    def _constants(self, m: Module) -> data.View[data.StructLayout]:
        # Shadow registers: the next instruction's constants arrive while the previous one's items are still in flight.
        stored = Signal(data.ArrayLayout(32, 4), reset_less=True)
        active = Signal(AFFINE_LAYOUT, reset_less=True)
        with m.If(self.write.kind == ConstantKind.RESIDUAL):
            m.d.sync += stored[self.write.index[:2]].eq(self.write.word)
        with m.If(self.activate):
            m.d.sync += [
                active.m1.eq(stored[0][:FACTOR_BITS]),
                active.m2.eq(stored[1][:FACTOR_BITS]),
                active.c.eq(Cat(stored[2], stored[3])[:CONSTANT_BITS]),
                active.shift.eq(self.shift),
                active.even.eq(self.even),
            ]
        return active

    def _operand_fifo(self, m: Module) -> Signal:
        """Operands in a small memory, read one cycle before their result arrives (`result_next`)."""
        # No full or empty flag: issue bounds the groups, and a result never precedes its residual bytes.
        memory = Memory(shape=8 * self._lanes, depth=self._depth, init=[])
        m.submodules.queue = memory
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [write.en.eq(self.arrived), write.data.eq(self.operands), read.en.eq(self.result_next)]
        head, tail = Signal(range(self._depth)), Signal(range(self._depth))
        m.d.comb += [write.addr.eq(tail), read.addr.eq(head)]
        with m.If(self.arrived):
            m.d.sync += tail.eq(tail + 1)
        with m.If(self.result_next):
            m.d.sync += head.eq(head + 1)
        return read.data
