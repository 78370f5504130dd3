"""The life of a program: start, run, end or stop, and the way back to rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

HALT_LATENCY = 4
"""From a halt's beginning until what units say of the bus is what they say when halted."""


class RunControl(wiring.Component):
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

    @staticmethod
    def model(steps: Iterable[Mapping[str, int]]) -> Iterator[dict[str, int]]:
        """All outputs in every cycle, from the inputs of every cycle.

        The bus counts as idle a cycle after it says so, once units have been told to halt for `HALT_LATENCY`.
        """
        phase, done, error, completes, idle = "rest", 0, 0, False, False
        running = halt = clear = halted_for = 0
        follows = {"launch": "run", "clear": "cleared", "cleared": "rest"}
        for step in steps:
            halting = phase in ("stopped", "drain", "clear")
            outputs = {"running": running, "halt": halt, "clear": clear, "done": done, "error": error}
            outputs["launch"] = phase == "launch"
            outputs["busy"] = not (phase == "rest" or (phase == "stopped" and idle))
            outputs["done_event"] = phase == "cleared" and completes and not step["reset"]
            outputs["error_event"] = phase == "run" and step["fault"] and not step["reset"]
            yield {name: int(value) for name, value in outputs.items()}
            running, halt, clear = phase == "run", halting, phase == "clear"
            was_idle, halted_for = idle, halted_for + 1 if halting else 0
            idle = halted_for > HALT_LATENCY and bool(step["bus_idle"])
            if phase == "cleared":
                phase, done, completes = "rest", outputs["done_event"], False
                continue
            if phase == "rest" and step["start"]:
                phase, done = "launch", 0
            elif phase == "run" and step["fault"]:
                phase, error = "stopped", 1
            elif phase == "run" and step["ended"]:
                phase, completes = "drain", True
            elif phase == "drain" and was_idle:
                phase = "clear"
            else:
                phase = follows.get(phase, phase)
            if step["reset"]:
                phase, done, error, completes = "drain", 0, 0, False

    def elaborate(self, platform: object) -> Module:
        """REST -> LAUNCH -> RUN -> (STOPPED ->) DRAIN -> CLEAR -> CLEARED -> REST."""
        m = Module()
        ending, halting, idle = Signal(), Signal(), Signal()
        with m.FSM() as fsm:
            with m.State("REST"):
                with m.If(self.start):
                    m.d.sync += self.done.eq(0)
                    m.next = "LAUNCH"
                self._obey_reset(m, ending)
            with m.State("LAUNCH"):
                m.d.comb += self.launch.eq(1)
                m.next = "RUN"
                self._obey_reset(m, ending)
            with m.State("RUN"):
                self._run(m, ending)
            with m.State("STOPPED"):
                m.d.comb += halting.eq(1)
                self._obey_reset(m, ending)
            with m.State("DRAIN"):
                m.d.comb += halting.eq(1)
                with m.If(idle):
                    m.next = "CLEAR"
                self._obey_reset(m, ending)
            with m.State("CLEAR"):
                m.d.comb += halting.eq(1)
                m.next = "CLEARED"
                self._obey_reset(m, ending)
            with m.State("CLEARED"):
                m.d.comb += self.done_event.eq(ending & ~self.reset)
                m.d.sync += [self.done.eq(self.done_event), ending.eq(0)]
                m.next = "REST"
        self._halt(m, halting, idle)
        resting = fsm.ongoing("REST") | (fsm.ongoing("STOPPED") & idle)
        m.d.sync += [self.running.eq(fsm.ongoing("RUN")), self.clear.eq(fsm.ongoing("CLEAR"))]
        m.d.comb += self.busy.eq(~resting)
        return m

    def _halt(self, m: Module, halting: Signal, idle: Signal) -> None:
        """Halt in a register, and that the bus is idle: not believed before every unit has had time to halt."""
        halted = Signal(HALT_LATENCY)
        m.d.sync += [
            self.halt.eq(halting),
            halted.eq(Cat(halting, halted)),
            idle.eq(halting & halted.all() & self.bus_idle),
        ]

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
