"""Dispatch: judges each instruction and puts it into its unit's queue, in program order."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.ports import CAUSE_BITS
from hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, INSTRUCTIONS, QUEUED_UNITS, Unit
from hw.spec.params import HardwareParams
from hw.spec.regs import Cause

from .fetch import program_word_layout
from .legality import UNIT_BITS, VERDICT_LAYOUT, Legality
from .queue import INDEX_PART_BITS, WAIT_WORD_LAYOUT, EntryPlaces, QueueWrite
from .waits import UNIT_SELECT_BITS, UNITS

FAULT_LAYOUT = data.StructLayout({"cause": CAUSE_BITS, "unit": UNIT_BITS, "index": COUNT_BITS})
"""What went wrong, where, and at which instruction."""


class Dispatch(wiring.Component):
    """Gathers each instruction from the program's words, judges it, and makes it an entry of its unit's queue.

    The words go into the queue as they come. The waits follow in the cycles in which the instruction is judged; then
    it is committed, unless it is illegal. BEGIN and END stay out of the queues. An instruction takes
    `beats_per_instruction + GAP` cycles.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    running
        A program runs; low, nothing is taken.
    words
        The program, with the marks of its bus errors.
    exhausted
        There are no more words.
    queues
        The units' queues.
    end_write, end_unit, end_wait, end_written
        END's wait for a unit, until it has been taken down.
    end_ready, end_met
        All END's waits have been taken down; they are met.
    quiet
        All queues and units are empty.
    index
        Number of the instruction at hand.
    ended
        END's waits hold and all is quiet.
    fault_valid, fault
        The program cannot go on; they stay until reset.
    """

    GAP = UNITS
    """Cycles for an instruction beside those for its words: one for each wait."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._places = EntryPlaces(params.axi_data_bits)
        super().__init__(
            {
                "running": In(1),
                "words": In(stream.Signature(program_word_layout(params))),
                "exhausted": In(1),
                "queues": Out(QueueWrite(params)),
                "end_write": Out(1),
                "end_unit": Out(UNIT_SELECT_BITS),
                "end_wait": Out(COUNT_BITS),
                "end_written": In(1),
                "end_ready": Out(1),
                "end_met": In(1),
                "index": Out(COUNT_BITS),
                "quiet": In(1),
                "ended": Out(1),
                "fault_valid": Out(1),
                "fault": Out(FAULT_LAYOUT),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """`count` goes over the words that have come, then over the waits."""
        m = Module()
        words = self._places.instruction_words
        instruction, error = Signal(INSTRUCTION_BITS), Signal()
        count = Signal(range(words + UNITS + 1))
        taken, proceed = Signal(), Signal()
        self._gather(m, instruction, error, count, taken, proceed)
        verdict, judged = self._judge(m, instruction, error, count == words, taken)
        good = judged & (verdict.cause == Cause.NONE)
        queued, unit = self._unit(m, instruction, count)
        self._queue(m, instruction, count, queued, unit)
        m.d.comb += [
            proceed.eq(self.running & ~self.fault_valid & (~queued | self.queues.room.bit_select(unit, 1))),
            self.queues.commit.eq(good & queued & (count == words + UNITS)),
            taken.eq(self.queues.commit | (good & verdict.begin)),
            self.end_ready.eq(good & verdict.end & (count == words + UNITS)),
            self.ended.eq(self.end_ready & self.end_met & self.quiet),
        ]
        self._pass_waits(m, count, queued, good & verdict.end)
        self._watch_faults(m, verdict, judged, self.exhausted & (count == 0))
        with m.If(taken):
            m.d.sync += self.index.eq(self.index + 1)
        return m

    def _pass_waits(self, m: Module, count: Signal, queued: Value, end: Value) -> None:
        """Go over the waits: those of END as they are taken down, each one cycle later than `count` says."""
        words = self._places.instruction_words
        at_end = count == words + UNITS
        with m.If(end):
            m.d.comb += self.end_write.eq(~at_end)
            with m.If(self.end_written & ~at_end):
                m.d.sync += count.eq(count + 1)
        with m.Elif((count >= words) & queued & ~at_end):
            m.d.sync += count.eq(count + 1)

    def _gather(
        self, m: Module, instruction: Signal, error: Signal, count: Signal, taken: Signal, proceed: Signal
    ) -> None:
        """Shift words together; the first word ends up lowest."""
        come = Signal()
        m.d.comb += [
            self.words.ready.eq(taken | (proceed & (count < self._places.instruction_words))),
            come.eq(self.words.valid & self.words.ready),
        ]
        with m.If(taken):
            m.d.sync += [count.eq(0), error.eq(0)]
        with m.If(come):
            m.d.sync += [
                instruction.eq(Cat(instruction[self._params.axi_data_bits :], self.words.payload.data)),
                error.eq((error & ~taken) | self.words.payload.error),
                count.eq(Mux(taken, 1, count + 1)),
            ]

    def _judge(
        self, m: Module, instruction: Signal, error: Signal, whole: Value, taken: Signal
    ) -> tuple[data.View[data.StructLayout], Signal]:
        """The verdict, registered in the cycle in which the instruction is whole for the first time."""
        m.submodules.legality = legality = Legality(self._params)
        verdict, judged = Signal(VERDICT_LAYOUT), Signal()
        m.d.comb += legality.instruction.eq(instruction)
        with m.If(taken):
            m.d.sync += judged.eq(0)
        with m.Elif(whole & self.running & ~self.fault_valid & ~judged):
            m.d.sync += [judged.eq(1), verdict.eq(legality.verdict)]
            with m.If((self.index == 0) & ~legality.verdict.begin):
                m.d.sync += [verdict.cause.eq(Cause.WRONG_PROGRAM), verdict.unit.eq(Unit.CONTROL)]
            with m.If(error):
                m.d.sync += [verdict.cause.eq(Cause.FETCH_ERROR), verdict.unit.eq(Unit.CONTROL)]
        return verdict, judged

    def _unit(self, m: Module, instruction: Signal, count: Signal) -> tuple[Value, Signal]:
        """Whether the instruction goes to a queue, and whose: seen in its first word, and remembered."""
        first = instruction[-self._params.axi_data_bits :]
        queued, unit = Signal(), Signal(UNIT_SELECT_BITS)
        queued_before, unit_before = Signal(), Signal(UNIT_SELECT_BITS)
        with m.If(count == 1):
            with m.Switch(first[: INSTRUCTIONS[0].field("opcode").width]):
                for spec in INSTRUCTIONS:
                    if spec.unit in QUEUED_UNITS:
                        with m.Case(spec.opcode):
                            m.d.comb += [queued.eq(1), unit.eq(spec.unit)]
            m.d.sync += [queued_before.eq(queued), unit_before.eq(unit)]
        with m.Else():
            m.d.comb += [queued.eq(queued_before & (count != 0)), unit.eq(unit_before)]
        return queued, unit

    def _queue(self, m: Module, instruction: Signal, count: Signal, queued: Value, unit: Signal) -> None:
        """Words as they come, each again until the next has come; then waits, one a cycle."""
        words = self._places.instruction_words
        wait_number = Signal(UNIT_SELECT_BITS)
        wait = data.View(WAIT_WORD_LAYOUT, self.queues.word[: WAIT_WORD_LAYOUT.size])
        m.d.comb += [
            self.queues.valid.eq(queued & self.queues.room.bit_select(unit, 1)),
            self.queues.unit.eq(unit),
            self.queues.place.eq(count + (UNITS - 1)),
            self.queues.word.eq(instruction[-self._params.axi_data_bits :]),
            wait_number.eq(count - (words + queued)),
            self.end_unit.eq(wait_number),
        ]
        with m.Switch(wait_number):
            for u in QUEUED_UNITS:
                with m.Case(u):
                    at = INSTRUCTIONS[0].offsets[f"wait_{u.name.lower()}"]
                    m.d.comb += self.end_wait.eq(instruction[at : at + COUNT_BITS])
        with m.If(count > words):
            m.d.comb += [
                self.queues.place.eq(wait_number),
                wait.wait.eq(self.end_wait),
                wait.index_part.eq(self.index.word_select(wait_number, INDEX_PART_BITS)),
            ]

    def _watch_faults(self, m: Module, verdict: data.View[data.StructLayout], judged: Signal, exhausted: Value) -> None:
        with m.If(~self.fault_valid):
            m.d.sync += self.fault.index.eq(self.index)
            with m.If(judged & (verdict.cause != Cause.NONE)):
                m.d.sync += [
                    self.fault_valid.eq(1),
                    self.fault.cause.eq(verdict.cause),
                    self.fault.unit.eq(verdict.unit),
                ]
            with m.Elif(self.running & exhausted):
                m.d.sync += [
                    self.fault_valid.eq(1),
                    self.fault.cause.eq(Cause.NO_END),
                    self.fault.unit.eq(Unit.CONTROL),
                ]
