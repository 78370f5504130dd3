"""A memory bank: a synchronous read port and a write port with byte enables."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.pipeline import output_register
from intloom.hw.yosys_attributes import NO_COLLISIONS


class Bank(wiring.Component):
    """One bank of block RAM with input and output registers.

    The input registers end the long routing delay from the requesters; the output register ends the slow access time of
    block RAM.

    Parameters
    ----------
    depth
        Words.
    word_bytes
        Bytes per word.

    Members
    -------
    read_en, read_row, read_data
        Read port.
    write_row, write_data, write_mask
        Write port; `write_mask` has a bit per byte.

    Handshake
    ---------
    None. `read_data` keeps its value until the next read.

    Timing
    ------
    One read and one write per cycle. From `read_en` to `read_data`: `LATENCY` = 3 cycles. A read that is requested at
    least 1 cycle after a write returns the written data.

    Requirements
    ------------
    No read and write of one word in the same cycle: the read data is undefined.

    Reset and faults
    ----------------
    Reset clears the enables; contents and data registers have no reset. No faults.
    """

    LATENCY = 3

    def __init__(self, depth: int, word_bytes: int) -> None:
        self._depth = depth
        self._word_bytes = word_bytes
        row_bits = ceil_log2(depth)
        super().__init__(
            {
                "read_en": In(1),
                "read_row": In(row_bits),
                "read_data": Out(8 * word_bytes),
                "write_row": In(row_bits),
                "write_data": In(8 * word_bytes),
                "write_mask": In(word_bytes),
            }
        )

    @staticmethod
    def model(word: bytes, data: bytes, mask: int) -> bytes:
        """The word after a write."""
        return bytes(new if mask >> byte & 1 else old for byte, (old, new) in enumerate(zip(word, data, strict=True)))

    def elaborate(self, platform: object) -> Module:
        """A memory with byte enables, with registers at its inputs and its output."""
        m = Module()
        shape = unsigned(8 * self._word_bytes)
        # Without NO_COLLISIONS, Yosys adds logic that defines a read of an address that is being written.
        m.submodules.memory = memory = Memory(shape=shape, depth=self._depth, init=[], attrs=NO_COLLISIONS)
        write = memory.write_port(granularity=8)
        read = memory.read_port(domain="sync")
        m.d.sync += output_register(m, self.read_data, "read_register").eq(read.data)
        # Only the enables have a reset. They qualify the rows and the data.
        read_en, write_mask = Signal(), Signal.like(self.write_mask)
        row, write_row = Signal.like(self.read_row, reset_less=True), Signal.like(self.write_row, reset_less=True)
        data = Signal.like(self.write_data, reset_less=True)
        m.d.sync += [read_en.eq(self.read_en), row.eq(self.read_row)]
        m.d.sync += [write_mask.eq(self.write_mask), write_row.eq(self.write_row), data.eq(self.write_data)]
        m.d.comb += [read.en.eq(read_en), read.addr.eq(row)]
        m.d.comb += [write.en.eq(write_mask), write.addr.eq(write_row), write.data.eq(data)]
        return m
