"""The life of a program: start, run, end or stop, and the way back to rest."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Sequencer(wiring.Component):
    """Decides when the engine runs, halts and is reset.

    After a program's end and after a reset command alike, the engine is halted until the bus has nothing under way,
    then cleared for one cycle: so every program meets the engine in its reset state, and no bus transfer is ever
    cut off. A fault halts the engine and keeps it so until the reset command.

    Members
    -------
    start, reset
        Commands, a pulse each.
    fault, ended
        What the engine reports.
    bus_idle
        No transfer is under way.
    launch
        A pulse: fetch the program now. `counters` start from zero in the same cycle.
    running
        The program runs.
    halt
        Start nothing new.
    clear
        Reset of the engine.
    busy, done, error
        As in the status register.
    done_event, error_event
        Pulses for the interrupt flags.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "reset": In(1),
                "fault": In(1),
                "ended": In(1),
                "bus_idle": In(1),
                "launch": Out(1),
                "running": Out(1),
                "halt": Out(1),
                "clear": Out(1),
                "busy": Out(1),
                "done": Out(1),
                "error": Out(1),
                "done_event": Out(1),
                "error_event": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """REST -> RUN -> (STOPPED ->) DRAIN -> CLEAR -> REST."""
        m = Module()
        ending = Signal()
        with m.FSM() as fsm:
            with m.State("REST"):
                with m.If(self.start):
                    m.d.comb += self.launch.eq(~self.reset)
                    m.d.sync += self.done.eq(0)
                    m.next = "RUN"
                self._obey_reset(m, ending)
            with m.State("RUN"):
                self._run(m, ending)
            with m.State("STOPPED"):
                m.d.comb += self.halt.eq(1)
                self._obey_reset(m, ending)
            with m.State("DRAIN"):
                m.d.comb += self.halt.eq(1)
                with m.If(self.bus_idle):
                    m.next = "CLEAR"
                self._obey_reset(m, ending)
            with m.State("CLEAR"):
                m.d.comb += [self.halt.eq(1), self.clear.eq(1), self.done_event.eq(ending & ~self.reset)]
                m.d.sync += [self.done.eq(self.done_event), ending.eq(0)]
                m.next = "REST"
        resting = fsm.ongoing("REST") | (fsm.ongoing("STOPPED") & self.bus_idle)
        m.d.comb += [self.running.eq(fsm.ongoing("RUN")), self.busy.eq(~resting)]
        return m

    def _run(self, m: Module, ending: Signal) -> None:
        with m.If(self.fault):
            m.d.comb += self.error_event.eq(~self.reset)
            m.d.sync += self.error.eq(1)
            m.next = "STOPPED"
        with m.Elif(self.ended):
            m.d.sync += ending.eq(1)
            m.next = "DRAIN"
        self._obey_reset(m, ending)

    def _obey_reset(self, m: Module, ending: Signal) -> None:
        with m.If(self.reset):
            m.d.sync += [self.done.eq(0), self.error.eq(0), ending.eq(0)]
            m.next = "DRAIN"
