"""Tile planner: computes the start of the next weight tile's pixels while the current tile runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.issue.descriptors import STRIPS_BITS
from intloom.hw.mac.issue.loop_setup import TAP_BITS, only_shorter_follow, plan_layout, strips
from intloom.hw.mac.issue.ring import add_in_ring, minus_ring_value
from intloom.hw.mac.issue.tile_loops import LAST_INDICES, Tap, TileLoops, taps
from intloom.hw.spec.isa import BY_KIND, COORDINATE_BITS, SCRATCH_BITS, Kind
from intloom.hw.spec.params import HardwareParams

COORDINATE = signed(18)
"""An input row or column: it may lie before the first pixel or past the last one."""

POSITION = data.StructLayout({"ix": COORDINATE, "iy": COORDINATE, "row": SCRATCH_BITS, "left": COORDINATE_BITS})
"""An output pixel in input coordinates: column, row, offset of that row, and pixels left in the output row."""


def tile_layout(params: HardwareParams) -> data.StructLayout:
    """A tile for the sequencer.

    `line`: input column of an output row's first pixel; `base`: address of the input block; `length`: pixels; `first`,
    `last`: in its strip; `continues`: it starts at the pixel after the current tile's last one, not at `start`.
    """
    return data.StructLayout(
        {
            "start": POSITION,
            "line": COORDINATE,
            "base": SCRATCH_BITS,
            "length": params.strip.bit_length(),
            "first": 1,
            "last": 1,
            "continues": 1,
        }
    )


def tiles(plan: Mapping[str, int]) -> Iterator[tuple[int, range, Tap]]:
    """The tiles of a plan in order: output block, pixels of the strip, kernel tap."""
    for block in range(plan["out_blocks"]):
        for strip in strips(plan):
            yield from ((block, strip, tap) for tap in taps(plan))


def position(plan: Mapping[str, int], tap: Tap, pixel: int) -> dict[str, int]:
    """The input position of an output pixel, numbered in raster order, under one kernel tap."""
    oy, ox = divmod(pixel, plan["out_w"])
    row = plan["row_first"] + oy * plan["row_stride"] + tap.row * plan["row_tap"]
    return {
        "ix": plan["ix0"] + ox * plan["stride_w"] + tap.column * plan["column_tap"],
        "iy": plan["iy0"] + oy * plan["stride_h"] + tap.row * plan["dilation_h"],
        "row": row % (plan["in_ring"] or 1 << SCRATCH_BITS),
        "left": plan["out_w"] - 1 - ox,
    }


def first_pixel(plan: data.View[data.StructLayout]) -> dict[str, Value]:
    """The position of a plan's first pixel under the first tap."""
    return {"ix": plan.ix0, "iy": plan.iy0, "row": plan.row_first, "left": plan.out_w - 1}


_COUNTS = data.StructLayout(
    {
        "strips": STRIPS_BITS,
        "blocks": BY_KIND[Kind.CONV].field("out_blocks").width,
        "base": SCRATCH_BITS,
    }
)
"""Strips left in the block, blocks left, and the block's first address."""
_LAST = data.StructLayout({"strip": 1, "longer": 1, "block": 1})
"""Only one is left: strip, longer strip, block."""


class _Phase(IntEnum):
    READY = 0
    STEP = 1
    COUNT = 2
    FORM = 3


