"""The engine: everything that runs a program, and that a soft reset clears."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import COUNT_BITS, DRAM_BITS, QUEUED_UNITS, Unit
from hw.spec.params import HardwareParams

from .bus.axi4 import Axi4
from .control.arbiter import ReadArbiter
from .control.counters import UNIT_EVENTS_LAYOUT
from .control.dispatch import Dispatch
from .control.faults import FaultLatch, FaultPort
from .control.fetch import LENGTH_REGISTER_BITS, Fetch
from .control.queue import COUNTS_LAYOUT, UnitQueue
from .control.watchdog import LIMIT_BITS, Watchdog
from .dma.bursts import word_address_bits
from .dma.load import LoadUnit
from .dma.store import StoreUnit
from .mac.unit import MacUnit
from .memory.scratchpad import Scratchpad
from .memory.weights import WeightMemory
from .ports import UnitPort
from .vector.unit import VectorUnit


class Engine(wiring.Component):
    """Four units with their queues, the two memories, fetch and dispatch.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    bus
        AXI4 master.
    base, program, length, limit
        Configuration: memory base in words, the program's place and length, the watchdog's limit.
    launch, running, halt
        From the sequencer.
    units
        What units and queues did in this cycle.
    started, done
        A pulse for every instruction, a bit for every unit.
    ended
        The program is over.
    fault
        The first fault, kept until reset.
    bus_idle
        No bus transfer is under way.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "bus": Out(Axi4(params.axi_addr_bits, params.axi_data_bits)),
                "base": In(word_address_bits(params)),
                "program": In(DRAM_BITS),
                "length": In(LENGTH_REGISTER_BITS),
                "limit": In(LIMIT_BITS),
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
        """Instantiate all, and join them group by group."""
        m = Module()
        p = self._params
        m.submodules.load = load = LoadUnit(p)
        m.submodules.mac = mac = MacUnit(p)
        m.submodules.vec = vec = VectorUnit(p)
        m.submodules.store = store = StoreUnit(p)
        self._join_memories(m, load, mac, vec, store)
        m.submodules.fetch = fetch = Fetch(p)
        self._join_bus(m, fetch, load, store)
        m.submodules.dispatch = dispatch = Dispatch(p)
        self._join_fetch(m, fetch, dispatch)
        queues = [UnitQueue(p, unit) for unit in QUEUED_UNITS]
        ports = [load.unit, mac.unit, vec.unit, store.unit]
        for unit in QUEUED_UNITS:
            m.submodules[f"{unit.name.lower()}_queue"] = queues[unit]
            wiring.connect(m, dispatch.queues[unit], queues[unit].i)
            self._join_unit(m, unit, queues[unit], ports[unit])
        self._count(m, dispatch, queues)
        self._watch(m, dispatch, queues, ports)
        m.d.comb += [
            dispatch.quiet.eq(Cat(q.empty & port.idle for q, port in zip(queues, ports, strict=True)).all()),
            self.ended.eq(dispatch.ended),
            self.bus_idle.eq(fetch.idle & load.unit.idle & store.unit.idle),
        ]
        return m

    def _join_memories(self, m: Module, load: LoadUnit, mac: MacUnit, vec: VectorUnit, store: StoreUnit) -> None:
        m.submodules.scratch = scratch = Scratchpad(self._params)
        m.submodules.weights = weights = WeightMemory(self._params)
        for unit_port, memory_port in (
            (mac.act0, scratch.act0),
            (mac.act1, scratch.act1),
            (mac.residual, scratch.residual),
            (vec.a, scratch.vec_a),
            (vec.b, scratch.vec_b),
            (store.scratch, scratch.store),
            (mac.drain, scratch.drain),
            (vec.out, scratch.vec),
            (load.scratch, scratch.load),
            (mac.weights, weights.read),
            (load.weights, weights.write),
        ):
            wiring.connect(m, unit_port, memory_port)

    def _join_bus(self, m: Module, fetch: Fetch, load: LoadUnit, store: StoreUnit) -> None:
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
        m.d.comb += [unit.base.eq(self.base) for unit in (fetch, load, store)]

    def _join_fetch(self, m: Module, fetch: Fetch, dispatch: Dispatch) -> None:
        wiring.connect(m, fetch.instruction, dispatch.instruction)
        m.d.comb += [
            fetch.start.eq(self.launch),
            fetch.program.eq(self.program),
            fetch.length.eq(self.length),
            fetch.halt.eq(self.halt),
            dispatch.running.eq(self.running),
            dispatch.instruction_error.eq(fetch.instruction_error),
            dispatch.exhausted.eq(fetch.exhausted),
        ]

    def _join_unit(self, m: Module, unit: Unit, queue: UnitQueue, port: UnitPort) -> None:
        events = self.units[unit]
        m.d.comb += [
            port.valid.eq(queue.o.valid),
            port.instruction.eq(queue.o.payload.instruction),
            port.index.eq(queue.o.payload.index),
            queue.o.ready.eq(port.ready),
            port.halt.eq(self.halt),
            self.started[unit].eq(port.started),
            self.done[unit].eq(port.done),
            events.busy.eq(port.busy),
            events.stall.eq(port.stall),
            events.waiting.eq(queue.waiting),
            events.empty.eq(queue.empty),
            events.done.eq(port.done),
        ]

    def _count(self, m: Module, dispatch: Dispatch, queues: list[UnitQueue]) -> None:
        """Finished instructions of each unit in this program."""
        counts = Signal(COUNTS_LAYOUT)
        for unit in QUEUED_UNITS:
            with m.If(self.done[unit]):
                m.d.sync += counts[unit].eq(counts[unit] + 1)
        m.d.comb += [dispatch.counts.eq(counts), *(queue.counts.eq(counts) for queue in queues)]

    def _watch(self, m: Module, dispatch: Dispatch, queues: list[UnitQueue], ports: list[UnitPort]) -> None:
        """Gather faults, and tell the watchdog what each unit is at."""
        m.submodules.watchdog = watchdog = Watchdog()
        m.submodules.faults = faults = FaultLatch()
        for unit in QUEUED_UNITS:
            queue, port, source = queues[unit], ports[unit], faults.sources[unit]
            m.d.comb += [
                source.valid.eq(port.fault),
                source.fault.cause.eq(port.cause),
                source.fault.unit.eq(unit),
                source.fault.index.eq(port.fault_index),
            ]
            self._suspect(m, watchdog.suspects[unit], queue, port)
        decoding, silence = faults.sources[len(QUEUED_UNITS)], faults.sources[len(QUEUED_UNITS) + 1]
        m.d.comb += [
            decoding.valid.eq(dispatch.fault_valid),
            decoding.fault.eq(dispatch.fault),
            watchdog.running.eq(self.running),
            watchdog.limit.eq(self.limit),
            watchdog.dispatch_index.eq(dispatch.index),
            watchdog.alive.eq(self.done.any() | self._beat()),
        ]
        wiring.connect(m, watchdog.port, silence)
        wiring.connect(m, faults.latched, wiring.flipped(self.fault))

    def _suspect(self, m: Module, suspect: data.View[data.StructLayout], queue: UnitQueue, port: UnitPort) -> None:
        """The instruction that a unit took last if it is at work, else the first in its queue."""
        last = Signal(COUNT_BITS)
        with m.If(port.valid & port.ready):
            m.d.sync += last.eq(port.index)
        m.d.comb += suspect.valid.eq(~port.idle | ~queue.empty)
        with m.If(port.idle):
            m.d.comb += suspect.index.eq(queue.o.payload.index)
        with m.Else():
            m.d.comb += suspect.index.eq(last)

    def _beat(self) -> Value:
        bus = self.bus
        return (bus.r.valid & bus.r.ready) | (bus.w.valid & bus.w.ready)
