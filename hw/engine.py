"""The engine: all components that execute a program and that the soft reset clears."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.axi4 import Axi4
from intloom.hw.clock_gate import add_gated
from intloom.hw.control.arbiter import ReadArbiter
from intloom.hw.control.counters import UNIT_EVENTS_LAYOUT
from intloom.hw.control.dispatch import Dispatch
from intloom.hw.control.faults import PARITY_SOURCES, SOURCES, FaultLatch, FaultPort
from intloom.hw.control.fetch import LENGTH_REGISTER_BITS, Fetch
from intloom.hw.control.queue import InstructionQueues
from intloom.hw.control.waits import END_ROW, WaitChecker
from intloom.hw.control.watchdog import LIMIT_BITS, Watchdog
from intloom.hw.dma.load import LoadUnit
from intloom.hw.dma.store import StoreUnit
from intloom.hw.mac.unit import MacUnit
from intloom.hw.memory.scratchpad import Scratchpad
from intloom.hw.memory.weights import WeightMemory
from intloom.hw.ports import UnitPort, WindowPort
from intloom.hw.spec.isa import COUNT_BITS, DRAM_BITS, QUEUED_UNITS, Unit
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause
from intloom.hw.vector.unit import VectorUnit


class Engine(wiring.Component):
    """The four units with their queues, the two memories, fetch, dispatch, wait checks, watchdog and fault latch.

    It holds no logic of its own beyond connections, and the index of each unit's last issued instruction.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    bus
        AXI4 master.
    window, program, length, watchdog
        Configuration: the memory that may be addressed, word offset and length of the program, watchdog limit.
    launch, running, halt
        From `RunControl`.
    units
        Events of units and queues in this cycle, for the counters.
    started, done
        Per unit: an instruction issued; an instruction finished.
    ended
        The program has ended.
    fault
        The first fault.
    bus_idle
        No bus transfer is outstanding.

    Handshake
    ---------
    The channels of `bus` are streams. `launch`, `started` and `done` are pulses. `ended` and `fault` stay until reset.

    Timing
    ------
    See the components: this one adds no register to any path.

    Requirements
    ------------
    Configuration is stable from `launch` to reset. `launch` comes only after a reset.

    Reset and faults
    ----------------
    Reset is allowed only while `halt` is high and `bus_idle` holds. `FaultLatch` keeps the first fault of units,
    dispatch, watchdog and memories until reset.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "bus": Out(Axi4(params.axi_addr_bits, params.word_bits)),
                "window": In(WindowPort(params)),
                "program": In(DRAM_BITS),
                "length": In(LENGTH_REGISTER_BITS),
                "watchdog": In(LIMIT_BITS),
                "launch": In(1),
                "running": In(1),
                "halt": In(1),
                "units": Out(data.ArrayLayout(UNIT_EVENTS_LAYOUT, len(QUEUED_UNITS))),
                "started": Out(len(QUEUED_UNITS)),
                "done": Out(len(QUEUED_UNITS)),
                "ended": Out(1),
                "fault": Out(FaultPort()),
                "bus_idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Instantiate the components and connect them group by group."""
        m = Module()
        p = self._params
        load, mac, vec, store = self._units = LoadUnit(p), MacUnit(p), VectorUnit(p), StoreUnit(p)
        m.submodules.mac = mac
        m.submodules.faults = faults = FaultLatch(SOURCES + PARITY_SOURCES * p.memory_parity)
        self._connect_memories(m, faults)
        fetch, dispatch = Fetch(p), Dispatch(p)
        self._connect_bus(m, fetch)
        self._connect_fetch(m, fetch, dispatch)
        m.submodules.queues = queues = InstructionQueues(p)
        wiring.connect(m, dispatch.queues, queues.write)
        self._connect_waits(m, dispatch, queues)
        ports = [load.unit, mac.unit, vec.unit, store.unit]
        for unit in QUEUED_UNITS:
            self._connect_unit(m, unit, queues, ports[unit])
        self._watch(m, dispatch, queues, ports, faults)
        outside = faults.sources[SOURCES - 1]
        m.d.comb += [
            outside.valid.eq(fetch.outside),
            outside.fault.cause.eq(Cause.OUTSIDE_WINDOW),
            outside.fault.unit.eq(Unit.CONTROL),
        ]
        for name, unit in (("load", load), ("vec", vec), ("store", store)):
            self._add_gated(m, name, unit, unit.unit.valid | ~unit.unit.idle, platform)
        self._add_gated(m, "fetch", fetch, ~fetch.idle | (fetch.words.valid & fetch.words.ready), platform)
        self._add_gated(m, "dispatch", dispatch, ~dispatch.waiting, platform)
        m.d.comb += [
            dispatch.all_idle.eq(queues.empty.all() & Cat(port.idle for port in ports).all()),
            self.ended.eq(dispatch.ended),
            # MAC and vector unit have no bus.
            self.bus_idle.eq(fetch.idle & load.unit.idle & store.unit.idle),
        ]
        return m

    def _add_gated(self, m: Module, name: str, component: wiring.Component, works: Value, platform: object) -> None:
        """Clock a component while it works, in a halt, and from the launch on: then configuration is stable."""
        add_gated(m, name, component, works | self.launch | self.halt if self._params.clock_gating else None, platform)

    def _connect_memories(self, m: Module, faults: FaultLatch) -> None:
        load, mac, vec, store = self._units
        m.submodules.scratch = scratch = Scratchpad(self._params)
        m.submodules.weights = weights = WeightMemory(self._params)
        for unit_port, memory_port in (
            (mac.act0, scratch.act0),
            (mac.act1, scratch.act1),
            (mac.residual, scratch.residual),
            (vec.a, scratch.vec_a),
            (vec.b, scratch.vec_b),
            (store.scratch, scratch.store),
            (mac.results, scratch.mac),
            (vec.out, scratch.vec),
            (load.scratch, scratch.load),
            (mac.weights, weights.read),
            (load.weights, weights.write),
        ):
            wiring.connect(m, unit_port, memory_port)
        if self._params.memory_parity:
            for source, cause, memory in (
                (faults.sources[SOURCES], Cause.SCRATCH_PARITY, scratch),
                (faults.sources[SOURCES + 1], Cause.WEIGHT_PARITY, weights),
            ):
                m.d.comb += [
                    source.valid.eq(memory.error.valid),
                    source.fault.cause.eq(cause),
                    source.fault.unit.eq(memory.error.unit),
                    source.fault.index.eq(memory.error.address),
                ]

    def _connect_bus(self, m: Module, fetch: Fetch) -> None:
        load, _, _, store = self._units
        m.submodules.arbiter = arbiter = ReadArbiter(self._params)
        wiring.connect(m, fetch.bursts, arbiter.fetch)
        wiring.connect(m, load.bursts, arbiter.load)
        wiring.connect(m, arbiter.fetch_r, fetch.r)
        wiring.connect(m, arbiter.load_r, load.r)
        for inner, outer in (
            (arbiter.ar, self.bus.ar),
            (arbiter.r, self.bus.r),
            (store.aw, self.bus.aw),
            (store.w, self.bus.w),
            (store.b, self.bus.b),
        ):
            wiring.connect(m, inner, wiring.flipped(outer))
        for unit in (fetch, load, store):
            wiring.connect(m, wiring.flipped(self.window), unit.window)

    def _connect_fetch(self, m: Module, fetch: Fetch, dispatch: Dispatch) -> None:
        wiring.connect(m, fetch.words, dispatch.words)
        m.d.comb += [
            fetch.start.eq(self.launch),
            fetch.program.eq(self.program),
            fetch.length.eq(self.length),
            fetch.halt.eq(self.halt),
            dispatch.running.eq(self.running),
            dispatch.exhausted.eq(fetch.exhausted),
        ]

    def _connect_waits(self, m: Module, dispatch: Dispatch, queues: InstructionQueues) -> None:
        m.submodules.waits = waits = WaitChecker()
        m.d.comb += [
            waits.done.eq(self.done),
            waits.write.eq(dispatch.end_write),
            waits.write_row.eq(END_ROW),
            waits.write_unit.eq(dispatch.end_unit),
            waits.write_wait.eq(dispatch.end_wait),
            # The queues' waits have priority on the write port. They cannot starve END, which is dispatched last: the
            # queues then run empty.
            dispatch.end_written.eq(~queues.wait),
            waits.ready.eq(Cat(queues.waits_loaded, dispatch.end_ready)),
            Cat(queues.met, dispatch.end_met).eq(waits.met),
        ]
        with m.If(queues.wait):
            m.d.comb += [
                waits.write.eq(1),
                waits.write_row.eq(queues.wait_row),
                waits.write_unit.eq(queues.wait_unit),
                waits.write_wait.eq(queues.wait_value),
            ]

    def _connect_unit(self, m: Module, unit: Unit, queues: InstructionQueues, port: UnitPort) -> None:
        offered = queues.o[unit]
        events = self.units[unit]
        m.d.comb += [
            port.valid.eq(offered.valid),
            port.instruction.eq(offered.payload.instruction),
            port.index.eq(offered.payload.index),
            offered.ready.eq(port.ready),
            port.halt.eq(self.halt),
            self.started[unit].eq(port.started),
            self.done[unit].eq(port.done),
            events.busy.eq(port.busy),
            events.stall.eq(port.stall),
            events.waiting.eq(queues.waiting[unit]),
            events.empty.eq(queues.empty[unit]),
            events.done.eq(port.done),
        ]

    def _watch(
        self, m: Module, dispatch: Dispatch, queues: InstructionQueues, ports: list[UnitPort], faults: FaultLatch
    ) -> None:
        """Connect other faults to the latch, and each unit's unfinished instructions to the watchdog."""
        m.submodules.watchdog = watchdog = Watchdog()
        # No reset: the index counts only while the unit is not idle, after an issue.
        issued_index = Signal(data.ArrayLayout(COUNT_BITS, len(QUEUED_UNITS)), reset_less=True)
        # A queued instruction is suspect if it may issue and does not. One that waits is suspect only if no unit has an
        # issued instruction, whose end it could wait for; its index is complete when its waits are loaded.
        # Registered: the scan is a long path.
        any_issued, suspect = Signal(), Signal(len(QUEUED_UNITS))
        m.d.sync += any_issued.eq(~Cat(port.idle for port in ports).all())
        for unit in QUEUED_UNITS:
            port, source = ports[unit], faults.sources[unit]
            m.d.comb += [
                source.valid.eq(port.fault),
                source.fault.cause.eq(port.cause),
                source.fault.unit.eq(unit),
                source.fault.index.eq(port.fault_index),
            ]
            issued, following = watchdog.candidates[2 * unit], watchdog.candidates[2 * unit + 1]
            with m.If(port.valid & port.ready):
                m.d.sync += issued_index[unit].eq(port.index)
            waits = ~any_issued & queues.waits_loaded[unit]
            m.d.sync += suspect[unit].eq(~queues.empty[unit] & (queues.o[unit].valid | waits))
            m.d.comb += [
                issued.valid.eq(~port.idle),
                issued.index.eq(issued_index[unit]),
                following.valid.eq(suspect[unit]),
                following.index.eq(queues.o[unit].payload.index),
            ]
        dispatch_source, watchdog_source = faults.sources[len(QUEUED_UNITS)], faults.sources[len(QUEUED_UNITS) + 1]
        m.d.comb += [
            dispatch_source.valid.eq(dispatch.fault_valid),
            dispatch_source.fault.eq(dispatch.fault),
            watchdog.running.eq(self.running),
            watchdog.limit.eq(self.watchdog),
            watchdog.dispatch_index.eq(dispatch.index),
            # Bus beats count too: one long transfer may take more cycles than the limit.
            watchdog.progress.eq(self.done.any() | self._beat()),
        ]
        wiring.connect(m, watchdog.port, watchdog_source)
        wiring.connect(m, faults.latched, wiring.flipped(self.fault))

    def _beat(self) -> Value:
        bus = self.bus
        return (bus.r.valid & bus.r.ready) | (bus.w.valid & bus.w.ready)
