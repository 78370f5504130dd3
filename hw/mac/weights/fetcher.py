"""Weight fetcher: prefetches weight tiles into the array's shadow registers, and the zero points of their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.issue.descriptors import STRIPS_BITS, WEIGHT_DESCRIPTOR
from intloom.hw.mac.issue.tile_loops import TileLoops, last_tile_indices, taps
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.isa import WEIGHT_ADDRESS_BITS
from intloom.hw.spec.params import HardwareParams

CONSTANTS_REQUEST = data.StructLayout({"address": WEIGHT_ADDRESS_BITS, "load_table": 1, "load_residual": 1})
"""Address of a block's constants, and what precedes the channel parameters there."""

WEIGHTS_TO_SUM = data.StructLayout({"valid": 1, "first": 1, "last": 1, "zp_in": signed(8)})
"""A column's weights that `ZeroPointCorrection` adds up: its tile is the block's first, or last, one."""


class WeightFetcher(wiring.Component):
    """Reads the tiles of each strip, again for every strip, one tile ahead of the pixels.

    Before a block's first tile it reads the zero points of the block's weights, if the instruction has them. It also
    requests each output block's constants, which lie between the blocks' tiles in the weight memory. The shadow
    registers form a double buffer with the active tile: `ready` rises before a tile's last words have arrived, because
    the first pixel takes as long to reach the array.

    Members
    -------
    descriptors:
        One per instruction.
    constants:
        One request per output block.
    read_valid, read_address, read_allowed:
        Read requests; none without `read_allowed`, except for a tile's last word.
    last_word:
        A tile's last word is read in this cycle, with priority; a register.
    load_next:
        Bit c: the word that the memory returns in the next cycle belongs to column c.
    store_zero_points, clear_zero_points:
        Bit k: the memory returns word k of a block's zero points. Pulse: an instruction without zero points begins.
    to_sum:
        The word that is read in this cycle belongs to the sums of a block's weights: it is read for the block's first
        strip, and the instruction subtracts `zp_in`.
    ready:
        A tile is in the shadow, or will be `SWAP_LEAD` cycles from now.
    taken:
        Pulse: the tile's first pixel issues.

    Handshake
    ---------
    `descriptors` and `constants` are streams. Reading waits until a block's request has been taken. `ready` holds until
    `taken`.

    Timing
    ------
    One word a cycle: a tile takes `cols` cycles; zero points take a cycle for each word and one more. From a descriptor
    taken to its constants request, and from that taken to the first read: `REQUEST_LATENCY` = 1 cycle each. From the
    first read to `ready`: `cols` - 1 cycles. A tile's last word is in the shadow `SWAP_LEAD` = 7 cycles after `ready`
    rises, and the shadow may be overwritten from `SWAP_LEAD` cycles after `taken`.

    Requirements
    ------------
    The array swaps its shadow `SWAP_LEAD` cycles after `taken`. The memory returns words `WEIGHT_LATENCY` cycles after
    the read.

    Reset and faults
    ----------------
    Soft reset drops the instruction and `ready`. Addresses wrap at the end of the memory, so there are no faults.
    """

    SWAP_LEAD = WEIGHT_LATENCY + 1
    REQUEST_LATENCY = 1
    """Cycles from a descriptor taken to its constants request, and from the request taken to the first read."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "descriptors": In(stream.Signature(WEIGHT_DESCRIPTOR)),
                "constants": Out(stream.Signature(CONSTANTS_REQUEST)),
                "read_valid": Out(1),
                "read_address": Out(WEIGHT_ADDRESS_BITS),
                "read_allowed": In(1),
                "last_word": Out(1),
                "load_next": Out(params.cols),
                "store_zero_points": Out(params.zero_point_words),
                "clear_zero_points": Out(1),
                "to_sum": Out(WEIGHTS_TO_SUM),
                "ready": Out(1),
                "taken": In(1),
            }
        )

    @staticmethod
    def model(descriptor: Mapping[str, int], params: HardwareParams) -> Iterator[int]:
        """The addresses read, in order: each block's zero points, then its tiles once per strip."""
        size = sum(params.cols for _ in taps(descriptor))
        before = params.zero_point_words * descriptor["weight_zero_points"]
        for block in range(descriptor["out_blocks"]):
            start = descriptor["first_tile"] + block * (before + size + params.channel_words)
            words = [*range(before), *[*range(before, before + size)] * descriptor["strips"]]
            yield from ((start + word) % (1 << WEIGHT_ADDRESS_BITS) for word in words)

    @staticmethod
    def requests(descriptor: Mapping[str, int], params: HardwareParams) -> Iterator[dict[str, int]]:
        """Model of `constants`: the descriptor names the first block's address, the others follow a block's tiles."""
        size = params.zero_point_words * descriptor["weight_zero_points"] + params.cols * len([*taps(descriptor)])
        yield {name: descriptor[name] for name in CONSTANTS_REQUEST.members}
        for block in range(1, descriptor["out_blocks"]):
            at = descriptor["first_tile"] + block * size + (block - 1) * params.channel_words
            yield {"address": at % (1 << WEIGHT_ADDRESS_BITS), "load_table": 0, "load_residual": 0}

    def elaborate(self, platform: object) -> Module:
        """A word counter inside a tile, the tile loops, and counters of strips and blocks."""
        m = Module()
        m.submodules.loops = loops = TileLoops()
        active = Signal()
        descriptor = Signal(WEIGHT_DESCRIPTOR, reset_less=True)
        # Bit k: the next word is word k of the zero points. In the last one's cycle nothing is read, because the word
        # after the zero points must not be a tile's.
        self._zero_points = Signal(self._params.zero_point_words + 1)
        self._tile_read, self._first_strip = Signal(), Signal(init=1)
        self._words(m, active)
        m.d.comb += [
            loops.step.eq(self.last_word),
            self.to_sum.first.eq(loops.first),
            self.to_sum.last.eq(loops.last),
            self.to_sum.zp_in.eq(descriptor.zp_in),
            self.to_sum.valid.eq(self._tile_read & self._first_strip & descriptor.subtract_zp_in),
        ]
        self._advance(m, descriptor, active, loops)
        return m

    def _words(self, m: Module, active: Signal) -> None:
        """Read a tile's words while its shadow is free.

        That the last word will be read is known one cycle ahead, so `last_word` and `ready` are registers.
        """
        column = Signal(range(self._params.cols))
        enabled = active & ~self.constants.valid & self.read_allowed
        tile_read = self._tile_read
        zero_points_read = enabled.replicate(self._params.zero_point_words) & self._zero_points[:-1]
        before_last = tile_read & (column == self._params.cols - 2)
        m.d.comb += [
            tile_read.eq(self.last_word | (enabled & ~self.ready & ~self._zero_points.any())),
            self.read_valid.eq(tile_read | zero_points_read.any()),
        ]
        m.d.sync += self.last_word.eq(before_last)
        with m.If(before_last):
            m.d.sync += self.ready.eq(1)
        with m.Elif(self.taken):
            m.d.sync += self.ready.eq(0)
        with m.If(tile_read):
            m.d.sync += column.eq(column + 1)
        with m.If(zero_points_read.any() | self._zero_points[-1]):
            m.d.sync += self._zero_points.eq(self._zero_points << 1)
        # One-hot through the memory's latency: the columns' enables leave registers and need no decoder.
        column_read, stored = Signal(self._params.cols), Signal(self._params.zero_point_words)
        clear = self.descriptors.valid & self.descriptors.ready & ~self.descriptors.payload.weight_zero_points
        m.d.comb += [
            column_read.eq(tile_read << column),
            stored.eq(zero_points_read),
            self.load_next.eq(pipeline_stages(m, "load", column_read, WEIGHT_LATENCY - 1, reset_less=False)),
            self.store_zero_points.eq(pipeline_stages(m, "store", stored, WEIGHT_LATENCY, reset_less=False)),
            self.clear_zero_points.eq(pipeline_stages(m, "clear", clear, WEIGHT_LATENCY, reset_less=False)),
        ]

    def _advance(self, m: Module, descriptor: data.View[data.StructLayout], active: Signal, loops: TileLoops) -> None:
        """Addresses, and what follows a strip's last tile: its tiles again, a new block, a new instruction.

        A tile has `cols` words, so strip and block counters may change a cycle after its last word, and their terminal
        counts are registered.
        """
        strips = Signal(STRIPS_BITS, reset_less=True)
        blocks = Signal.like(descriptor.out_blocks, reset_less=True)
        last_tile, last_strip, last_block = Signal(), Signal(), Signal()
        m.d.sync += [last_tile.eq(loops.last), last_strip.eq(strips == 1), last_block.eq(blocks == 1)]
        block_start = Signal(WEIGHT_ADDRESS_BITS, reset_less=True)
        next_address = Signal(WEIGHT_ADDRESS_BITS)
        strip_end, block_end, job_end = Signal(), Signal(), Signal()
        m.d.comb += [
            next_address.eq(self.read_address + 1),
            strip_end.eq(self.last_word & last_tile),
            block_end.eq(strip_end & last_strip),
            job_end.eq(block_end & last_block),
            self.descriptors.ready.eq(~active),
        ]
        begun, strip_done, block_done = Signal(), Signal(), Signal()
        m.d.sync += [
            begun.eq(self.descriptors.valid & self.descriptors.ready),
            strip_done.eq(strip_end),
            block_done.eq(block_end),
        ]
        # One cycle after the begin or the tile's end, from registers: the next tile's end is at least `cols` cycles
        # away.
        with m.If(begun | block_done):
            m.d.sync += strips.eq(descriptor.strips)
        with m.Elif(strip_done):
            m.d.sync += strips.eq(strips - 1)
        with m.If(block_done):
            m.d.sync += blocks.eq(blocks - 1)
        with m.If(self.constants.ready):
            m.d.sync += self.constants.valid.eq(0)
        with m.If(self.descriptors.valid & self.descriptors.ready):
            offered = self.descriptors.payload
            m.d.sync += [
                active.eq(1),
                descriptor.eq(offered),
                *(loops.last_indices[name].eq(value) for name, value in last_tile_indices(offered).items()),
                blocks.eq(offered.out_blocks),
                block_start.eq(offered.first_tile),
                self.read_address.eq(offered.first_tile),
                self._zero_points.eq(offered.weight_zero_points),
            ]
            self._request(m, offered.address, offered.load_table, offered.load_residual)
        with m.Elif(job_end):
            m.d.sync += active.eq(0)
        with m.Elif(block_end):
            tiles = next_address + self._params.channel_words
            m.d.sync += [block_start.eq(tiles), self.read_address.eq(tiles)]
            m.d.sync += self._zero_points.eq(descriptor.weight_zero_points)
            self._request(m, next_address)
        with m.Elif(self.read_valid):
            m.d.sync += self.read_address.eq(Mux(strip_end, block_start, next_address))
        with m.If(self._zero_points[-1]):
            m.d.sync += block_start.eq(self.read_address)
        with m.If(strip_end):
            m.d.sync += self._first_strip.eq(block_end)

    def _request(
        self, m: Module, address: Signal, load_table: Signal | int = 0, load_residual: Signal | int = 0
    ) -> None:
        m.d.sync += [
            self.constants.valid.eq(1),
            self.constants.payload.address.eq(address),
            self.constants.payload.load_table.eq(load_table),
            self.constants.payload.load_residual.eq(load_residual),
        ]
