"""What the sequencer needs ready-made: strip lengths, and row steps reduced to the input ring.

It works on the next instruction while the current one runs, so it takes its time: a bit or an addition a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.jobs import PIXEL_JOB
from intloom.hw.mac.loops import LASTS, last_rounds
from intloom.hw.spec.isa import BY_KIND, SCRATCH_BITS, Kind
from intloom.hw.spec.params import HardwareParams

_KEPT = (
    "kernel_h", "kernel_w", "in_blocks", "two_planes", "out_blocks", "in_base", "in_ring", "in_plane", "in_block_step",
    "in_h", "in_w", "iy0", "ix0", "packed", "stride_h", "stride_w", "dilation_h", "zp_in", "out_w", "strips", "index",
)  # fmt: skip
TAP_BITS = 8
"""Bits of the distance in pixels between neighbouring kernel columns, which is up to 15 words' pixels when packed."""


def plan_layout(params: HardwareParams) -> data.StructLayout:
    """A prepared job.

    `length` pixels in a strip, one more in the first `longer` strips; `row_first`, `row_stride` and `row_tap`: offset
    of the first input row, and its change from one output row and from one kernel row to the next, modulo the ring;
    `column_tap`: input columns from one kernel column to the next. `first_length` and the rest are `foreseen`.
    """
    kept = {name: PIXEL_JOB.members[name] for name in _KEPT}
    made = {"length": params.strip.bit_length(), "longer": PIXEL_JOB.members["strips"], "column_tap": TAP_BITS}
    rows = dict.fromkeys(("row_first", "row_stride", "row_tap"), SCRATCH_BITS)
    backs = dict.fromkeys(("stride_back", "tap_back"), SCRATCH_BITS)
    ahead = {"first_length": made["length"], "one_strip": 1, "one_longer": 1, "one_block": 1}
    lasts = {f"last_{name}": shape for name, shape in LASTS.members.items()}
    return data.StructLayout({**kept, **made, **rows, **backs, **ahead, **lasts})


def foreseen(plan: Mapping[str, int]) -> dict[str, int]:
    """What is asked of a plan in its first cycle, when it is too late for sums and comparisons.

    Its first strip's pixels; whether there is no second strip, no second one of those with a pixel more, no second
    block; the row steps less the ring; and the last round of each loop over a strip's tiles.
    """
    return {
        "first_length": plan["length"] + (plan["longer"] != 0),
        "one_strip": int(plan["strips"] == 1),
        "one_longer": int(plan["longer"] <= 1),
        "one_block": int(plan["out_blocks"] == 1),
        "stride_back": less_ring(plan["row_stride"], plan["in_ring"]),
        "tap_back": less_ring(plan["row_tap"], plan["in_ring"]),
        **{f"last_{name}": value for name, value in last_rounds(plan).items()},
    }


def strips(plan: Mapping[str, int]) -> Iterator[range]:
    """The pixels of each strip of a block, numbered in raster order."""
    start = 0
    for number in range(plan["strips"]):
        stop = start + plan["length"] + (number < plan["longer"])
        yield range(start, stop)
        start = stop


def less_ring(offset: int, ring: int) -> int:
    """An offset less its ring, which is below zero: the bits under its sign. With no ring, far below zero."""
    return (offset - ring) % (1 << SCRATCH_BITS) if ring else 0


def less_ring_value(offset: Value, ring: Value) -> Value:
    """`less_ring` in hardware."""
    there: Value = ring != 0
    return (offset - ring)[:SCRATCH_BITS] & there.replicate(SCRATCH_BITS)


def add_in_ring(a: Value, b: Value, b_back: Value) -> Value:
    """A + b modulo the ring, for operands inside it; modulo the address space when there is no ring.

    `b_back` is b `less_ring`, so both sums that may be right are made at once: the second if it is not below zero.
    """
    back = (a + Cat(b_back, 1))[: SCRATCH_BITS + 1]
    return Mux(back[-1], (a + b)[:SCRATCH_BITS], back[:-1])


