"""Dispatch: judges each instruction and puts it into its unit's queue, in program order."""

from __future__ import annotations

from collections.abc import Container, Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.control.fetch import program_word_layout
from intloom.hw.control.instruction_checks import CHECK_LAYOUT, UNIT_BITS, InstructionChecker
from intloom.hw.control.queue import INDEX_PART_BITS, WAIT_WORD_LAYOUT, EntrySlots, QueueWrite
from intloom.hw.control.waits import UNIT_SELECT_BITS, UNITS
from intloom.hw.ports import CAUSE_BITS
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, INSTRUCTION_BITS, INSTRUCTIONS, QUEUED_UNITS, Kind, Unit, decode
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause

FAULT_LAYOUT = data.StructLayout({"cause": CAUSE_BITS, "unit": UNIT_BITS, "index": COUNT_BITS})
"""What went wrong, where, and at which instruction."""


class Dispatch(wiring.Component):
    """Gathers each instruction from the program's words, judges it, and makes it an entry of its unit's queue.

    The words go into the queue as they come. When the instruction is whole it is judged; if it is legal, its waits
    follow, and it is committed. BEGIN and END stay out of the queues. An instruction takes
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

    GAP = UNITS + 6 + InstructionChecker.LATENCY
    """Cycles for an instruction beside those for its words: to find its unit and that unit's room, to judge it and to
    act on that, to write each wait, and to commit."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._places = EntrySlots(params.axi_data_bits)
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

    @staticmethod
    def entry(code: bytes, index: int, word_bytes: int) -> list[int]:
        """What stands in a queue for an encoded instruction: each wait with a part of its number, then its words."""
        instruction = decode(code)
        parts = [index >> INDEX_PART_BITS * unit & (1 << INDEX_PART_BITS) - 1 for unit in QUEUED_UNITS]
        waits = [instruction[f"wait_{unit.name.lower()}"] for unit in QUEUED_UNITS]
        words = [int.from_bytes(code[at : at + word_bytes], "little") for at in range(0, len(code), word_bytes)]
        return [wait | part << COUNT_BITS for wait, part in zip(waits, parts, strict=True)] + words

    @staticmethod
    def model(
        program: Sequence[bytes], params: HardwareParams, broken: Container[int] = ()
    ) -> tuple[dict[Unit, list[list[int]]], tuple[Cause, Unit, int] | None]:
        """The entries in every unit's queue, and the fault that stops the program, if any.

        `broken` holds the numbers of instructions that come with a bus error.
        """
        entries: dict[Unit, list[list[int]]] = {unit: [] for unit in QUEUED_UNITS}
        for index, code in enumerate(program):
            if index in broken:
                return entries, (Cause.FETCH_ERROR, Unit.CONTROL, index)
            cause, unit = InstructionChecker.model(code, params)
            if index == 0 and code[0] != BY_KIND[Kind.BEGIN].opcode:
                return entries, (Cause.WRONG_PROGRAM, Unit.CONTROL, index)
            if cause is not Cause.NONE:
                return entries, (cause, unit, index)
            if code[0] == BY_KIND[Kind.END].opcode:
                return entries, None
            if unit in entries:
                entries[unit].append(Dispatch.entry(code, index, params.word_bytes))
        return entries, (Cause.NO_END, Unit.CONTROL, len(program))

    def elaborate(self, platform: object) -> Module:
        """One step after the other; what each decides stands in a register before the next looks at it."""
        m = Module()
        instruction, error = Signal(INSTRUCTION_BITS, reset_less=True), Signal()
        queued, unit, place = Signal(), Signal(UNIT_SELECT_BITS), Signal(self._places.bits)
        verdict = Signal(CHECK_LAYOUT, reset_less=True)
        m.submodules.legality = legality = InstructionChecker(self._params)
        m.d.comb += legality.instruction.eq(instruction)
        come = self._take_words(m, instruction, error)
        with m.FSM() as fsm:
            with m.State("FIRST"):
                self._begin(m, come, place, error)
            with m.State("FIND_UNIT"):
                self._find_unit(m, instruction, queued, unit)
                m.next = "FIND_ROOM"
            with m.State("FIND_ROOM"):
                self._find_room(m, queued, unit)
            with m.State("GATHER"):
                self._gather(m, come, place)
            for cycle in range(InstructionChecker.LATENCY):
                with m.State(f"WHOLE{cycle}"):
                    m.next = f"WHOLE{cycle + 1}" if cycle + 1 < InstructionChecker.LATENCY else "JUDGE"
            with m.State("JUDGE"):
                self._judge(m, legality, error, verdict)
                m.next = "ACT"
            with m.State("ACT"):
                self._act(m, verdict)
                m.d.sync += place.eq(0)
            with m.State("WAITS"):
                self._pass_waits(m, queued, place)
            with m.State("COMMIT"):
                m.d.comb += self.queues.commit.eq(1)
                self._finish(m)
            with m.State("END"):
                m.d.comb += self.end_ready.eq(1)
                m.d.sync += self.ended.eq(self.end_met & self.quiet)
            with m.State("FAULT"):
                pass
        gathering = fsm.ongoing("GATHER") | fsm.ongoing("WHOLE0")
        m.d.comb += self.queues.valid.eq(queued & (gathering | fsm.ongoing("WAITS")))
        self._queue(m, instruction, unit, place, fsm.ongoing("WAITS"))
        return m

    def _take_words(self, m: Module, instruction: Signal, error: Signal) -> Signal:
        """Shift words together, the first one ends up lowest; whether one comes."""
        come = Signal()
        m.d.comb += come.eq(self.words.valid & self.words.ready)
        with m.If(come):
            m.d.sync += instruction.eq(Cat(instruction[self._params.axi_data_bits :], self.words.payload.data))
            m.d.sync += error.eq(error | self.words.payload.error)
        return come

    def _begin(self, m: Module, come: Signal, place: Signal, error: Signal) -> None:
        m.d.comb += self.words.ready.eq(self.running)
        m.d.sync += place.eq(UNITS)
        with m.If(come):
            m.d.sync += error.eq(self.words.payload.error)
            m.next = "FIND_UNIT"
        with m.Elif(self.running & self.exhausted):
            self._fail(m, Cause.NO_END, Unit.CONTROL)

    def _find_unit(self, m: Module, instruction: Signal, queued: Signal, unit: Signal) -> None:
        """Whether the instruction goes to a queue, and whose: its first word tells."""
        first = instruction[-self._params.axi_data_bits :]
        m.d.sync += queued.eq(0)
        with m.Switch(first[: INSTRUCTIONS[0].field("opcode").width]):
            for spec in INSTRUCTIONS:
                if spec.unit in QUEUED_UNITS:
                    with m.Case(spec.opcode):
                        m.d.sync += [queued.eq(1), unit.eq(spec.unit)]

    def _find_room(self, m: Module, queued: Signal, unit: Signal) -> None:
        """Wait until its queue has room, which only dispatch itself can take away."""
        room = Signal()
        m.d.sync += room.eq(self.queues.room.bit_select(unit, 1))
        with m.If(~queued | room):
            m.d.sync += room.eq(0)
            m.next = "GATHER"

    def _gather(self, m: Module, come: Signal, place: Signal) -> None:
        """The other words; each stays before the queue until the next has come."""
        m.d.comb += self.words.ready.eq(self.running)
        with m.If(come):
            m.d.sync += place.eq(place + 1)
            with m.If(place == UNITS + self._places.instruction_words - 2):
                m.next = "WHOLE0"

    def _judge(
        self, m: Module, legality: InstructionChecker, error: Signal, verdict: data.View[data.StructLayout]
    ) -> None:
        """The table's verdict, which has had `InstructionChecker.LATENCY` cycles since the instruction was whole."""
        m.d.sync += verdict.eq(legality.verdict)
        with m.If((self.index == 0) & ~legality.verdict.begin):
            m.d.sync += [verdict.cause.eq(Cause.WRONG_PROGRAM), verdict.unit.eq(Unit.CONTROL)]
        with m.If(error):
            m.d.sync += [verdict.cause.eq(Cause.FETCH_ERROR), verdict.unit.eq(Unit.CONTROL)]

    def _act(self, m: Module, verdict: data.View[data.StructLayout]) -> None:
        with m.If(verdict.cause != Cause.NONE):
            self._fail(m, verdict.cause, verdict.unit)
        with m.Elif(verdict.begin):
            self._finish(m)
        with m.Else():
            m.next = "WAITS"

    def _pass_waits(self, m: Module, queued: Signal, place: Signal) -> None:
        """Go over the waits: those of END as they are taken down."""
        m.d.comb += self.end_write.eq(~queued)
        with m.If(queued | self.end_written):
            m.d.sync += place.eq(place + 1)
            with m.If(place == UNITS - 1):
                m.next = "END"
                with m.If(queued):
                    m.next = "COMMIT"

    def _finish(self, m: Module) -> None:
        m.d.sync += self.index.eq(self.index + 1)
        m.next = "FIRST"

    def _fail(self, m: Module, cause: Value | Cause, unit: Value | Unit) -> None:
        m.d.sync += [
            self.fault_valid.eq(1),
            self.fault.cause.eq(cause),
            self.fault.unit.eq(unit),
            self.fault.index.eq(self.index),
        ]
        m.next = "FAULT"

    def _queue(self, m: Module, instruction: Signal, unit: Signal, place: Signal, waits: Value) -> None:
        """Words as they come, then waits, one a cycle."""
        wait_number = place[:UNIT_SELECT_BITS]
        wait = data.View(WAIT_WORD_LAYOUT, self.queues.word[: WAIT_WORD_LAYOUT.size])
        m.d.comb += [
            self.queues.unit.eq(unit),
            self.queues.place.eq(place),
            self.queues.word.eq(instruction[-self._params.axi_data_bits :]),
            self.end_unit.eq(wait_number),
        ]
        with m.Switch(wait_number):
            for u in QUEUED_UNITS:
                with m.Case(u):
                    at = INSTRUCTIONS[0].offsets[f"wait_{u.name.lower()}"]
                    m.d.comb += self.end_wait.eq(instruction[at : at + COUNT_BITS])
        with m.If(waits):
            m.d.comb += [
                wait.wait.eq(self.end_wait),
                wait.index_part.eq(self.index.word_select(wait_number, INDEX_PART_BITS)),
            ]
