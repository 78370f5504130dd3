"""A memory bank: a synchronous read port and a write port with byte enables."""

from typing import Any

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.memory.parity import (
    BYTE_GRANULE,
    READER_BITS,
    ParityChecker,
    add_byte_parity,
    drop_byte_parity,
    parity_error_layout,
)
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
    parity
        Each byte has a parity bit in the memory, which is checked when the byte is read.

    Members
    -------
    read_en, read_row, read_data
        Read port.
    write_row, write_data, write_mask
        Write port; `write_mask` has a bit per byte.
    reader, error
        Only with `parity`. The unit that a read is for; its parity error, with the row as address.

    Handshake
    ---------
    None. `read_data` keeps its value until the next read; `error.valid` is a pulse.

    Timing
    ------
    One read and one write per cycle. From `read_en` to `read_data`: `LATENCY` = 3 cycles. A read that is requested at
    least 1 cycle after a write returns the written data. From `read_en` to `error`: `LATENCY` + `ParityChecker.LATENCY`
    = 5 cycles.

    Requirements
    ------------
    No read and write of one word in the same cycle: the read data is undefined.
    With `parity`, every byte is written before it is read.

    Reset and faults
    ----------------
    Reset clears the enables; contents and data registers have no reset. A parity error is reported with `error`.
    """

    LATENCY = 3

    def __init__(self, depth: int, word_bytes: int, *, parity: bool = False) -> None:
        self._depth = depth
        self._word_bytes = word_bytes
        row_bits = ceil_log2(depth)
        members: dict[str, Any] = {
            "read_en": In(1),
            "read_row": In(row_bits),
            "read_data": Out(8 * word_bytes),
            "write_row": In(row_bits),
            "write_data": In(8 * word_bytes),
            "write_mask": In(word_bytes),
        }
        self._parity = parity
        if parity:
            members |= {"reader": In(READER_BITS), "error": Out(parity_error_layout(row_bits))}
        super().__init__(members)

    @staticmethod
    def model(word: bytes, data: bytes, mask: int) -> bytes:
        """The word after a write."""
        return bytes(new if mask >> byte & 1 else old for byte, (old, new) in enumerate(zip(word, data, strict=True)))

    def elaborate(self, platform: object) -> Module:
        """A memory with byte enables, with registers at its inputs and its output."""
        m = Module()
        granule = BYTE_GRANULE if self._parity else 8
        # Without NO_COLLISIONS, Yosys adds logic that defines a read of an address that is being written.
        m.submodules.memory = memory = Memory(
            shape=unsigned(granule * self._word_bytes), depth=self._depth, init=[], attrs=NO_COLLISIONS
        )
        write = memory.write_port(granularity=granule)
        read = memory.read_port(domain="sync")
        # Only the enables have a reset. They qualify the rows and the data.
        read_en, write_mask = Signal(), Signal.like(self.write_mask)
        row, write_row = Signal.like(self.read_row, reset_less=True), Signal.like(self.write_row, reset_less=True)
        data = Signal.like(self.write_data, reset_less=True)
        m.d.sync += [read_en.eq(self.read_en), row.eq(self.read_row)]
        m.d.sync += [write_mask.eq(self.write_mask), write_row.eq(self.write_row), data.eq(self.write_data)]
        m.d.comb += [read.en.eq(read_en), read.addr.eq(row)]
        m.d.comb += [write.en.eq(write_mask), write.addr.eq(write_row)]
        if self._parity:
            m.d.comb += write.data.eq(add_byte_parity(data))
            self._check(m, read_en, row, read.data)
        else:
            m.d.comb += write.data.eq(data)
            m.d.sync += output_register(m, self.read_data, "read_register").eq(read.data)
        return m

    def _check(self, m: Module, read_en: Signal, row: Signal, word: Value) -> None:
        """Check each word behind the output register."""
        register = Signal(len(word), name="read_register", reset_less=True)
        reader = Signal.like(self.reader, reset_less=True)
        m.d.sync += [register.eq(word), reader.eq(self.reader)]
        # Two cycles from the input registers to the output register.
        checker = ParityChecker(len(word), BYTE_GRANULE, len(row), self.LATENCY - 1)
        m.submodules.parity = checker
        m.d.comb += [
            self.read_data.eq(drop_byte_parity(register)),
            checker.read.eq(read_en),
            checker.unit.eq(reader),
            checker.address.eq(row),
            checker.word.eq(register),
            self.error.eq(checker.error),
        ]
