"""The vector unit's 256-byte table: a word loaded a cycle, a lookup for every byte of a word a cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.spec.params import TABLE_BYTES


class ByteTable(wiring.Component):
    """Maps each byte of a word through the table, or leaves the word as it is; `LATENCY` cycles.

    Every lane has a copy of the table as words: the high bits of its byte read a word, the low bits pick from it.

    Parameters
    ----------
    word_bytes
        Bytes in a word.

    Members
    -------
    write_en, write_row, write_word
        Load a word of the table.
    use
        Look up; must hold while words are under way.
    valid, word
        A word.
    result_valid, result
        The mapped word.
    """

    LATENCY = 2

    def __init__(self, word_bytes: int) -> None:
        self._word_bytes = word_bytes
        super().__init__(
            {
                "write_en": In(1),
                "write_row": In(range(TABLE_BYTES // word_bytes)),
                "write_word": In(8 * word_bytes),
                "use": In(1),
                "valid": In(1),
                "word": In(8 * word_bytes),
                "result_valid": Out(1),
                "result": Out(8 * word_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A memory with a read port for every lane: synthesis makes the copies, simulation needs none."""
        m = Module()
        word_bits = 8 * self._word_bytes
        memory = Memory(shape=unsigned(word_bits), depth=TABLE_BYTES // self._word_bytes, init=[])
        m.submodules.memory = memory
        write = memory.write_port()
        m.d.comb += [write.en.eq(self.write_en), write.addr.eq(self.write_row), write.data.eq(self.write_word)]
        middle = Signal()
        plain = Signal(word_bits, reset_less=True)
        m.d.sync += [middle.eq(self.valid), self.result_valid.eq(middle)]
        with m.If(self.valid):
            m.d.sync += plain.eq(self.word)
        for lane in range(self._word_bytes):
            self._look_up(m, memory, lane, plain.word_select(lane, 8), middle)
        return m

    def _look_up(self, m: Module, memory: Memory, lane: int, plain: Signal, middle: Signal) -> None:
        low_bits = exact_log2(self._word_bytes)
        index = self.word.word_select(lane, 8)
        read = memory.read_port(domain="comb")
        row = Signal(8 * self._word_bytes, name=f"row{lane}", reset_less=True)
        result = Signal(8, name=f"result{lane}", reset_less=True)
        m.d.comb += [read.addr.eq(index[low_bits:]), self.result.word_select(lane, 8).eq(result)]
        with m.If(self.valid & self.use):
            m.d.sync += row.eq(read.data)
        with m.If(middle):
            m.d.sync += result.eq(plain)
            with m.If(self.use):
                m.d.sync += result.eq(row.word_select(plain[:low_bits], 8))
