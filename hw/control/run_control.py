"""Run control: the FSM that starts, halts and resets the engine."""

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.spec import timing

HALT_LATENCY = timing.HALT
"""Cycles from the start of a halt until every unit has seen it and `bus_idle` accounts for it."""


class RunControl(wiring.Component):
    """The run-control FSM: IDLE, LAUNCH, RUN, HALTED, DRAIN, CLEAR, CLEARED.

    After a program's end and after a reset command the engine is halted until no bus transfer is outstanding, then
    cleared for one cycle. So every program finds the engine in its reset state, and no AXI transfer is cut off. A fault
    halts the engine until the reset command.

    Members
    -------
    start, reset
        Commands.
    fault, ended
        The engine has a fault; the program has ended.
    bus_idle
        The engine has no bus transfer outstanding.
    idle
        The state is IDLE: settings may change.
    launch
        Fetch the program; counters restart from 0.
    running
        The program runs.
    halt
        Issue nothing new.
    clear
        Soft reset of the engine.
    busy, done, error
        Bits of the status register.
    done_event, error_event
        Events that set the interrupt flags.

    Handshake
    ---------
    `start`, `reset`, `launch`, `clear`, `done_event` and `error_event` are pulses of 1 cycle. `start` is ignored unless
    the state is IDLE. `reset` leads to DRAIN from every state but CLEARED, where it only suppresses `done_event`; it
    wins over `start`, `fault` and `ended`.

    Timing
    ------
    From `start` to `launch`: 1 cycle; to `running`: 3 cycles. From `fault` to `error_event`: 0 cycles; to `halt`:
    2 cycles. After a halt starts, `bus_idle` is ignored for `HALT_LATENCY` = 4 cycles, until the halt has reached every
    unit. In DRAIN, from `bus_idle` to `clear`: 3 cycles. `done_event` comes in the cycle of `clear`.

    Requirements
    ------------
    `fault` stays high until `clear`. From `HALT_LATENCY` cycles after `halt` on, `bus_idle` never falls again.

    Reset and faults
    ----------------
    The soft reset does not reach this component. A fault leads to HALTED: `error` is set at once, `busy` falls when the
    bus is idle, and the reset command leads through DRAIN and CLEAR to IDLE.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "reset": In(1),
                "fault": In(1),
                "ended": In(1),
                "bus_idle": In(1),
                "idle": Out(1),
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
    def model(steps: Iterable[Mapping[str, int]]) -> Iterator[tuple[str, dict[str, int]]]:
        """State and all outputs of every cycle, from the inputs of every cycle.

        `bus_idle` is registered, and ignored until the engine has been halted for `HALT_LATENCY` cycles.
        """
        phase, done, error, completes, bus_idle = "idle", 0, 0, False, False
        running = halt = clear = halted_for = 0
        follows = {"launch": "run", "clear": "cleared", "cleared": "idle"}
        for step in steps:
            halting = phase in ("halted", "drain", "clear")
            outputs = {"running": running, "halt": halt, "clear": clear, "done": done, "error": error}
            outputs["idle"], outputs["launch"] = phase == "idle", phase == "launch"
            outputs["busy"] = not (phase == "idle" or (phase == "halted" and bus_idle))
            outputs["done_event"] = phase == "cleared" and completes and not step["reset"]
            outputs["error_event"] = phase == "run" and step["fault"] and not step["reset"]
            yield phase, {name: int(value) for name, value in outputs.items()}
            running, halt, clear = phase == "run", halting, phase == "clear"
            was_bus_idle, halted_for = bus_idle, halted_for + 1 if halting else 0
            bus_idle = halted_for > HALT_LATENCY and bool(step["bus_idle"])
            if phase == "cleared":
                phase, done, completes = "idle", outputs["done_event"], False
                continue
            if phase == "idle" and step["start"]:
                phase, done = "launch", 0
            elif phase == "run" and step["fault"]:
                phase, error = "halted", 1
            elif phase == "run" and step["ended"]:
                phase, completes = "drain", True
            elif phase == "drain" and was_bus_idle:
                phase = "clear"
            else:
                phase = follows.get(phase, phase)
            if step["reset"]:
                phase, done, error, completes = "drain", 0, 0, False

    def elaborate(self, platform: object) -> Module:
        """IDLE -> LAUNCH -> RUN -> (HALTED ->) DRAIN -> CLEAR -> CLEARED -> IDLE."""
        m = Module()
        completing, halting, bus_idle = Signal(), Signal(), Signal()
        with m.FSM() as fsm:
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += self.done.eq(0)
                    m.next = "LAUNCH"
                self._obey_reset(m, completing)
            with m.State("LAUNCH"):
                m.d.comb += self.launch.eq(1)
                m.next = "RUN"
                self._obey_reset(m, completing)
            with m.State("RUN"):
                self._run(m, completing)
            with m.State("HALTED"):
                m.d.comb += halting.eq(1)
                self._obey_reset(m, completing)
            with m.State("DRAIN"):
                m.d.comb += halting.eq(1)
                with m.If(bus_idle):
                    m.next = "CLEAR"
                self._obey_reset(m, completing)
            with m.State("CLEAR"):
                m.d.comb += halting.eq(1)
                m.next = "CLEARED"
                self._obey_reset(m, completing)
            # `clear` and the engine's reset are registers: this state lets the reset end before LAUNCH is possible.
            with m.State("CLEARED"):
                m.d.comb += self.done_event.eq(completing & ~self.reset)
                m.d.sync += [self.done.eq(self.done_event), completing.eq(0)]
                m.next = "IDLE"
        self._halt(m, halting, bus_idle)
        m.d.comb += self.idle.eq(fsm.ongoing("IDLE"))
        # Outputs that fan out over the engine leave registers, not the decoded state.
        m.d.sync += [self.running.eq(fsm.ongoing("RUN")), self.clear.eq(fsm.ongoing("CLEAR"))]
        m.d.comb += self.busy.eq(~(self.idle | (fsm.ongoing("HALTED") & bus_idle)))
        return m

    def _halt(self, m: Module, halting: Signal, bus_idle: Signal) -> None:
        """Register the halt and `bus_idle`; `bus_idle` is ignored until the halt has reached every unit."""
        halted = Signal(HALT_LATENCY)
        m.d.sync += [
            self.halt.eq(halting),
            halted.eq(Cat(halting, halted)),
            bus_idle.eq(halting & halted.all() & self.bus_idle),
        ]

    def _run(self, m: Module, completing: Signal) -> None:
        with m.If(self.fault):
            m.d.comb += self.error_event.eq(~self.reset)
            m.d.sync += self.error.eq(1)
            m.next = "HALTED"
        with m.Elif(self.ended):
            m.d.sync += completing.eq(1)
            m.next = "DRAIN"
        self._obey_reset(m, completing)

    # Called last in each state: its assignments win over the state's own transition.
    def _obey_reset(self, m: Module, completing: Signal) -> None:
        with m.If(self.reset):
            m.d.sync += [self.done.eq(0), self.error.eq(0), completing.eq(0)]
            m.next = "DRAIN"
