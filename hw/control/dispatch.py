"""Dispatch: checks each instruction and writes it into its unit's queue, in program order."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.control.fetch import program_word_layout
from intloom.hw.control.instruction_checks import CHECK_LAYOUT, UNIT_BITS, InstructionChecker
from intloom.hw.control.program_check import ProgramCheck
from intloom.hw.control.queue import INDEX_PART_BITS, WAIT_WORD_LAYOUT, EntrySlots, QueueWrite
from intloom.hw.control.waits import UNIT_SELECT_BITS, UNITS
from intloom.hw.ports import CAUSE_BITS
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, INSTRUCTION_BITS, INSTRUCTIONS, QUEUED_UNITS, Kind, Unit, decode
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause

FAULT_LAYOUT = data.StructLayout({"cause": CAUSE_BITS, "unit": UNIT_BITS, "index": COUNT_BITS})
"""Cause of a fault, unit, and index of the instruction."""


class Dispatch(wiring.Component):
    """Assembles instructions from the program's words, checks them, and appends them to their units' queues.

    Words are written into the queue as they arrive. The complete instruction is checked: its check bits, then its
    fields. If it is legal, its waits are written too, and the entry is committed. BEGIN and END do not enter a queue.
    The program ends when END's waits are met and all units are idle.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    running
        A program runs. While low, no word is taken.
    words
        Words of the program, each with its error flag.
    exhausted
        No more words will arrive.
    queues
        Write port of the instruction queues.
    end_write, end_unit, end_wait, end_written
        A wait of END, to be written into `WaitChecker`; it was written in this cycle.
    end_ready, end_met
        All waits of END have been written; they are met.
    all_idle
        All queues are empty and all units idle.
    index
        Index of the instruction in dispatch.
    waiting
        The inputs of this cycle change no output and no state.
    ended
        The program has ended.
    fault_valid, fault
        The program cannot continue.

    Handshake
    ---------
    `words` is a stream. `end_write` stays high until `end_written`. `fault_valid` and `fault` are stable until reset.

    Timing
    ------
    From the first word of an instruction to the first word of the next one: `beats_per_instruction + GAP` cycles for a
    queued instruction, if words arrive every cycle and its queue is not full. In `GAP`: 3 cycles to decode the unit and
    see its queue's `not_full`, `InstructionChecker.LATENCY`, 2 cycles to register the check result and act on it, 1 per
    wait, and 1 to commit.

    Requirements
    ------------
    `queues.not_full` of a unit falls only by a commit of this component. `all_idle` is low from the issue of an
    instruction until its `done`.

    Reset and faults
    ----------------
    Reset restarts at index 0. A bus error in any word raises FETCH_ERROR, a mismatch of the program check
    PROGRAM_CHECK, a first instruction other than BEGIN WRONG_PROGRAM, an illegal one the cause of
    `InstructionChecker`, and a program without END raises NO_END.
    """

    GAP = UNITS + 6 + InstructionChecker.LATENCY
    """Cycles per queued instruction beside those for its words: decode, check, waits and commit."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._slots = EntrySlots(params.word_bits)
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
                "all_idle": In(1),
                "waiting": Out(1),
                "ended": Out(1),
                "fault_valid": Out(1),
                "fault": Out(FAULT_LAYOUT),
            }
        )

    @staticmethod
    def entry(code: bytes, index: int, word_bytes: int) -> list[int]:
        """The words of a queue entry for an encoded instruction: each wait with a part of the index, then its words."""
        instruction = decode(code)
        parts = [index >> INDEX_PART_BITS * unit & (1 << INDEX_PART_BITS) - 1 for unit in QUEUED_UNITS]
        waits = [instruction[f"wait_{unit.name.lower()}"] for unit in QUEUED_UNITS]
        words = [int.from_bytes(code[at : at + word_bytes], "little") for at in range(0, len(code), word_bytes)]
        return [wait | part << COUNT_BITS for wait, part in zip(waits, parts, strict=True)] + words

    @staticmethod
    def model(
        program: Sequence[bytes], params: HardwareParams, broken: Container[int] = ()
    ) -> tuple[dict[Unit, list[list[int]]], tuple[Cause, Unit, int] | None]:
        """The entries in every unit's queue, and the fault that stops the program, or None.

        `broken` holds the indices of instructions that arrive with a bus error.
        """
        entries: dict[Unit, list[list[int]]] = {unit: [] for unit in QUEUED_UNITS}
        altered = ProgramCheck.model(program)
        for index, code in enumerate(program):
            if index in broken:
                return entries, (Cause.FETCH_ERROR, Unit.CONTROL, index)
            if altered[index]:
                return entries, (Cause.PROGRAM_CHECK, Unit.CONTROL, index)
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
        """One FSM state per decision, each registered before the next state uses it."""
        m = Module()
        instruction, error = Signal(INSTRUCTION_BITS, reset_less=True), Signal()
        queued, unit, slot = Signal(), Signal(UNIT_SELECT_BITS), Signal(self._slots.bits)
        result = Signal(CHECK_LAYOUT, reset_less=True)
        m.submodules.checker = checker = InstructionChecker(self._params)
        m.submodules.program_check = check = ProgramCheck(self._params)
        # The index stays after a fault.
        m.d.comb += [
            checker.instruction.eq(instruction),
            check.end.eq(checker.result.end),
            self.fault.index.eq(self.index),
        ]
        word_fire = self._take_words(m, instruction, error)
        with m.FSM() as fsm:
            with m.State("FIRST"):
                self._begin(m, word_fire, slot, error)
            with m.State("FIND_UNIT"):
                self._find_unit(m, instruction, queued, unit)
                m.next = "FIND_SPACE"
            with m.State("FIND_SPACE"):
                self._find_space(m, queued, unit)
            with m.State("ASSEMBLE"):
                self._assemble(m, word_fire, slot)
            for cycle in range(InstructionChecker.LATENCY):
                with m.State(f"CHECKING{cycle}"):
                    m.next = f"CHECKING{cycle + 1}" if cycle + 1 < InstructionChecker.LATENCY else "CHECK"
            with m.State("CHECK"):
                self._check(m, checker, error, result)
                m.next = "ACT"
            with m.State("ACT"):
                self._act(m, result, check.mismatch & ~error)
                m.d.sync += slot.eq(0)
            with m.State("WAITS"):
                self._write_waits(m, queued, slot)
            with m.State("COMMIT"):
                self._commit(m)
            with m.State("END"):
                self._end(m)
            with m.State("FAULT"):
                pass
        # CHECKING0 belongs to it: the last word is in the instruction register one cycle after its transfer.
        assembling = fsm.ongoing("ASSEMBLE") | fsm.ongoing("CHECKING0")
        self._detect_waiting(m, fsm.ongoing, queued, unit)
        m.d.comb += self.queues.valid.eq(queued & (assembling | fsm.ongoing("WAITS")))
        self._drive_queue(m, instruction, unit, slot, fsm.ongoing("WAITS"))
        self._drive_check(m, check, instruction, word_fire, fsm.ongoing("ASSEMBLE") & self._is_last(slot))
        return m

    def _detect_waiting(self, m: Module, ongoing: Callable[[str], Value], queued: Signal, unit: Signal) -> None:
        """For the clock gate: only the states in which a program spends long times, and their own conditions."""
        words = self.running & (self.words.valid | self.exhausted)
        m.d.comb += self.waiting.eq(
            (ongoing("FIRST") & ~words)
            | (ongoing("FIND_SPACE") & queued & ~self.queues.not_full.bit_select(unit, 1))
            | (ongoing("END") & (self.ended == (self.end_met & self.all_idle)))
            | ongoing("FAULT")
        )

    def _take_words(self, m: Module, instruction: Signal, error: Signal) -> Signal:
        """Shift words into the instruction register, first word lowest; returns whether a word transfers."""
        word_fire = Signal()
        m.d.comb += word_fire.eq(self.words.valid & self.words.ready)
        with m.If(word_fire):
            m.d.sync += instruction.eq(Cat(instruction[self._params.word_bits :], self.words.payload.data))
            m.d.sync += error.eq(error | self.words.payload.error)
        return word_fire

    def _drive_check(self, m: Module, check: ProgramCheck, instruction: Signal, word_fire: Value, last: Value) -> None:
        """Check each word in the instruction register; the result is valid in ACT."""
        # `last` is registered with its word: decoded before the XORs of the CRC it was the longest path of `base`.
        m.d.sync += [check.valid.eq(word_fire), check.last.eq(last)]
        m.d.comb += check.word.eq(instruction[-self._params.word_bits :])

    def _begin(self, m: Module, word_fire: Signal, slot: Signal, error: Signal) -> None:
        m.d.comb += self.words.ready.eq(self.running)
        # The waits' slots come first, so that the queue reads them first. They are written last, once the instruction
        # is legal.
        m.d.sync += slot.eq(UNITS)
        with m.If(word_fire):
            # This assignment comes after that of `_take_words` and wins: it drops the flag of the previous instruction.
            m.d.sync += error.eq(self.words.payload.error)
            m.next = "FIND_UNIT"
        with m.Elif(self.running & self.exhausted):
            self._fail(m, Cause.NO_END, Unit.CONTROL)

    def _find_unit(self, m: Module, instruction: Signal, queued: Signal, unit: Signal) -> None:
        """Decode from the opcode in the first word whether the instruction is queued, and for which unit."""
        first = instruction[-self._params.word_bits :]
        m.d.sync += queued.eq(0)
        with m.Switch(first[: INSTRUCTIONS[0].field("opcode").width]):
            for spec in INSTRUCTIONS:
                if spec.unit in QUEUED_UNITS:
                    with m.Case(spec.opcode):
                        m.d.sync += [queued.eq(1), unit.eq(spec.unit)]

    def _find_space(self, m: Module, queued: Signal, unit: Signal) -> None:
        """Wait until the unit's queue has space. Only a commit takes space, so one check per instruction is enough."""
        not_full = Signal()
        # Registered: levels of four queues and the selection by unit would end in the state's next-state logic.
        m.d.sync += not_full.eq(self.queues.not_full.bit_select(unit, 1))
        with m.If(~queued | not_full):
            # The next instruction may be for another unit and must not see this one's flag.
            m.d.sync += not_full.eq(0)
            m.next = "ASSEMBLE"

    def _assemble(self, m: Module, word_fire: Signal, slot: Signal) -> None:
        """Take the other words; each is written to its slot until the next one arrives."""
        m.d.comb += self.words.ready.eq(self.running)
        with m.If(word_fire):
            m.d.sync += slot.eq(slot + 1)
            with m.If(self._is_last(slot)):
                m.next = "CHECKING0"

    def _is_last(self, slot: Signal) -> Value:
        """The word that transfers is the last one of the instruction; `slot` is that of the word before it."""
        return slot == UNITS + self._slots.instruction_words - 2

    def _check(
        self, m: Module, checker: InstructionChecker, error: Signal, result: data.View[data.StructLayout]
    ) -> None:
        """Register the check result, valid since `InstructionChecker.LATENCY` cycles have passed."""
        m.d.sync += result.eq(checker.result)
        # Later assignments win: a word that was not read says nothing about the instruction, so FETCH_ERROR comes last.
        with m.If((self.index == 0) & ~checker.result.begin):
            m.d.sync += [result.cause.eq(Cause.WRONG_PROGRAM), result.unit.eq(Unit.CONTROL)]
        with m.If(error):
            m.d.sync += [result.cause.eq(Cause.FETCH_ERROR), result.unit.eq(Unit.CONTROL)]

    def _act(self, m: Module, result: data.View[data.StructLayout], altered: Value) -> None:
        # The fields of an altered instruction say nothing, so this cause comes before theirs.
        with m.If(altered):
            self._fail(m, Cause.PROGRAM_CHECK, Unit.CONTROL)
        with m.Elif(result.cause != Cause.NONE):
            self._fail(m, result.cause, result.unit)
        with m.Elif(result.begin):
            self._finish(m)
        with m.Else():
            m.next = "WAITS"

    def _write_waits(self, m: Module, queued: Signal, slot: Signal) -> None:
        """Write the waits, one per cycle; a wait of END takes until `end_written`."""
        m.d.comb += self.end_write.eq(~queued)
        with m.If(queued | self.end_written):
            m.d.sync += slot.eq(slot + 1)
            with m.If(slot == UNITS - 1):
                m.next = "END"
                with m.If(queued):
                    m.next = "COMMIT"

    def _commit(self, m: Module) -> None:
        m.d.comb += self.queues.commit.eq(1)
        self._finish(m)

    def _end(self, m: Module) -> None:
        m.d.comb += self.end_ready.eq(1)
        # END's waits alone do not end the program: units that END does not wait for may still work.
        m.d.sync += self.ended.eq(self.end_met & self.all_idle)

    def _finish(self, m: Module) -> None:
        m.d.sync += self.index.eq(self.index + 1)
        m.next = "FIRST"

    def _fail(self, m: Module, cause: Value | Cause, unit: Value | Unit) -> None:
        m.d.sync += [
            self.fault_valid.eq(1),
            self.fault.cause.eq(cause),
            self.fault.unit.eq(unit),
        ]
        m.next = "FAULT"

    def _drive_queue(self, m: Module, instruction: Signal, unit: Signal, slot: Signal, waits: Value) -> None:
        """Drive the write port: instruction words as they arrive, then waits."""
        wait_number = slot[:UNIT_SELECT_BITS]
        wait = data.View(WAIT_WORD_LAYOUT, self.queues.word[: WAIT_WORD_LAYOUT.size])
        m.d.comb += [
            self.queues.unit.eq(unit),
            self.queues.slot.eq(slot),
            self.queues.word.eq(instruction[-self._params.word_bits :]),
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