class _Step(IntEnum):
    IDLE = 0
    LOOK = 1
    BRANCH = 2
    REDUCE = 3
    SETTLE = 4
    SUM = 5
    READY = 6


class Preparer(wiring.Component):
    """Takes a job, thinks about it for `MOST_CYCLES` at the most, and holds the plan until it is taken."""

    MOST_CYCLES = 5 + SCRATCH_BITS + BY_KIND[Kind.CONV].field("dilation_h").maximum
    """From a job to its plan: the longer of the two ways, a reduction and the sum of a kernel row's input rows."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__({"jobs": In(stream.Signature(PIXEL_JOB)), "plans": Out(stream.Signature(plan_layout(params)))})

    @staticmethod
    def model(job: dict[str, int], params: HardwareParams) -> dict[str, int]:
        """The plan of a job."""
        length, longer = divmod(job["pixels"], job["strips"])
        modulus = job["in_ring"] or 1 << SCRATCH_BITS
        made = {
            "length": length,
            "longer": longer,
            "row_first": job["in_row_off"] % modulus,
            "row_stride": job["in_row"] * job["stride_h"] % modulus,
            "row_tap": job["in_row"] * job["dilation_h"] % modulus,
        }
        return {
            **{name: job[name] for name in _KEPT},
            **made,
            **foreseen(job | made),
            "column_tap": job["dilation_w"] * (params.pixels_per_word if job["packed"] else 1),
        }

    def elaborate(self, platform: object) -> Module:
        """The division and the ring arithmetic run side by side."""
        m = Module()
        job = Signal(PIXEL_JOB, reset_less=True)
        start = Signal()
        busy = Signal()
        self._plan = plan = Signal(plan_layout(self._params), reset_less=True)
        m.d.comb += [
            self.plans.payload.eq(plan),
            start.eq(self.jobs.valid & self.jobs.ready),
            self.jobs.ready.eq(~busy),
        ]
        with m.If(start):
            m.d.sync += [job.eq(self.jobs.payload), busy.eq(1)]
        with m.If(self.plans.valid & self.plans.ready):
            m.d.sync += busy.eq(0)
        for name in _KEPT:
            m.d.comb += plan[name].eq(job[name])
        m.d.comb += plan.column_tap.eq(Mux(job.packed, job.dilation_w * self._params.pixels_per_word, job.dilation_w))
        divided = self._divide(m, start, job)
        reduced = self._ring(m, start, job)
        # What is foreseen of the plan is a cycle behind it.
        m.d.sync += self.plans.valid.eq(busy & divided & reduced & ~(self.plans.valid & self.plans.ready))
        return m

    def _divide(self, m: Module, start: Signal, job: data.View[data.StructLayout]) -> Value:
        """Pixels by strips, one quotient bit a cycle; high when done."""
        bits = self._params.strip.bit_length()
        plan = self._plan
        remainder = Signal.like(job.pixels, reset_less=True)
        divisor = Signal(len(remainder) + bits, reset_less=True)
        count = Signal(range(bits + 1))
        with m.If(start):
            m.d.sync += [
                remainder.eq(self.jobs.payload.pixels),
                divisor.eq(self.jobs.payload.strips << (bits - 1)),
                plan.length.eq(0),
                count.eq(bits),
            ]
        with m.Elif(count != 0):
            fits = Signal()
            m.d.comb += fits.eq(remainder >= divisor)
            m.d.sync += [divisor.eq(divisor >> 1), count.eq(count - 1), plan.length.eq(Cat(fits, plan.length[:-1]))]
            with m.If(fits):
                m.d.sync += remainder.eq(remainder - divisor)
        m.d.comb += plan.longer.eq(remainder)
        m.d.sync += [
            plan.first_length.eq(plan.length + (remainder != 0)),
            plan.one_strip.eq(job.strips == 1),
            plan.one_longer.eq(remainder <= 1),
            plan.one_block.eq(job.out_blocks == 1),
            *(plan[f"last_{name}"].eq(value) for name, value in last_rounds(job).items()),
        ]
        return count == 0

    def _ring(self, m: Module, start: Signal, job: data.View[data.StructLayout]) -> Value:
        """Bring first offset and row step into the ring if they are not, then add row steps up; high when done."""
        state = Signal(_Step)
        plan, offered = self._plan, self.jobs.payload
        row = Signal(SCRATCH_BITS, reset_less=True)
        # A cycle behind the row.
        row_back = Signal(SCRATCH_BITS, reset_less=True)
        count = Signal(range(SCRATCH_BITS))
        outside = Signal()
        m.d.sync += [
            row_back.eq(less_ring_value(row, job.in_ring)),
            outside.eq((job.in_ring != 0) & ((plan.row_first >= job.in_ring) | (row >= job.in_ring))),
        ]
        m.d.sync += [
            plan.stride_back.eq(less_ring_value(plan.row_stride, job.in_ring)),
            plan.tap_back.eq(less_ring_value(plan.row_tap, job.in_ring)),
        ]
        divisions = ((row, offered.in_row), (plan.row_first, offered.in_row_off))
        with m.If(start):
            m.d.sync += [state.eq(_Step.LOOK), count.eq(0)]
            m.d.sync += [value.eq(given) for value, given in divisions]
            m.d.sync += [plan.row_stride.eq(0), plan.row_tap.eq(0)]
        with m.Elif(state == _Step.LOOK):
            m.d.sync += state.eq(_Step.BRANCH)
        with m.Elif(state == _Step.BRANCH):
            m.d.sync += state.eq(Mux(outside, _Step.REDUCE, _Step.SUM))
        with m.Elif(state == _Step.REDUCE):
            m.d.sync += count.eq(count + 1)
            with m.If(count == SCRATCH_BITS - 1):
                m.d.sync += [state.eq(_Step.SETTLE), count.eq(0)]
        with m.Elif(state == _Step.SETTLE):
            m.d.sync += state.eq(_Step.SUM)
        with m.Elif(state == _Step.SUM):
            self._add_up(m, job, state, count, row, row_back)
        for value, given in divisions:
            self._reduce(m, job, state, outside, start, value, given)
        return state == _Step.READY

    def _add_up(
        self, m: Module, job: data.View[data.StructLayout], state: Signal, count: Signal, row: Signal, row_back: Signal
    ) -> None:
        plan = self._plan
        m.d.sync += count.eq(count + 1)
        with m.If(count < job.stride_h):
            m.d.sync += plan.row_stride.eq(add_in_ring(plan.row_stride, row, row_back))
        with m.If(count < job.dilation_h):
            m.d.sync += plan.row_tap.eq(add_in_ring(plan.row_tap, row, row_back))
        with m.If((count + 1 >= job.stride_h) & (count + 1 >= job.dilation_h)):
            m.d.sync += state.eq(_Step.READY)

    def _reduce(
        self,
        m: Module,
        job: data.View[data.StructLayout],
        state: Signal,
        outside: Signal,
        start: Signal,
        value: Signal,
        given: Value,
    ) -> None:
        """A long division by the ring, a bit a cycle; the quotient does not matter."""
        dividend = Signal(SCRATCH_BITS, reset_less=True)
        doubled = Cat(dividend[-1], value)
        with m.If(start):
            m.d.sync += dividend.eq(given)
        with m.Elif((state == _Step.BRANCH) & outside):
            m.d.sync += value.eq(0)
        with m.Elif(state == _Step.REDUCE):
            rest = (doubled - job.in_ring)[: SCRATCH_BITS + 2]
            m.d.sync += [dividend.eq(dividend << 1), value.eq(Mux(rest[-1], doubled, rest))]
