"""The weight fetcher: streams weight tiles into the array's shadow registers, one tile ahead of the pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.jobs import FETCH_JOB, PIXELS_BITS
from intloom.hw.mac.loops import TileLoops, last_rounds, taps
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams

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
        Read requests; not made in cycles without `read_allowed`, but for a tile's last word.
    last_word:
        A tile's last word is read in this cycle, whatever else wants to read; it stands in a register.
    load:
        Bit c: the word that the memory gives in this cycle belongs to column c.
    ready:
        A tile is complete, or will be `SWAP_AHEAD` cycles from now.
    taken:
        The tile's first pixel goes out in this cycle.
    """

    SWAP_AHEAD = WEIGHT_LATENCY + 1
    LEAD = 1
    """Cycles from a job taken to its first request of constants, and from the request taken to the first read."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "jobs": In(stream.Signature(FETCH_JOB)),
                "constants": Out(stream.Signature(CONSTANTS_REQUEST)),
                "read_valid": Out(1),
                "read_address": Out(SCRATCH_BITS),
                "read_allowed": In(1),
                "last_word": Out(1),
                "load": Out(params.cols),
                "ready": Out(1),
                "taken": In(1),
            }
        )

    @staticmethod
    def model(job: Mapping[str, int], params: HardwareParams) -> Iterator[int]:
        """The addresses read, in order: each block's tiles once for every strip."""
        size = sum(params.cols for _ in taps(job))
        for block in range(job["out_blocks"]):
            start = job["first_tile"] + block * (size + params.channel_words)
            for _ in range(job["strips"]):
                yield from ((start + word) % (1 << SCRATCH_BITS) for word in range(size))

    @staticmethod
    def requests(job: Mapping[str, int], params: HardwareParams) -> Iterator[dict[str, int]]:
        """The model of `constants`: the first block's stand where the job says, the others' between the tiles."""
        size = sum(params.cols for _ in taps(job))
        yield {name: job[name] for name in CONSTANTS_REQUEST.members}
        for block in range(1, job["out_blocks"]):
            at = job["first_tile"] + block * size + (block - 1) * params.channel_words
            yield {"address": at % (1 << SCRATCH_BITS), "load_table": 0, "load_residual": 0}

    def elaborate(self, platform: object) -> Module:
        """A word counter inside a tile, the tile loops, and counts of strips and blocks."""
        m = Module()
        m.submodules.loops = loops = TileLoops()
        active = Signal()
        job = Signal(FETCH_JOB, reset_less=True)
        self._words(m, active)
        m.d.comb += loops.step.eq(self.last_word)
        self._advance(m, job, active, loops)
        return m

    def _words(self, m: Module, active: Signal) -> None:
        """Read a tile's words while its shadow is free.

        That the last one can be read is certain a cycle before, so `ready` is a register.
        """
        column = Signal(range(self._params.cols))
        before_last = self.read_valid & (column == self._params.cols - 2)
        wanted = active & ~self.constants.valid & ~self.ready
        m.d.comb += self.read_valid.eq(self.last_word | (wanted & self.read_allowed))
        m.d.sync += self.last_word.eq(before_last)
        with m.If(before_last):
            m.d.sync += self.ready.eq(1)
        with m.Elif(self.taken):
            m.d.sync += self.ready.eq(0)
        with m.If(self.read_valid):
            m.d.sync += column.eq(column + 1)
        asked = Signal(self._params.cols)
        m.d.comb += asked.eq(self.read_valid << column)
        m.d.comb += self.load.eq(pipeline_stages(m, "load", asked, WEIGHT_LATENCY, reset_less=False))

    def _advance(self, m: Module, job: data.View[data.StructLayout], active: Signal, loops: TileLoops) -> None:
        """Addresses, and what follows the last tile of a strip: the strip's tiles again, a new block, a new job.

        A tile has `cols` words, so there is time to count after its last word and to look at counters before its end.
        """
        strips = Signal(PIXELS_BITS, reset_less=True)
        blocks = Signal.like(job.out_blocks, reset_less=True)
        last_tile, last_strip, last_block = Signal(), Signal(), Signal()
        m.d.sync += [last_tile.eq(loops.last), last_strip.eq(strips == 1), last_block.eq(blocks == 1)]
        block_start = Signal(SCRATCH_BITS, reset_less=True)
        following = Signal(SCRATCH_BITS)
        strip_end, block_end, job_end = Signal(), Signal(), Signal()
        m.d.comb += [
            following.eq(self.read_address + 1),
            strip_end.eq(self.last_word & last_tile),
            block_end.eq(strip_end & last_strip),
            job_end.eq(block_end & last_block),
            self.jobs.ready.eq(~active),
        ]
        strip_ended, block_ended = Signal(), Signal()
        m.d.sync += [strip_ended.eq(strip_end), block_ended.eq(block_end)]
        with m.If(block_ended):
            m.d.sync += [strips.eq(job.strips), blocks.eq(blocks - 1)]
        with m.Elif(strip_ended):
            m.d.sync += strips.eq(strips - 1)
        with m.If(self.constants.ready):
            m.d.sync += self.constants.valid.eq(0)
        with m.If(self.jobs.valid & self.jobs.ready):
            offered = self.jobs.payload
            m.d.sync += [
                active.eq(1),
                job.eq(offered),
                *(loops.lasts[name].eq(value) for name, value in last_rounds(offered).items()),
                strips.eq(offered.strips),
                blocks.eq(offered.out_blocks),
                block_start.eq(offered.first_tile),
                self.read_address.eq(offered.first_tile),
            ]
            self._request(m, offered.address, offered.load_table, offered.load_residual)
        with m.Elif(job_end):
            m.d.sync += active.eq(0)
        with m.Elif(block_end):
            tiles = following + self._params.channel_words
            m.d.sync += [block_start.eq(tiles), self.read_address.eq(tiles)]
            self._request(m, following)
        with m.Elif(self.read_valid):
            m.d.sync += self.read_address.eq(Mux(strip_end, block_start, following))

    def _request(
        self, m: Module, address: Signal, load_table: Signal | int = 0, load_residual: Signal | int = 0
    ) -> None:
        m.d.sync += [
            self.constants.valid.eq(1),
            self.constants.payload.address.eq(address),
            self.constants.payload.load_table.eq(load_table),
            self.constants.payload.load_residual.eq(load_residual),
        ]
