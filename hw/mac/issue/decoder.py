"""The decoder: checks an instruction, and gives each part of the unit its descriptor."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.decode import bad_fields
from intloom.hw.mac.issue.descriptors import (
    CONV,
    PIXEL_DESCRIPTOR,
    PIXELS_BITS,
    READOUT_DESCRIPTOR,
    WEIGHT_DESCRIPTOR,
    WRITE_DESCRIPTOR,
    constant_words,
    pack_descriptor,
    strip_count,
)
from intloom.hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, SCRATCH_BITS, Instruction, Kind, TableUse
from intloom.hw.spec.params import HardwareParams

_DESCRIPTORS = {
    "weight": WEIGHT_DESCRIPTOR,
    "pixel": PIXEL_DESCRIPTOR,
    "readout": READOUT_DESCRIPTOR,
    "write": WRITE_DESCRIPTOR,
}


class InstructionDecoder(wiring.Component):
    """Each part has its next descriptor put down beside the one at work, so that parts may run ahead of each other.

    The instruction stays with control until its descriptors are handed out.

    Members
    -------
    valid, instruction, index, ready:
        The instruction offered by control.
    run:
        Low: take nothing from the next cycle on.
    weight, pixel, readout, write:
        The descriptors.
    illegal, illegal_index:
        The instruction on offer has an illegal_fields field; it makes no descriptors and is not taken.
    """

    LATENCY = 4
    """Cycles from an instruction on offer to its descriptors, when all parts have taken their last ones."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "valid": In(1),
                "instruction": In(INSTRUCTION_BITS),
                "index": In(COUNT_BITS),
                "ready": Out(1),
                "run": In(1),
                **{name: Out(stream.Signature(layout)) for name, layout in _DESCRIPTORS.items()},
                "illegal": Out(1),
                "illegal_index": Out(COUNT_BITS),
            }
        )

    @staticmethod
    def model(conv: Instruction, index: int, params: HardwareParams) -> dict[str, dict[str, int]]:
        """The descriptor of each part, of a legal instruction."""
        pixels, loads_table = conv["out_h"] * conv["out_w"], conv["table"] == TableUse.LOAD
        constants = loads_table * params.table_words + conv["residual"] * params.residual_words + params.channel_words
        made = {
            "index": index,
            "pixels": pixels,
            "strips": -(-pixels // params.strip),
            "address": conv["weights"],
            "first_tile": (conv["weights"] + constants) % (1 << SCRATCH_BITS),
            "load_table": loads_table,
            "load_residual": conv["residual"],
        }
        known = {**conv.values, **made}
        return {part: {name: known[name] for name in layout.members} for part, layout in _DESCRIPTORS.items()}

    def elaborate(self, platform: object) -> Module:
        """Stages: operand register, multiply, check, distribute."""
        m = Module()
        conv = data.View(CONV, self.instruction)
        multiplied, checked, illegal_fields = Signal(), Signal(), Signal()
        height = Signal(conv.out_h.shape(), reset_less=True)
        width = Signal(conv.out_w.shape(), reset_less=True)
        pixels, words = Signal(PIXELS_BITS, reset_less=True), Signal(SCRATCH_BITS, reset_less=True)
        offered = self.valid & self.run
        waiting = offered & ~self.ready
        m.d.sync += [
            multiplied.eq(waiting),
            checked.eq(waiting & multiplied),
            height.eq(conv.out_h),
            width.eq(conv.out_w),
            pixels.eq(height * width),
            words.eq(conv.weights + constant_words(self._params, conv)),
            illegal_fields.eq(bad_fields(Kind.CONV, conv) | self._illegal_lane(conv.out_lane)),
        ]
        m.d.comb += [self.illegal.eq(offered & checked & illegal_fields), self.illegal_index.eq(self.index)]
        extra = {
            "index": self.index,
            "pixels": pixels,
            "strips": strip_count(self._params, pixels),
            "address": conv.weights,
            "first_tile": words,
            "load_table": conv.table == TableUse.LOAD,
            "load_residual": conv.residual,
        }
        self._distribute(m, conv, extra, offered & checked & ~illegal_fields)
        return m

    def _illegal_lane(self, lane: Value) -> Value:
        return (lane >= self._params.rows) | (lane & (self._params.lanes - 1)).any()

    def _distribute(self, m: Module, conv: data.View[data.StructLayout], extra: dict[str, Value], legal: Value) -> None:
        """All four parts have their descriptor put down in the same cycle, after the last ones have been taken.

        The descriptors are wide and lie all over the unit, so what moves them stands in a register.
        """
        fire = Signal()
        ports = {name: getattr(self, name) for name in _DESCRIPTORS}
        m.d.sync += fire.eq(legal & ~fire & ~Cat(port.valid for port in ports.values()).any())
        m.d.comb += self.ready.eq(fire)
        for name, layout in _DESCRIPTORS.items():
            port = ports[name]
            used = {key: value for key, value in extra.items() if key in layout.members}
            payload = Signal(layout, name=f"{name}_descriptor", reset_less=True)
            m.d.comb += port.payload.eq(payload)
            with m.If(fire):
                m.d.sync += [port.valid.eq(1), payload.eq(pack_descriptor(layout, conv, **used))]
            with m.Elif(port.ready):
                m.d.sync += port.valid.eq(0)
