"""The residual adder: adds a tensor's bytes to the result bytes by the affine law."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.affine import AFFINE_LAYOUT, CONSTANT_BITS, AffineConstants, AffineLane
from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE, ConstantKind
from intloom.hw.spec.arith import SHIFT_BITS, Affine
from intloom.hw.spec.params import HardwareParams


class ResidualAdder(wiring.Component):
    """Keeps residual bytes until their results come, `LATENCY` cycles before the sums leave.

    Parameters
    ----------
    params
        The accelerator's parameters.
    depth
        Groups of residual bytes that find a place before their results come, a power of two.

    Members
    -------
    write:
        From the constants' loader; words of piece RESIDUAL are stored until the next `activate`.
    activate, shift, even:
        Make the stored constants, and these, the ones in use; nothing may be under way.
    arrived, operands:
        Residual bytes, in order.
    result_next:
        A result comes in the next cycle; its residual bytes arrived before this one.
    valid, results:
        Result bytes, in order.
    sums_valid, sums:
        The sums.
    """

    LATENCY = AffineLane.LATENCY

    def __init__(self, params: HardwareParams, depth: int) -> None:
        self._lanes = params.lanes
        self._depth = depth
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
        """A sum."""
        return AffineLane.model(result, residual, k)

    def elaborate(self, platform: object) -> Module:
        """A queue of operands, two sets of constants, a lane of arithmetic for every byte."""
        m = Module()
        operands = self._operand_fifo(m)
        m.submodules.constants = constants = AffineConstants()
        m.d.comb += constants.operation.eq(self._constants(m))
        for number in range(self._lanes):
            lane = AffineLane()
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
        stored = Signal(data.ArrayLayout(32, 4), reset_less=True)
        active = Signal(AFFINE_LAYOUT, reset_less=True)
        with m.If(self.write.kind == ConstantKind.RESIDUAL):
            m.d.sync += stored[self.write.index[:2]].eq(self.write.word)
        with m.If(self.activate):
            m.d.sync += [
                active.m1.eq(stored[0]),
                active.m2.eq(stored[1]),
                active.c.eq(Cat(stored[2], stored[3])[:CONSTANT_BITS]),
                active.shift.eq(self.shift),
                active.even.eq(self.even),
            ]
        return active

    def _operand_fifo(self, m: Module) -> Signal:
        """Operands wait in a small memory, read a cycle before their result comes (`result_next`)."""
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
