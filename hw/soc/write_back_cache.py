"""Write-back cache between the CPU's data bus and memory."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.soc.wishbone import ADDRESS_BITS, DATA_BITS, LINE_BYTES, CycleType, Wishbone

_LINE_WORDS = LINE_BYTES * 8 // DATA_BITS
_OFFSET_BITS = exact_log2(_LINE_WORDS)
_LINE_BITS = ADDRESS_BITS - _OFFSET_BITS


class WriteBackCache(wiring.Component):
    """Direct-mapped cache that does not see accesses of other masters: software cleans and invalidates ranges.

    A write changes the cache only. A dirty line is written to memory when another line takes its slot, or when software
    cleans it. A miss reads the line, also for a write.

    Parameters
    ----------
    lines
        Lines of the cache, a power of two.

    Members
    -------
    cpu
        The CPU's accesses to memory.
    memory
        Reads lines as bursts, and writes words.
    control
        A write to register FIRST sets the first address of a range. A write to CLEAN writes back the dirty lines from
        there to the written address; a write to INVALIDATE discards the lines. Both take whole lines. Reads return 0.

    Handshake
    ---------
    Wishbone. A write to CLEAN or INVALIDATE ends when the range is done.

    Timing
    ------
    A hit takes 2 cycles per word. A range takes 2 cycles per line of the cache, and the writes of dirty lines.

    Requirements
    ------------
    `cpu` and `control` are not accessed at the same time.

    Reset and faults
    ----------------
    Reset invalidates all lines, 2 cycles each; accesses wait for it. No faults.
    """

    FIRST, CLEAN, INVALIDATE = range(3)
    """Registers, by word."""

    def __init__(self, lines: int = 512) -> None:
        self._lines = lines
        super().__init__({"cpu": In(Wishbone()), "memory": Out(Wishbone()), "control": In(Wishbone())})

    def elaborate(self, platform: object) -> Module:
        """Tags and words in two memories with one read port each, and one FSM."""
        m = Module()
        slot_bits = exact_log2(self._lines)
        entry = data.StructLayout({"tag": _LINE_BITS - slot_bits, "valid": 1, "dirty": 1})
        m.submodules.tags = tags = Memory(shape=entry, depth=self._lines, init=[])
        m.submodules.words = words = Memory(shape=DATA_BITS, depth=self._lines * _LINE_WORDS, init=[])
        self._tag, self._set_tag = tags.read_port(), tags.write_port()
        self._word, self._set_word = words.read_port(), words.write_port(granularity=8)
        # The walk over all slots for a range, and the word of a line that is written back or read.
        self._walking, self._slot = Signal(init=1), Signal(slot_bits)
        # The walk is that of a command, not that of the reset, for which an access waits until it is done.
        self._commanded = Signal()
        self._first, self._last = Signal(_LINE_BITS), Signal(_LINE_BITS, init=-1)
        self._discard, self._count = Signal(init=1), Signal(_OFFSET_BITS)
        self._line = self.cpu.adr[_OFFSET_BITS:]
        at = Mux(self._walking, self._slot, self._line[:slot_bits])
        m.d.comb += [
            self._tag.addr.eq(at),
            self._set_tag.addr.eq(at),
            self._set_tag.data.eq(self._tag.data),
            self._word.addr.eq(Cat((self._count + self.memory.ack)[:_OFFSET_BITS], at)),
            self._set_word.addr.eq(Cat(self._count, at)),
            self.cpu.dat_r.eq(self._word.data),
        ]
        with m.FSM(name="access"):
            with m.State("READ"):
                self._accept(m)
            with m.State("WALK"):
                self._walk(m)
            with m.State("LOOKUP"):
                self._look_up(m)
            with m.State("EVICT"):
                self._evict(m, at)
            with m.State("FILL"):
                self._fill(m)
        return m

    def _accept(self, m: Module) -> None:
        """The tag is read, and the word of a hit."""
        control = self.control
        line = control.dat_w[exact_log2(LINE_BYTES) :]
        m.d.comb += self._word.addr[:_OFFSET_BITS].eq(self.cpu.adr[:_OFFSET_BITS])
        with m.If(self._walking):
            m.next = "WALK"
        with m.Elif(control.cyc & control.stb):
            commands = control.adr[:2]
            with m.If(~control.we | (commands == self.FIRST)):
                m.d.comb += control.ack.eq(1)
                with m.If(control.we):
                    m.d.sync += self._first.eq(line)
            with m.Else():
                m.d.sync += [self._last.eq(line), self._discard.eq(commands == self.INVALIDATE)]
                m.d.sync += [self._walking.eq(1), self._commanded.eq(1)]
        with m.Elif(self.cpu.cyc & self.cpu.stb):
            m.next = "LOOKUP"

    def _walk(self, m: Module) -> None:
        """One slot of the walk; a line that was written back is looked at again."""
        entry = self._tag.data
        line = Cat(self._slot, entry.tag)
        inside = (self._first <= line) & (line <= self._last)
        with m.If(inside & entry.dirty & ~self._discard):
            m.next = "EVICT"
        with m.Else():
            m.d.comb += [
                self._set_tag.en.eq(inside & self._discard),
                self._set_tag.data.valid.eq(0),
                self._set_tag.data.dirty.eq(0),
            ]
            m.d.sync += self._slot.eq(self._slot + 1)
            m.next = "READ"
            with m.If(self._slot == self._lines - 1):
                m.d.comb += self.control.ack.eq(self._commanded)
                m.d.sync += [self._walking.eq(0), self._commanded.eq(0)]

    def _look_up(self, m: Module) -> None:
        """A hit ends the access; a miss makes room for the line first."""
        cpu, entry = self.cpu, self._tag.data
        with m.If(entry.valid & (entry.tag == self._line[exact_log2(self._lines) :])):
            m.d.comb += [
                cpu.ack.eq(1),
                self._set_word.addr[:_OFFSET_BITS].eq(cpu.adr[:_OFFSET_BITS]),
                self._set_word.data.eq(cpu.dat_w),
                self._set_word.en.eq(Mux(cpu.we, cpu.sel, 0)),
                self._set_tag.en.eq(cpu.we),
                self._set_tag.data.dirty.eq(1),
            ]
            m.next = "READ"
        with m.Elif(entry.dirty):
            m.next = "EVICT"
        with m.Else():
            m.next = "FILL"

    def _evict(self, m: Module, at: Value) -> None:
        """Write a dirty line to memory; then it is clean."""
        memory = self.memory
        m.d.comb += [
            *(getattr(memory, name).eq(1) for name in ("cyc", "stb", "we")),
            memory.sel.eq(-1),
            memory.adr.eq(Cat(self._count, at, self._tag.data.tag)),
            memory.dat_w.eq(self._word.data),
        ]
        with m.If(memory.ack):
            m.d.sync += self._count.eq(self._count + 1)
            with m.If(self._count == _LINE_WORDS - 1):
                m.d.comb += [self._set_tag.en.eq(1), self._set_tag.data.dirty.eq(0)]
                m.next = "READ"

    def _fill(self, m: Module) -> None:
        """Read the line of the access; it hits then."""
        memory, last = self.memory, self._count == _LINE_WORDS - 1
        m.d.comb += [
            *(getattr(memory, name).eq(1) for name in ("cyc", "stb")),
            memory.sel.eq(-1),
            memory.cti.eq(Mux(last, CycleType.END_OF_BURST, CycleType.INCREMENTING)),
            memory.adr.eq(Cat(self._count, self._line)),
            self._set_word.data.eq(memory.dat_r),
            self._set_word.en.eq(memory.ack.replicate(DATA_BITS // 8)),
        ]
        with m.If(memory.ack):
            m.d.sync += self._count.eq(self._count + 1)
            with m.If(last):
                m.d.comb += [
                    self._set_tag.en.eq(1),
                    self._set_tag.data.tag.eq(self._line[exact_log2(self._lines) :]),
                    self._set_tag.data.valid.eq(1),
                ]
                m.next = "READ"
