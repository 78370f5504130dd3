"""The intake: takes an instruction, checks it, and gives each part of the unit its job."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.buffer import StreamBuffer
from hw.decode import bad_fields
from hw.mac.jobs import (
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
from hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, SCRATCH_BITS, Kind, TableUse
from hw.spec.params import HardwareParams

_JOBS = {"fetch": FETCH_JOB, "pixel": PIXEL_JOB, "drain": DRAIN_JOB, "write": WRITE_JOB}


class Intake(wiring.Component):
    """Jobs stand two deep in every queue, so that parts may run ahead of each other.

    Members
    -------
    valid, instruction, index, ready:
        The instruction offered by control.
    run:
        Low: take nothing.
    fetch, pixel, drain, write:
        The jobs.
    bad, bad_index:
        The instruction taken two cycles ago has an illegal field; it makes no jobs.
    empty:
        No instruction on its way to the queues, nor in them.
    """

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

    def elaborate(self, platform: object) -> Module:
        """Three stages: hold the instruction; check it and multiply; hand out."""
        m = Module()
        held, checked = Signal(), Signal()
        conv = Signal(CONV)
        index, pixels, words = Signal(COUNT_BITS), Signal(PIXELS_BITS), Signal(SCRATCH_BITS)
        illegal = Signal()
        m.d.comb += self.ready.eq(self.run & ~held)
        with m.If(self.valid & self.ready):
            m.d.sync += [conv.eq(self.instruction), index.eq(self.index), held.eq(1), checked.eq(0)]
        with m.If(held & ~checked):
            m.d.sync += [
                checked.eq(1),
                pixels.eq(conv.out_h * conv.out_w),
                words.eq(conv.weights + constant_words(self._params, conv)),
                illegal.eq(bad_fields(Kind.CONV, conv) | self._bad_lane(conv.out_lane)),
            ]
        m.d.comb += [self.bad.eq(held & checked & illegal), self.bad_index.eq(index)]
        extra = {
            "index": index,
            "pixels": pixels,
            "strips": strip_count(self._params, pixels),
            "address": conv.weights,
            "first_tile": words,
            "load_table": conv.table == TableUse.LOAD,
            "load_residual": conv.residual,
        }
        self._hand_out(m, conv, extra, held, checked & ~illegal)
        return m

    def _bad_lane(self, lane: Signal) -> Signal:
        return (lane >= self._params.rows) | (lane & (self._params.lanes - 1)).any()

    def _hand_out(self, m: Module, conv: Signal, extra: dict[str, Signal], held: Signal, legal: Signal) -> None:
        """All four queues take their job in the same cycle."""
        buffers = []
        for name, layout in _JOBS.items():
            buffer = StreamBuffer(layout)
            m.submodules[name] = buffer
            wiring.connect(m, buffer.o, wiring.flipped(getattr(self, name)))
            used = {key: value for key, value in extra.items() if key in layout.members}
            m.d.comb += buffer.i.payload.eq(job(layout, conv, **used))
            buffers.append(buffer)
        room = Signal()
        m.d.comb += room.eq(1)
        for buffer in buffers:
            with m.If(~buffer.i.ready):
                m.d.comb += room.eq(0)
        give = Signal()
        m.d.comb += give.eq(held & legal & room)
        for buffer in buffers:
            m.d.comb += buffer.i.valid.eq(give)
        with m.If(give):
            m.d.sync += held.eq(0)
