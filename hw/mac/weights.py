"""The weight fetcher: streams weight tiles into the array's shadow registers, one tile ahead of the pixels."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.mac.jobs import FETCH_JOB, PIXELS_BITS
from hw.mac.loops import TileLoops
from hw.ports import READ_LATENCY
from hw.spec.isa import SCRATCH_BITS
from hw.spec.params import HardwareParams

CONSTANTS_REQUEST = data.StructLayout({"address": SCRATCH_BITS, "load_table": 1, "load_residual": 1})
"""Where a block's constants begin, and what stands there before the channel parameters."""


class WeightFetcher(wiring.Component):
    """Reads the tiles of each strip, for each strip again, and tells the constants' loader where each block begins.

    A tile's last word is in the shadow `SWAP_AHEAD` cycles after `ready` rises, and the shadow may be overwritten as
    long after `taken`: so pixels may go out while the last words still come in.

    Members
    -------
    jobs:
        One an instruction.
    constants:
        One request for every output block.
    read_valid, read_address, read_allowed:
        Read requests; not made in cycles without `read_allowed`.
    load:
        Bit c: the word that the memory gives in this cycle belongs to column c.
    ready:
        A tile is complete, or will be `SWAP_AHEAD` cycles from now.
    taken:
        The tile's first pixel goes out in this cycle.
    """

    SWAP_AHEAD = READ_LATENCY + 1

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "jobs": In(stream.Signature(FETCH_JOB)),
                "constants": Out(stream.Signature(CONSTANTS_REQUEST)),
                "read_valid": Out(1),
                "read_address": Out(SCRATCH_BITS),
                "read_allowed": In(1),
                "load": Out(params.cols),
                "ready": Out(1),
                "taken": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A word counter inside a tile, the tile loops, and counts of strips and blocks."""
        m = Module()
        m.submodules.loops = loops = TileLoops()
        active = Signal()
        job = Signal(FETCH_JOB)
        for name, _ in loops.bounds.shape():
            m.d.comb += loops.bounds[name].eq(job[name])
        last_word = self._words(m, active)
        m.d.comb += loops.step.eq(last_word)
        self._advance(m, job, active, loops, last_word)
        return m

    def _words(self, m: Module, active: Signal) -> Signal:
        """Read a tile's words while its shadow is free; returns the strobe of the last one."""
        cols = self._params.cols
        column = Signal(range(cols))
        complete = Signal()
        last_word = Signal()
        m.d.comb += [
            self.read_valid.eq(active & ~complete & ~self.constants.valid & self.read_allowed),
            last_word.eq(self.read_valid & (column == cols - 1)),
            self.ready.eq(complete | last_word),
        ]
        with m.If(self.taken):
            m.d.sync += complete.eq(0)
        with m.Elif(last_word):
            m.d.sync += complete.eq(1)
        with m.If(self.read_valid):
            m.d.sync += column.eq(column + 1)
        load = self._delayed_load(m, column)
        m.d.comb += self.load.eq(load)
        return last_word

    def _delayed_load(self, m: Module, column: Signal) -> Signal:
        arriving = Signal(self._params.cols)
        m.d.comb += arriving.eq(self.read_valid << column)
        for number in range(READ_LATENCY):
            after = Signal(self._params.cols, name=f"load{number + 1}")
            m.d.sync += after.eq(arriving)
            arriving = after
        return arriving

    def _advance(
        self, m: Module, job: data.View[data.StructLayout], active: Signal, loops: TileLoops, last_word: Signal
    ) -> None:
        """Addresses, and what follows the last tile of a strip: the strip's tiles again, a new block, a new job."""
        strips, blocks = Signal(PIXELS_BITS), Signal.like(job.out_blocks)
        block_start = Signal(SCRATCH_BITS)
        following = Signal(SCRATCH_BITS)
        strip_end, job_end = last_word & loops.last, Signal()
        m.d.comb += [
            following.eq(self.read_address + 1),
            job_end.eq(strip_end & (strips == 1) & (blocks == 1)),
            self.jobs.ready.eq(~active | job_end),
        ]
        with m.If(self.constants.ready):
            m.d.sync += self.constants.valid.eq(0)
        with m.If(self.jobs.valid & self.jobs.ready):
            offered = self.jobs.payload
            m.d.sync += [
                active.eq(1),
                job.eq(offered),
                strips.eq(offered.strips),
                blocks.eq(offered.out_blocks),
                block_start.eq(offered.first_tile),
                self.read_address.eq(offered.first_tile),
            ]
            self._request(m, offered.address, offered.load_table, offered.load_residual)
        with m.Elif(job_end):
            m.d.sync += active.eq(0)
        with m.Elif(strip_end & (strips == 1)):
            tiles = following + self._params.channel_words
            m.d.sync += [
                strips.eq(job.strips),
                blocks.eq(blocks - 1),
                block_start.eq(tiles),
                self.read_address.eq(tiles),
            ]
            self._request(m, following)
        with m.Elif(self.read_valid):
            m.d.sync += [strips.eq(strips - strip_end), self.read_address.eq(Mux(strip_end, block_start, following))]

    def _request(
        self, m: Module, address: Signal, load_table: Signal | int = 0, load_residual: Signal | int = 0
    ) -> None:
        m.d.sync += [
            self.constants.valid.eq(1),
            self.constants.payload.address.eq(address),
            self.constants.payload.load_table.eq(load_table),
            self.constants.payload.load_residual.eq(load_residual),
        ]
