"""Loop setup: strip lengths, and row strides reduced modulo the input ring.

It prepares the next instruction while the current one runs, so it uses serial arithmetic: one bit or one addition a
cycle.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.issue.descriptors import PIXEL_DESCRIPTOR
from intloom.hw.mac.issue.ring import add_in_ring, minus_ring, minus_ring_value
from intloom.hw.mac.issue.tile_loops import LAST_INDICES, last_tile_indices
from intloom.hw.spec.isa import BY_KIND, SCRATCH_BITS, Kind
from intloom.hw.spec.params import HardwareParams

_COPIED = (
    "kernel_h", "kernel_w", "in_blocks", "out_blocks", "in_base", "in_ring", "in_plane", "in_block_step",
    "in_h", "in_w", "iy0", "ix0", "packed", "stride_h", "stride_w", "dilation_h", "zp_in", "out_w", "strips", "index",
    "continue_sums",
)  # fmt: skip
TAP_BITS = 8
"""Width of the distance between kernel columns in pixels: up to 15 words of pixels when packed."""


def plan_layout(params: HardwareParams) -> data.StructLayout:
    """A loop plan.

    A strip has `length` pixels, the last `shorter` strips one less. `row_first`, `row_stride` and `row_tap` are the
    offset of the first input row and its steps per output row and per kernel row, modulo the ring. `column_tap` is the
    input column step per kernel column. `one_strip` and the members after it are `precomputed`.
    """
    copied = {name: PIXEL_DESCRIPTOR.members[name] for name in _COPIED}
    computed = {
        "length": params.strip.bit_length(),
        "shorter": params.strip.bit_length() - 1,
        "column_tap": TAP_BITS,
    }
    rows = dict.fromkeys(("row_first", "row_stride", "row_tap"), SCRATCH_BITS)
    minus_ring = dict.fromkeys(("stride_minus_ring", "tap_minus_ring"), SCRATCH_BITS)
    flags = dict.fromkeys(("one_strip", "one_longer", "one_block"), 1)
    last_indices = {f"last_{name}": shape for name, shape in LAST_INDICES.members.items()}
    return data.StructLayout({**copied, **computed, **rows, **minus_ring, **flags, **last_indices})


def precomputed(plan: Mapping[str, int]) -> dict[str, int]:
    """Flags and sums that the sequencer needs in a plan's first cycle.

    They are computed here because an addition or comparison in that cycle would be on the critical path: whether there
    is no second strip, no second longer strip, no second block; the row steps minus the ring; and the last index of
    each loop over a strip's tiles.
    """
    return {
        "one_strip": int(plan["strips"] == 1),
        "one_longer": int(plan["strips"] <= plan["shorter"] + 1),
        "one_block": int(plan["out_blocks"] == 1),
        "stride_minus_ring": minus_ring(plan["row_stride"], plan["in_ring"]),
        "tap_minus_ring": minus_ring(plan["row_tap"], plan["in_ring"]),
        **{f"last_{name}": value for name, value in last_tile_indices(plan).items()},
    }


def strips(plan: Mapping[str, int]) -> Iterator[range]:
    """The pixels of each strip of a block, numbered in raster order."""
    start = 0
    for number in range(plan["strips"]):
        stop = start + plan["length"] - (number >= plan["strips"] - plan["shorter"])
        yield range(start, stop)
        start = stop


def only_shorter_follow(left: Value, shorter: Value) -> Value:
    """Whether of the strips that are left, this one included, all others are shorter ones."""
    bits = len(shorter) + 1
    return ~left[bits:].any() & (left[:bits] <= shorter + 1)


class _Step(IntEnum):
    IDLE = 0
    LOOK = 1
    BRANCH = 2
    REDUCE = 3
    SETTLE = 4
    SUM = 5
    READY = 6


class LoopSetup(wiring.Component):
    """Computes one loop plan at a time from a descriptor.

    Strip division and ring arithmetic run in parallel. Offsets outside the ring are reduced by a serial division; row
    steps are repeated ring additions.

    Members
    -------
    descriptors:
        One per instruction.
    plans:
        Its plan.

    Handshake
    ---------
    Both are streams. A plan holds until it is taken, and its descriptor is taken with it: the plan has fields of it.

    Timing
    ------
    From a descriptor offered to its plan: at most `MAX_CYCLES` = 40 cycles. The previous instruction hides them if it
    takes as long.

    Requirements
    ------------
    Descriptor fields are legal: at least one strip, stride and dilation.

    Reset and faults
    ----------------
    Soft reset drops the plan in progress. There are no faults.
    """

    MAX_CYCLES = 5 + SCRATCH_BITS + BY_KIND[Kind.CONV].field("dilation_h").maximum
    """Cycles from a descriptor offered to its plan: a full ring reduction, then one addition per dilated row."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {"descriptors": In(stream.Signature(PIXEL_DESCRIPTOR)), "plans": Out(stream.Signature(plan_layout(params)))}
        )

    @staticmethod
    def model(descriptor: dict[str, int], params: HardwareParams) -> dict[str, int]:
        """The plan of a descriptor."""
        lacking, shorter = divmod(-descriptor["low_pixels"] % params.strip, descriptor["strips"])
        modulus = descriptor["in_ring"] or 1 << SCRATCH_BITS
        computed = {
            "length": params.strip - lacking,
            "shorter": shorter,
            "row_first": descriptor["in_row_off"] % modulus,
            "row_stride": descriptor["in_row"] * descriptor["stride_h"] % modulus,
            "row_tap": descriptor["in_row"] * descriptor["dilation_h"] % modulus,
        }
        return {
            **{name: descriptor[name] for name in _COPIED},
            **computed,
            **precomputed(descriptor | computed),
            "column_tap": descriptor["dilation_w"] * (params.pixels_per_word if descriptor["packed"] else 1),
        }

    def elaborate(self, platform: object) -> Module:
        """Division and ring arithmetic side by side."""
        m = Module()
        descriptor = self.descriptors.payload
        self._state = Signal(_Step, name="state")
        start = Signal()
        busy = Signal()
        self._plan = plan = Signal(plan_layout(self._params), reset_less=True)
        m.d.comb += [
            self.plans.payload.eq(plan),
            start.eq(self.descriptors.valid & ~busy),
            self.descriptors.ready.eq(self.plans.valid & self.plans.ready),
        ]
        with m.If(start):
            m.d.sync += busy.eq(1)
        with m.If(self.descriptors.ready):
            m.d.sync += busy.eq(0)
        for name in _COPIED:
            m.d.comb += plan[name].eq(descriptor[name])
        m.d.comb += plan.column_tap.eq(
            Mux(descriptor.packed, descriptor.dilation_w * self._params.pixels_per_word, descriptor.dilation_w)
        )
        divided = self._divide(m, start)
        reduced = self._ring(m, start)
        # One more stage: the precomputed members are registered one cycle after the values they derive from.
        m.d.sync += self.plans.valid.eq(busy & divided & reduced & ~self.descriptors.ready)
        return m

    def _divide(self, m: Module, start: Signal) -> Value:
        """The pixels that whole strips have more than the output, divided by the strips; high when done.

        Their quotient is what each strip lacks, and the remainder the number of strips that lack one more. One quotient
        bit a cycle; the quotient takes the place of the dividend.
        """
        bits = self._params.strip.bit_length()
        plan, descriptor = self._plan, self.descriptors.payload
        dividend, remainder = Signal(bits, reset_less=True), Signal(bits - 1, reset_less=True)
        count = Signal(range(bits + 1))
        doubled = Cat(dividend[-1], remainder)
        # Its sign: a comparison would take another carry chain.
        difference = doubled - descriptor.strips[:bits]
        fits = ~difference[-1] & ~descriptor.strips[bits:].any()
        with m.If(start):
            m.d.sync += [dividend.eq((-descriptor.low_pixels)[: bits - 1]), remainder.eq(0), count.eq(bits)]
        with m.Elif(count != 0):
            m.d.sync += [
                dividend.eq(Cat(fits, dividend)),
                remainder.eq(Mux(fits, difference, doubled)),
                count.eq(count - 1),
            ]
        m.d.comb += plan.shorter.eq(remainder)
        m.d.sync += [
            plan.length.eq(self._params.strip - dividend),
            plan.one_strip.eq(descriptor.strips == 1),
            plan.one_longer.eq(only_shorter_follow(descriptor.strips, remainder)),
            plan.one_block.eq(descriptor.out_blocks == 1),
            *(plan[f"last_{name}"].eq(value) for name, value in last_tile_indices(descriptor).items()),
        ]
        return count == 0

    def _ring(self, m: Module, start: Signal) -> Value:
        """Reduce first offset and row step into the ring if needed, then accumulate row steps; high when done."""
        state = self._state
        plan, descriptor = self._plan, self.descriptors.payload
        row = Signal(SCRATCH_BITS, reset_less=True)
        # One cycle after `row`: the state LOOK waits for it.
        row_minus_ring = Signal(SCRATCH_BITS, reset_less=True)
        count = Signal(range(SCRATCH_BITS))
        outside = Signal()
        has_ring, difference = descriptor.in_ring != 0, row - descriptor.in_ring
        m.d.sync += [
            row_minus_ring.eq(Mux(has_ring, difference[:SCRATCH_BITS], 0)),
            # The sign of a difference that is computed anyway, in place of a second comparison.
            outside.eq(has_ring & ((plan.row_first >= descriptor.in_ring) | ~difference[-1])),
        ]
        multiple = self._multiples(m, count)
        reductions = ((row, descriptor.in_row), (plan.row_first, descriptor.in_row_off))
        with m.If(start):
            m.d.sync += [state.eq(_Step.LOOK), count.eq(0)]
            m.d.sync += [value.eq(initial) for value, initial in reductions]
            m.d.sync += multiple.eq(0)
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
            m.d.sync += [count.eq(count + 1), multiple.eq(add_in_ring(multiple, row, row_minus_ring))]
            with m.If((count + 1 >= descriptor.stride_h) & (count + 1 >= descriptor.dilation_h)):
                m.d.sync += state.eq(_Step.READY)
        for value, initial in reductions:
            self._reduce(m, outside, start, value, initial)
        return state == _Step.READY

    def _multiples(self, m: Module, count: Signal) -> Signal:
        """The row step times `count`, in the state SUM and after it; both steps of the plan are such multiples."""
        plan, descriptor = self._plan, self.descriptors.payload
        multiple = Signal(SCRATCH_BITS, reset_less=True)
        multiple_minus_ring = minus_ring_value(multiple, descriptor.in_ring)
        # The last multiple is copied in the first cycle of READY, before the plan is valid.
        with m.If(count == descriptor.stride_h):
            m.d.sync += [plan.row_stride.eq(multiple), plan.stride_minus_ring.eq(multiple_minus_ring)]
        with m.If(count == descriptor.dilation_h):
            m.d.sync += [plan.row_tap.eq(multiple), plan.tap_minus_ring.eq(multiple_minus_ring)]
        return multiple

    def _reduce(self, m: Module, outside: Signal, start: Signal, value: Signal, initial: Value) -> None:
        """Serial division by the ring, one bit a cycle; the quotient is not kept."""
        dividend = Signal(SCRATCH_BITS, reset_less=True)
        # Restoring division: only the remainder is needed, so no quotient bit is stored.
        doubled = Cat(dividend[-1], value)
        with m.If(start):
            m.d.sync += dividend.eq(initial)
        with m.Elif((self._state == _Step.BRANCH) & outside):
            m.d.sync += value.eq(0)
        with m.Elif(self._state == _Step.REDUCE):
            difference = (doubled - self.descriptors.payload.in_ring)[: SCRATCH_BITS + 2]
            m.d.sync += [dividend.eq(dividend << 1), value.eq(Mux(difference[-1], doubled, difference))]
