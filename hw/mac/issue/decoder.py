"""Checks a CONV instruction and distributes its descriptors to the unit's parts."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.issue.descriptors import (
    CONV,
    LOW_PIXELS_BITS,
    PIXEL_DESCRIPTOR,
    PIXELS_BITS,
    READOUT_DESCRIPTOR,
    WEIGHT_DESCRIPTOR,
    WRITE_DESCRIPTOR,
    constant_words,
    pack_descriptor,
    strip_count,
)
from intloom.hw.spec.isa import (
    COUNT_BITS,
    INSTRUCTION_BITS,
    WEIGHT_ADDRESS_BITS,
    ConvMode,
    Instruction,
    TableUse,
)
from intloom.hw.spec.params import HardwareParams

_DESCRIPTORS = {
    "weight": WEIGHT_DESCRIPTOR,
    "pixel": PIXEL_DESCRIPTOR,
    "readout": READOUT_DESCRIPTOR,
    "write": WRITE_DESCRIPTOR,
}


class InstructionDecoder(wiring.Component):
    """Writes one descriptor register per part of the unit, from an instruction whose fields agree with each other.

    Limits of single fields are checked before an instruction enters the unit's queue; the lane depends on the
    parameters, and `continue_sums` on the size of the output.

    Each part has its next descriptor registered while it works on the current one, so that weight fetch, pixel issue,
    readout and write may be in different instructions. The instruction stays with control until all four descriptors
    are written.

    Members
    -------
    valid, instruction, index, ready:
        The instruction offered by control.
    run:
        Low: take nothing from the next cycle on.
    weight, pixel, readout, write:
        The descriptors.
    illegal, illegal_index:
        The offered instruction has a lane inside a group, or `continue_sums` of more than one strip or block; it is not
        taken.

    Handshake
    ---------
    `valid`, `instruction` and `index` hold until `ready`, a pulse of one cycle. The descriptors are streams; all four
    become valid in the cycle after `ready`, and only when none of them is valid.

    Timing
    ------
    From an instruction offered to its descriptors: `LATENCY` = 4 cycles, if the previous descriptors have been taken.
    `illegal` is valid 2 cycles after the offer, for several strips where there must be one 3 cycles. At most one
    instruction every 4 cycles.

    Requirements
    ------------
    `instruction` is stable while `valid` is high: the check pipeline reads it in several cycles.

    Reset and faults
    ----------------
    Soft reset drops the descriptors that were not taken. `illegal` holds while the instruction is offered; the unit
    reports it as `BAD_FIELD`.
    """

    LATENCY = 4
    """Cycles from an instruction offered to its descriptors, if the previous ones have been taken."""

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
        """The descriptor of each part for a legal instruction."""
        pixels, loads_table = conv["out_h"] * conv["out_w"], conv["table"] == TableUse.LOAD
        constants = loads_table * params.table_words + conv["residual"] * params.residual_words + params.channel_words
        made = {
            "index": index,
            "low_pixels": pixels % (1 << LOW_PIXELS_BITS),
            "strips": -(-pixels // params.strip),
            "address": conv["weights"],
            "first_tile": (conv["weights"] + constants) % (1 << WEIGHT_ADDRESS_BITS),
            "load_table": loads_table,
            "load_residual": conv["residual"],
            "packed": conv["mode"] == ConvMode.PACKED,
        }
        known = {**conv.values, **made}
        return {part: {name: known[name] for name in layout.members} for part, layout in _DESCRIPTORS.items()}

    def elaborate(self, platform: object) -> Module:
        """Stages: operand registers, multiply and check, distribute.

        They sample the offered instruction in every cycle; `checked` marks when their result belongs to it.
        """
        m = Module()
        conv = data.View(CONV, self.instruction)
        multiplied, checked, compared = Signal(), Signal(), Signal()
        illegal_fields, several_strips = Signal(), Signal()
        height = Signal(conv.out_h.shape(), reset_less=True)
        width = Signal(conv.out_w.shape(), reset_less=True)
        pixels, words = Signal(PIXELS_BITS, reset_less=True), Signal(WEIGHT_ADDRESS_BITS, reset_less=True)
        offered = self.valid & self.run
        # In the cycle of `ready` control still offers the instruction that was just taken: it must not be checked
        # again.
        waiting = offered & ~self.ready
        m.d.sync += [
            multiplied.eq(waiting),
            checked.eq(waiting & multiplied),
            compared.eq(waiting & checked),
            height.eq(conv.out_h),
            width.eq(conv.out_w),
            pixels.eq(height * width),
            words.eq(conv.weights + constant_words(self._params, conv)),
            illegal_fields.eq(self._illegal_lane(conv.out_lane) | (conv.continue_sums & (conv.out_blocks != 1))),
        ]
        # A cycle later than the other checks: the product comes from a DSP block, with a long routing delay.
        m.d.sync += several_strips.eq(conv.continue_sums & (pixels > self._params.strip))
        illegal = (checked & illegal_fields) | (compared & several_strips)
        m.d.comb += [self.illegal.eq(offered & illegal), self.illegal_index.eq(self.index)]
        extra = {
            "index": self.index,
            "low_pixels": pixels,
            "strips": strip_count(self._params, pixels),
            "address": conv.weights,
            "first_tile": words,
            "load_table": conv.table == TableUse.LOAD,
            "load_residual": conv.residual,
            "packed": conv.mode == ConvMode.PACKED,
        }
        self._distribute(m, conv, extra, offered & checked & ~illegal_fields, several_strips)
        return m

    def _illegal_lane(self, lane: Value) -> Value:
        return (lane >= self._params.rows) | (lane & (self._params.lanes - 1)).any()

    def _distribute(
        self, m: Module, conv: data.View[data.StructLayout], extra: dict[str, Value], legal: Value, illegal: Value
    ) -> None:
        """Write all four descriptors in the same cycle, once the previous ones have been taken.

        The descriptors are wide and spread over the unit, so their write enable is a register; `illegal`, a cycle after
        `legal`, suppresses it.
        """
        armed, fire = Signal(), Signal()
        ports = {name: getattr(self, name) for name in _DESCRIPTORS}
        m.d.sync += armed.eq(legal & ~armed & ~Cat(port.valid for port in ports.values()).any())
        m.d.comb += [fire.eq(armed & ~illegal), self.ready.eq(fire)]
        for name, layout in _DESCRIPTORS.items():
            port = ports[name]
            used = {key: value for key, value in extra.items() if key in layout.members}
            payload = Signal(layout, name=f"{name}_descriptor", reset_less=True)
            m.d.comb += port.payload.eq(payload)
            with m.If(fire):
                m.d.sync += [port.valid.eq(1), payload.eq(pack_descriptor(layout, conv, **used))]
            with m.Elif(port.ready):
                m.d.sync += port.valid.eq(0)
