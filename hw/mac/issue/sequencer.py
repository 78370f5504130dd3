"""Sequencer: issues the pixels of every tile of every strip."""

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.pixel_fetcher import PIXEL_INSTRUCTION, PIXEL_REQUEST
from intloom.hw.mac.issue.loop_setup import plan_layout
from intloom.hw.mac.issue.ring import add_in_ring
from intloom.hw.mac.issue.tile_planner import POSITION, TilePlanner, first_pixel, position, tile_layout, tiles
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams

_BANKS = 2


class Sequencer(wiring.Component):
    """Issues one pixel a cycle, in order of blocks, strips, tiles and pixels.

    A tile's first pixel issues when its weights are loaded, the planner has the next tile or the tile is long enough to
    hide it, and, for a strip's first tile, an accumulator bank is free. A tile never stalls after its first pixel.

    Members
    -------
    plans:
        One loop plan per instruction.
    run:
        Low: start no further tile from the next cycle on.
    weights_ready, weights_taken:
        The next tile's weights are in the shadow registers. Pulse: its first pixel issues.
    bank_released:
        Pulse: readout has read the last sum of the oldest strip.
    pixel_valid, pixel:
        The pixel that issues, to the pixel fetcher.
    first_tile, continued, address:
        With `pixel_valid`: the pixel's sum starts from zero, or from the sum of the other bank; accumulator bank and
        pixel number.
    instruction:
        Fields of the current instruction, up to the cycle after its last pixel.
    strip_ready, strip_length:
        With `pixel_valid`: first pixel of a strip's last tile, or its last pixel with `single_ported_accumulators`;
        pixels in the strip.
    active, waits_weights, waits_bank:
        A tile is current; it waits for weights or for the planner, or for a bank.
    started:
        Pulse: a new instruction's first tile is current from the next cycle on.

    Handshake
    ---------
    `plans` is a stream, taken while no tile is current. The other ports are strobes; pixels have no back-pressure.

    Timing
    ------
    One pixel a cycle, without gaps between tiles and strips while weights and banks are available. From a plan taken to
    its first pixel: `LATENCY` = 1 cycle, if weights and a bank are available and the strips are no shorter than the
    planner's latency; one idle cycle separates two instructions.

    Requirements
    ------------
    The pixel fetcher and the array accept a pixel in every cycle. A pixel recurs no earlier than `Accumulators.REVISIT`
    cycles later; tiles that would violate this wait for the planner.

    Reset and faults
    ----------------
    Soft reset drops the current instruction and frees both banks. There are no faults of its own; `run` low stops it at
    the next tile.
    """

    LATENCY = 1
    """Cycles from a plan taken to its first pixel, if weights and a bank are available and strips hide the planner."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._number_bits = (params.strip - 1).bit_length()
        super().__init__(
            {
                "plans": In(stream.Signature(plan_layout(params))),
                "run": In(1),
                "weights_ready": In(1),
                "weights_taken": Out(1),
                "bank_released": In(1),
                "pixel_valid": Out(1),
                "pixel": Out(PIXEL_REQUEST),
                "instruction": Out(PIXEL_INSTRUCTION),
                "first_tile": Out(1),
                "continued": Out(1),
                "address": Out(self._number_bits + 1),
                "strip_ready": Out(1),
                "strip_length": Out(params.strip.bit_length()),
                "active": Out(1),
                "waits_weights": Out(1),
                "waits_bank": Out(1),
                "started": Out(1),
            }
        )

    @staticmethod
    def model(
        plans: Iterable[Mapping[str, int]], params: HardwareParams
    ) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
        """Each pixel in order: the pixel fetcher's request, and the outputs beside it."""
        bank = 0
        for plan in plans:
            for (_, strip, tap), (_, tile) in zip(tiles(plan), TilePlanner.model(plan), strict=True):
                for number, pixel_number in enumerate(strip):
                    at = position(plan, tap, pixel_number)
                    tile_start, tile_end = number == 0, number == len(strip) - 1
                    pixel = {
                        "swap": tile_start,
                        "row_inside": 0 <= at["iy"] < plan["in_h"],
                        "ix": at["ix"],
                        "address": (tile["base"] + at["row"]) % (1 << SCRATCH_BITS),
                    }
                    late = params.single_ported_accumulators
                    yield (
                        pixel | {name: plan[name] for name in PIXEL_INSTRUCTION.members},
                        {
                            "weights_taken": tile_start,
                            "first_tile": tile["first"] and not plan["continue_sums"],
                            "continued": tile["first"] and plan["continue_sums"],
                            "address": bank * params.strip + number,
                            "strip_ready": tile["last"] and (tile_end if late else tile_start),
                            "strip_length": len(strip),
                        },
                    )
                bank ^= tile["last"]

    def elaborate(self, platform: object) -> Module:
        """Position and tile registers; the planner provides their next values."""
        m = Module()
        m.submodules.planner = planner = self._planner = TilePlanner(self._params)
        plan = self._plan = Signal(plan_layout(self._params), reset_less=True)
        tile = self._tile = Signal(tile_layout(self._params), reset_less=True)
        self._position = Signal(POSITION, name="position", reset_less=True)
        number = Signal(self._number_bits)
        m.d.comb += planner.plan.eq(plan)
        # The next pixel is its tile's first, its last; the tile is at least as long as the planner's latency.
        tile_start, strip_end, covers_planner = Signal(init=1), Signal(), Signal()
        self._fire(m, tile_start, covers_planner)
        next_position, line_end = Signal(POSITION), Signal()
        self._next_position = next_position
        self._follow(m, line_end)
        last_pixel = Signal()
        m.d.comb += [
            last_pixel.eq(self.pixel_valid & strip_end),
            planner.capture.eq(last_pixel & tile.first),
            planner.captured.eq(next_position),
        ]
        with m.If(self.pixel_valid):
            m.d.sync += [
                number.eq(Mux(strip_end, 0, number + 1)),
                tile_start.eq(strip_end),
                # One pixel ahead: the flag is a register, not a comparison on the path of `pixel_valid`.
                strip_end.eq(number + 2 == tile.length),
            ]
        self._next_pixel(m, line_end, strip_end)
        self._next_tile(m, strip_end, covers_planner, last_pixel)
        self._output(m, tile_start, last_pixel)
        bank = Signal()
        with m.If(last_pixel & tile.last):
            m.d.sync += bank.eq(~bank)
        m.d.comb += self.address.eq(Cat(number, bank))
        return m

    def _fire(self, m: Module, tile_start: Signal, covers_planner: Signal) -> None:
        """Whether this cycle's pixel issues."""
        planner, tile = self._planner, self._tile
        banks_in_use = Signal(range(_BANKS + 1))
        # Registered like the other conditions of a tile's start: it may stop a cycle later, since a tile in progress
        # completes.
        run = Signal()
        m.d.sync += run.eq(self.run)
        bank_free = Signal()
        # A tile shorter than the planner's latency waits before its first pixel, never inside: a pixel must not recur
        # within Accumulators.REVISIT cycles (read-modify-write hazard).
        planned = planner.ready | covers_planner
        # Sums that are continued lie in the other bank: readout must have left it.
        m.d.comb += bank_free.eq(Mux(self.continued, banks_in_use == 0, ~banks_in_use[-1]))
        may_begin = run & planned & self.weights_ready & (bank_free | ~tile.first)
        m.d.comb += [
            self.pixel_valid.eq(self.active & (~tile_start | may_begin)),
            self.weights_taken.eq(self.pixel_valid & tile_start),
            self.waits_weights.eq(self.active & tile_start & ~(planned & self.weights_ready)),
            self.waits_bank.eq(self.active & tile_start & planned & self.weights_ready & tile.first & ~bank_free),
        ]
        m.d.sync += banks_in_use.eq(banks_in_use + (self.weights_taken & tile.first) - self.bank_released)

    def _follow(self, m: Module, line_end: Signal) -> None:
        """The next pixel in raster order."""
        plan, position, next_position = self._plan, self._position, self._next_position
        with m.If(line_end):
            m.d.comb += [
                next_position.ix.eq(self._tile.line),
                next_position.iy.eq(position.iy + plan.stride_h),
                next_position.row.eq(add_in_ring(position.row, plan.row_stride, plan.stride_minus_ring)),
                next_position.left.eq(plan.out_w - 1),
            ]
        with m.Else():
            m.d.comb += [
                next_position.ix.eq(position.ix + plan.stride_w),
                next_position.iy.eq(position.iy),
                next_position.row.eq(position.row),
                next_position.left.eq(position.left - 1),
            ]

    def _next_pixel(self, m: Module, line_end: Signal, strip_end: Signal) -> None:
        """Advance the position with each pixel, or load a new instruction's first one."""
        plan, position = self._plan, self._position
        offered, start = self.plans.payload, self._planner.tile.start
        # A single-tile strip continues with the next pixel, so that its start needs no capture, which would come too
        # late.
        jumps = strip_end & ~self._planner.tile.continues
        first = Signal(POSITION)
        m.d.comb += [first[name].eq(value) for name, value in first_pixel(offered).items()]
        with m.If(self.pixel_valid | self.started):
            m.d.sync += position.eq(Mux(self.active, Mux(jumps, start, self._next_position), first))
            # Like `strip_end`, known one pixel ahead; the statements below correct it where the next pixel is not the
            # neighbor.
            m.d.sync += line_end.eq(position.left == 1)
            with m.If(line_end):
                m.d.sync += line_end.eq(plan.out_w == 1)
            with m.If(jumps):
                m.d.sync += line_end.eq(start.left == 0)
            with m.If(~self.active):
                m.d.sync += line_end.eq(offered.out_w == 1)

    def _next_tile(self, m: Module, strip_end: Signal, covers_planner: Signal, last_pixel: Signal) -> None:
        """After a tile's last pixel: the planned tile, a new instruction's first one, or none."""
        offered, planner, tile = self.plans.payload, self._planner, self._tile
        m.d.comb += [
            self.plans.ready.eq(~self.active),
            self.started.eq(self.plans.valid & self.plans.ready),
            planner.start.eq(self.started),
            planner.step.eq(last_pixel & ~planner.finished),
        ]
        with m.If(planner.step):
            length = planner.tile.length
            m.d.sync += [
                tile.eq(planner.tile),
                strip_end.eq(length == 1),
                covers_planner.eq(length >= TilePlanner.LATENCY),
            ]
        with m.Elif(last_pixel):
            m.d.sync += self.active.eq(0)
        with m.If(self.started):
            single = (offered.kernel_h == 1) & (offered.kernel_w == 1) & (offered.in_blocks == 1)
            m.d.sync += [
                self.active.eq(1),
                self._plan.eq(offered),
                tile.line.eq(offered.ix0),
                tile.base.eq(offered.in_base),
                tile.length.eq(offered.length),
                strip_end.eq(offered.length == 1),
                covers_planner.eq(offered.length >= TilePlanner.LATENCY),
                tile.first.eq(1),
                tile.last.eq(single),
            ]

    def _output(self, m: Module, tile_start: Signal, last_pixel: Signal) -> None:
        pixel, plan, tile, position = self.pixel, self._plan, self._tile, self._position
        m.d.comb += [
            pixel.swap.eq(tile_start),
            pixel.row_inside.eq((position.iy >= 0) & (position.iy < plan.in_h)),
            pixel.ix.eq(position.ix),
            pixel.address.eq(tile.base + position.row),
            *(self.instruction[name].eq(plan[name]) for name in PIXEL_INSTRUCTION.members),
            self.first_tile.eq(tile.first & ~plan.continue_sums),
            self.continued.eq(tile.first & plan.continue_sums),
            self.strip_ready.eq(
                tile.last & (last_pixel if self._params.single_ported_accumulators else self.pixel_valid & tile_start)
            ),
            self.strip_length.eq(tile.length),
        ]