class TilePlanner(wiring.Component):
    """Walks blocks, strips and the tile loops one tile ahead of the sequencer.

    Members
    -------
    plan:
        The current instruction's plan; changes in the cycle after `start`.
    start:
        Pulse: the sequencer begins the first tile of the plan that `plan` holds from the next cycle on.
    step:
        Pulse: the sequencer begins `tile`.
    captured, capture:
        Start of the next strip, given when the first tile of a strip ends.
    tile, ready:
        The tile after the current one.
    finished:
        With `ready`: there is no tile after the current one.

    Handshake
    ---------
    `start` and `step` are strobes without back-pressure; `step` only while `ready`. `tile` holds until the next strobe.

    Timing
    ------
    From `start` or `step` to `ready`: `LATENCY` = 4 cycles. A tile of at least 4 pixels hides it.

    Requirements
    ------------
    `capture` comes in the last cycle of a strip's first tile.

    Reset and faults
    ----------------
    Soft reset clears the loop state; `start` initializes the rest. There are no faults.
    """

    LATENCY = 4

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "plan": In(plan_layout(params)),
                "start": In(1),
                "step": In(1),
                "captured": In(POSITION),
                "capture": In(1),
                "tile": Out(tile_layout(params)),
                "ready": Out(1),
                "finished": Out(1),
            }
        )

    @staticmethod
    def model(plan: Mapping[str, int]) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
        """Each tile in order: its start, and the other members of `tile`; `start` is undefined if it continues."""
        *_, final = taps(plan)
        for block, strip, tap in tiles(plan):
            base = plan["in_base"] + block * plan["in_block_step"] + tap.block * plan["in_plane"]
            first, last = not any(tap), tap == final
            yield (
                position(plan, tap, strip.start),
                {
                    "line": plan["ix0"] + tap.column * plan["column_tap"],
                    "base": base % (1 << SCRATCH_BITS),
                    "length": len(strip),
                    "first": first,
                    "last": last,
                    "continues": first and last and strip.start > 0,
                },
            )

    def elaborate(self, platform: object) -> Module:
        """Three stages: step the loops, count strips and blocks, add tap and strip start."""
        m = Module()
        m.submodules.loops = loops = self._loops = TileLoops()
        for name in LAST_INDICES.members:
            m.d.comb += loops.last_indices[name].eq(self.plan[f"last_{name}"])
        phase = self._phase = Signal(_Phase)
        new_plan, new_block = Signal(), Signal()
        m.d.comb += [self.ready.eq(phase == _Phase.READY), loops.step.eq(phase == _Phase.STEP)]
        with m.If(self.start | self.step):
            m.d.sync += [phase.eq(_Phase.STEP), new_plan.eq(self.start)]
        with m.Elif(phase == _Phase.STEP):
            m.d.sync += phase.eq(_Phase.COUNT)
        with m.Elif(phase == _Phase.COUNT):
            m.d.sync += phase.eq(_Phase.FORM)
        with m.Elif(phase == _Phase.FORM):
            m.d.sync += phase.eq(_Phase.READY)
        tap = self._taps(m, new_plan)
        strip, block_base = self._strips(m, new_plan, new_block)
        self._form(m, tap, strip, block_base, new_block)
        return m

    def _taps(self, m: Module, new_plan: Signal) -> data.View[data.StructLayout]:
        """Distance of the tile from the strip's first one, in columns, rows, row offset and input blocks."""
        loops = self._loops
        tap = Signal(data.StructLayout({"x": TAP_BITS + 4, "y": 8, "row": SCRATCH_BITS, "base": SCRATCH_BITS}))
        with m.If(loops.step):
            m.d.sync += tap.base.eq(tap.base + self.plan.in_plane)
            with m.If(loops.block_end):
                m.d.sync += [tap.base.eq(0), tap.x.eq(tap.x + self.plan.column_tap)]
            with m.If(loops.column_end):
                m.d.sync += [
                    tap.x.eq(0),
                    tap.y.eq(tap.y + self.plan.dilation_h),
                    tap.row.eq(add_in_ring(tap.row, self.plan.row_tap, self.plan.tap_minus_ring)),
                ]
            with m.If(loops.last):
                m.d.sync += [tap.y.eq(0), tap.row.eq(0)]
        return tap

    def _strips(self, m: Module, new_plan: Signal, new_block: Signal) -> tuple[data.View[data.StructLayout], Signal]:
        """The strip of the next tile, and its block's address."""
        loops, phase = self._loops, self._phase
        strip = Signal(
            data.StructLayout({"start": POSITION, "length": self._params.strip.bit_length()}), reset_less=True
        )
        captured = Signal(POSITION, reset_less=True)
        with m.If(self.capture):
            m.d.sync += captured.eq(self.captured)
        counts, current, last = self._counts(m, new_plan)
        plan = self.plan
        strip_ends = Signal()
        with m.If(loops.step):
            m.d.sync += strip_ends.eq(loops.last)
        with m.If(phase == _Phase.COUNT):
            m.d.sync += [counts.eq(current), new_block.eq(0), self.finished.eq(0)]
            with m.If(new_plan | (strip_ends & last.strip)):
                m.d.sync += [strip.start[name].eq(value) for name, value in first_pixel(plan).items()]
                m.d.sync += strip.length.eq(plan.length)
            with m.If(strip_ends & ~last.strip):
                m.d.sync += [strip.start.eq(captured), strip.length.eq(plan.length - last.longer)]
                m.d.sync += counts.strips.eq(current.strips - 1)
            with m.Elif(strip_ends):
                m.d.sync += counts.strips.eq(plan.strips)
                m.d.sync += [counts.blocks.eq(current.blocks - 1), counts.base.eq(current.base + plan.in_block_step)]
                m.d.sync += [new_block.eq(1), self.finished.eq(last.block)]
        return strip, counts.base

    def _counts(self, m: Module, new_plan: Signal) -> tuple[data.View[data.StructLayout], ...]:
        """Remaining counts; their values in this cycle, of a new plan if there is one; and the flags for one left."""
        counts = Signal(_COUNTS, reset_less=True)
        last = Signal(_LAST, reset_less=True)
        current, last_current = Signal(_COUNTS), Signal(_LAST)
        plan, phase = self.plan, self._phase
        m.d.comb += [current.eq(counts), last_current.eq(last)]
        with m.If(new_plan):
            # A new plan is used in the cycle that also stores it: loading it first would cost a cycle of `LATENCY`.
            m.d.comb += current.strips.eq(plan.strips)
            m.d.comb += [current.blocks.eq(plan.out_blocks), current.base.eq(plan.in_base)]
            m.d.comb += [last_current.strip.eq(plan.one_strip), last_current.longer.eq(plan.one_longer)]
            m.d.comb += last_current.block.eq(plan.one_block)
        with m.If(phase == _Phase.FORM):
            m.d.sync += last.strip.eq(counts.strips == 1)
            m.d.sync += last.longer.eq(only_shorter_follow(counts.strips, plan.shorter))
            m.d.sync += last.block.eq(counts.blocks == 1)
        return counts, current, last_current

    def _form(
        self,
        m: Module,
        tap: data.View[data.StructLayout],
        strip: data.View[data.StructLayout],
        block_base: Signal,
        new_block: Signal,
    ) -> None:
        loops, phase = self._loops, self._phase
        tile = Signal(tile_layout(self._params), reset_less=True)
        start = tile.start
        m.d.comb += self.tile.eq(tile)
        # Computed while COUNT runs: FORM does not wait for this subtraction.
        tap_minus_ring = Signal(SCRATCH_BITS, reset_less=True)
        m.d.sync += tap_minus_ring.eq(minus_ring_value(tap.row, self.plan.in_ring))
        with m.If(phase == _Phase.FORM):
            m.d.sync += [
                start.ix.eq(strip.start.ix + tap.x),
                start.iy.eq(strip.start.iy + tap.y),
                start.row.eq(add_in_ring(strip.start.row, tap.row, tap_minus_ring)),
                start.left.eq(strip.start.left),
                tile.line.eq(self.plan.ix0 + tap.x),
                tile.base.eq(block_base + tap.base),
                tile.length.eq(strip.length),
                tile.first.eq(loops.first),
                tile.last.eq(loops.last),
                tile.continues.eq(loops.first & loops.last & ~new_block),
            ]
