"""Output walker: addresses of an output's bytes, in the order in which sums are read out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import COORDINATE_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams

WALK = data.StructLayout(
    {
        "out_h": COORDINATE_BITS,
        "out_w": COORDINATE_BITS,
        "blocks": 12,
        "base": SCRATCH_BITS,
        "plane": SCRATCH_BITS,
        "row": 16,
        "x": 4,
        "byte": 5,
    }
)
"""A tensor to walk: sizes, first word, address steps, and the first channel's byte in its word."""


def position_layout(params: HardwareParams) -> data.StructLayout:
    """Word address and first byte of a group, its number in its pixel, and which loops it is the last of."""
    return data.StructLayout(
        {
            "address": SCRATCH_BITS,
            "byte": range(params.rows),
            "group": range(params.cols // params.lanes),
            "pixel_end": 1,
            "block_end": 1,
            "last": 1,
        }
    )


class OutputWalker(wiring.Component):
    """Walks blocks, rows, columns and, innermost, the groups of `lanes` channels of a pixel.

    Members
    -------
    start, walk:
        Pulse: begin a walk; only while `active` is low.
    o:
        The positions, see `position_layout`.
    active:
        Positions remain.

    Handshake
    ---------
    `o` is a stream; a skid buffer drives it from registers.

    Timing
    ------
    One position a cycle. From `start` to the first position: `LATENCY` = 2 cycles.

    Requirements
    ------------
    `walk` is valid from the cycle before `start` to that of `start`; all sizes are at least 1.

    Reset and faults
    ----------------
    Soft reset ends the walk. There are no faults.
    """

    LATENCY = 1 + SkidBuffer.LATENCY

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._groups = params.cols // params.lanes
        super().__init__(
            {
                "start": In(1),
                "walk": In(WALK),
                "o": Out(stream.Signature(position_layout(params))),
                "active": Out(1),
            }
        )

    @staticmethod
    def model(walk: Mapping[str, int], params: HardwareParams) -> Iterator[dict[str, int]]:
        """The positions of a walk, in order."""
        counts = (walk["blocks"], walk["out_h"], walk["out_w"], params.cols // params.lanes)
        final = tuple(count - 1 for count in counts)
        for at in product(*map(range, counts)):
            block, oy, ox, group = at
            channel = walk["byte"] + block * params.cols + group * params.lanes
            word = walk["base"] + channel // params.rows * walk["plane"] + oy * walk["row"] + ox * walk["x"]
            yield {
                "address": word % (1 << SCRATCH_BITS),
                "byte": channel % params.rows,
                "group": group,
                "pixel_end": at[3:] == final[3:],
                "block_end": at[1:] == final[1:],
                "last": at == final,
            }

    def elaborate(self, platform: object) -> Module:
        """Loop counters, and address sums beside them.

        The skid buffer cuts the path from `o.ready` to the counters. Between walks all registers follow `walk`: a loop
        then begins with the values with which it is repeated, without a multiplexer between `walk` and its copy.
        """
        m = Module()
        m.submodules.positions = positions = SkidBuffer(position_layout(self._params))
        wiring.connect(m, positions.o, wiring.flipped(self.o))
        walk = Signal(WALK, reset_less=True)
        walking = self._walking = Signal()
        self._position, self._step = Signal(position_layout(self._params)), Signal()
        with m.If(~walking):
            m.d.sync += walk.eq(self.walk)
        with m.If(self.start):
            m.d.sync += walking.eq(1)
        with m.Elif(self._step & self._position.last):
            m.d.sync += walking.eq(0)
        row_end = self._count(m, walk)
        plane = self._channels(m, walk)
        pixel = self._pixels(m, walk, row_end)
        m.d.comb += [
            self._position.address.eq(plane + pixel),
            self._step.eq(walking & positions.i.ready),
            self.active.eq(walking | positions.o.valid),
            positions.i.valid.eq(walking),
            positions.i.payload.eq(self._position),
        ]
        return m

    def _count(self, m: Module, walk: data.View[data.StructLayout]) -> Signal:
        """Down counters with registered terminal-count flags; returns that of the columns."""
        columns, rows = DownCounter(COORDINATE_BITS, "columns"), DownCounter(COORDINATE_BITS, "rows")
        blocks = DownCounter(12, "blocks")
        group = Signal(range(self._groups))
        m.d.comb += [
            self._position.group.eq(group),
            self._position.pixel_end.eq(group == self._groups - 1),
            self._position.block_end.eq(self._position.pixel_end & columns.last & rows.last),
            self._position.last.eq(self._position.block_end & blocks.last),
        ]
        row_end = self._step & self._position.pixel_end & columns.last
        block_end = self._step & self._position.block_end
        with m.If(~self._walking):
            m.d.sync += group.eq(0)
            blocks.load(m, self.walk.blocks)
        with m.Elif(self._step):
            m.d.sync += group.eq(Mux(self._position.pixel_end, 0, group + 1))
        with m.If(self.start | row_end):
            columns.load(m, walk.out_w)
        with m.Elif(self._step & self._position.pixel_end):
            columns.step(m)
        with m.If(self.start | block_end):
            rows.load(m, walk.out_h)
        with m.Elif(row_end):
            rows.step(m)
        with m.If(block_end):
            blocks.step(m)
        return columns.last

    def _channels(self, m: Module, walk: data.View[data.StructLayout]) -> Signal:
        """Byte and word plane of the group; each pixel of a block starts with the same ones."""
        rows, lanes = self._params.rows, self._params.lanes
        plane, byte = Signal(SCRATCH_BITS, reset_less=True), Signal(range(rows), reset_less=True)
        m.d.comb += self._position.byte.eq(byte)
        first_plane = Signal.like(plane)
        first_byte = Signal.like(byte, reset_less=True)
        next_plane, next_byte = Signal.like(plane), Signal.like(byte)
        m.d.comb += [next_byte.eq(byte + lanes), next_plane.eq(plane)]
        with m.If(byte == rows - lanes):
            m.d.comb += [next_byte.eq(0), next_plane.eq(plane + walk.plane)]
        with m.If(~self._walking):
            m.d.sync += [first_plane.eq(self.walk.base), first_byte.eq(self.walk.byte)]
        with m.Elif(self._step & self._position.block_end):
            m.d.sync += [first_plane.eq(next_plane), first_byte.eq(next_byte)]
        with m.If(self.start | (self._step & self._position.pixel_end & ~self._position.block_end)):
            m.d.sync += [plane.eq(first_plane), byte.eq(first_byte)]
        with m.Elif(self._step):
            m.d.sync += [plane.eq(next_plane), byte.eq(next_byte)]
        return plane

    def _pixels(self, m: Module, walk: data.View[data.StructLayout], row_end: Signal) -> Signal:
        """Offset of the pixel in its plane."""
        pixel = Signal(SCRATCH_BITS, reset_less=True)
        row = Signal.like(pixel)
        origin, distance = Mux(row_end, row, pixel), Mux(row_end, walk.row, walk.x)
        following = (origin + distance)[:SCRATCH_BITS]
        with m.If(~self._walking | (self._step & self._position.block_end)):
            m.d.sync += [pixel.eq(0), row.eq(0)]
        with m.Elif(self._step & self._position.pixel_end):
            m.d.sync += pixel.eq(following)
            with m.If(row_end):
                m.d.sync += row.eq(following)
        return pixel
