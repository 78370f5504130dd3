"""The intake: checks an instruction, and gives each part of the unit its job."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.decode import bad_fields
from intloom.hw.mac.jobs import (
    CONV,
    DRAIN_JOB,
    FETCH_JOB,
    PIXEL_JOB,
    PIXELS_BITS,
    WRITE_JOB,
    constant_words,
    job,
    strip_count,
)
from intloom.hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, SCRATCH_BITS, Instruction, Kind, TableUse
from intloom.hw.spec.params import HardwareParams

_JOBS = {"fetch": FETCH_JOB, "pixel": PIXEL_JOB, "drain": DRAIN_JOB, "write": WRITE_JOB}


class Intake(wiring.Component):
    """Each part has its next job put down beside the one at work, so that parts may run ahead of each other.

    The instruction stays with control until its jobs are handed out.

    Members
    -------
    valid, instruction, index, ready:
        The instruction offered by control.
    run:
        Low: take nothing from the next cycle on.
    fetch, pixel, drain, write:
        The jobs.
    bad, bad_index:
        The instruction on offer has an illegal field; it makes no jobs and is not taken.
    """

    LATENCY = 4
    """Cycles from an instruction on offer to its jobs, when all parts have taken their last ones."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "valid": In(1),
                "instruction": In(INSTRUCTION_BITS),
                "index": In(COUNT_BITS),
                "ready": Out(1),
                "run": In(1),
                **{name: Out(stream.Signature(layout)) for name, layout in _JOBS.items()},
                "bad": Out(1),
                "bad_index": Out(COUNT_BITS),
            }
        )

    @staticmethod
    def model(conv: Instruction, index: int, params: HardwareParams) -> dict[str, dict[str, int]]:
        """The job of each part, of a legal instruction."""
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
        return {part: {name: known[name] for name in layout.members} for part, layout in _JOBS.items()}

    def elaborate(self, platform: object) -> Module:
        """Stages: bring the sizes of the instruction on offer to the multiplier; multiply; decide; hand out the jobs.

        As long as it is on offer, it is looked at again and again.
        """
        m = Module()
        conv = data.View(CONV, self.instruction)
        looked, checked, illegal = Signal(), Signal(), Signal()
        height = Signal(conv.out_h.shape(), reset_less=True)
        width = Signal(conv.out_w.shape(), reset_less=True)
        pixels, words = Signal(PIXELS_BITS, reset_less=True), Signal(SCRATCH_BITS, reset_less=True)
        at_hand = self.valid & self.run
        goes_on = at_hand & ~self.ready
        m.d.sync += [
            looked.eq(goes_on),
            checked.eq(goes_on & looked),
            height.eq(conv.out_h),
            width.eq(conv.out_w),
            pixels.eq(height * width),
            words.eq(conv.weights + constant_words(self._params, conv)),
            illegal.eq(bad_fields(Kind.CONV, conv) | self._bad_lane(conv.out_lane)),
        ]
        m.d.comb += [self.bad.eq(at_hand & checked & illegal), self.bad_index.eq(self.index)]
        extra = {
            "index": self.index,
            "pixels": pixels,
            "strips": strip_count(self._params, pixels),
            "address": conv.weights,
            "first_tile": words,
            "load_table": conv.table == TableUse.LOAD,
            "load_residual": conv.residual,
        }
        self._hand_out(m, conv, extra, at_hand & checked & ~illegal)
        return m

    def _bad_lane(self, lane: Value) -> Value:
        return (lane >= self._params.rows) | (lane & (self._params.lanes - 1)).any()

    def _hand_out(self, m: Module, conv: data.View[data.StructLayout], extra: dict[str, Value], legal: Value) -> None:
        """All four parts have their job put down in the same cycle, after the last ones have been taken.

        The jobs are wide and lie all over the unit, so what moves them stands in a register.
        """
        hand = Signal()
        ports = {name: getattr(self, name) for name in _JOBS}
        m.d.sync += hand.eq(legal & ~hand & ~Cat(port.valid for port in ports.values()).any())
        m.d.comb += self.ready.eq(hand)
        for name, layout in _JOBS.items():
            port = ports[name]
            used = {key: value for key, value in extra.items() if key in layout.members}
            payload = Signal(layout, name=f"{name}_job", reset_less=True)
            m.d.comb += port.payload.eq(payload)
            with m.If(hand):
                m.d.sync += [port.valid.eq(1), payload.eq(job(layout, conv, **used))]
            with m.Elif(port.ready):
                m.d.sync += port.valid.eq(0)
