"""The top level: AXI4 master, AXI4-Lite slave, interrupt; engine, run control, registers and counters."""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from intloom.hw.bus import axi4, axi4_lite
from intloom.hw.bus.width_converter import WidthConverter
from intloom.hw.control.counters import Counters
from intloom.hw.control.outstanding import CHANNELS, Outstanding
from intloom.hw.control.registers import Registers
from intloom.hw.control.run_control import RunControl
from intloom.hw.control.window import Window
from intloom.hw.engine import Engine
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import ADDRESS_BITS, register

TOP_NAME = "npu"


def _buses(params: HardwareParams) -> dict[str, tuple[dict[str, data.StructLayout], dict[str, Any]]]:
    """Payloads and directions of the channels of each bus, by the prefix of its port names."""
    return {
        "m_axi": (axi4.channel_layouts(params.axi_addr_bits, params.axi_data_bits), axi4.CHANNELS),
        "s_axi": (axi4_lite.channel_layouts(ADDRESS_BITS), axi4_lite.CHANNELS),
    }


def npu_members(params: HardwareParams) -> dict[str, Any]:
    """The ports of the accelerator by name, each a plain signal."""
    members: dict[str, Any] = {}
    for prefix, (layouts, flows) in _buses(params).items():
        members |= axi4.flat_members(prefix, layouts, flows)
    members["irq"] = Out(1)
    if params.axi_user_bits:
        members |= {f"m_axi_{channel}user": Out(params.axi_user_bits) for channel in ("aw", "ar")}
    if params.trace:
        members |= {"trace_started": Out(len(QUEUED_UNITS)), "trace_done": Out(len(QUEUED_UNITS))}
    return members


class Npu(wiring.Component):
    """The accelerator, with the port names of the AXI standard.

    The engine is in the clock domain `engine`: the accelerator's clock, and a reset that run control can raise.
    Registers, counters and run control are outside it.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    m_axi_*
        AXI4 master to memory, `axi_data_bits` wide. AxPROT, AxCACHE, AxQOS and AxUSER are parameters.
    s_axi_*
        AXI4-Lite slave: the registers of `intloom.hw.spec.regs`.
    irq
        Interrupt, level-sensitive.
    trace_started, trace_done
        Only with the parameter `trace`. Per unit: an instruction issued; an instruction finished.

    Handshake
    ---------
    AXI4 and AXI4-Lite. `irq` is high while IRQ_STATUS has a flag that IRQ_ENABLE selects. The trace outputs are pulses,
    in order: the n-th pulse of a unit belongs to its n-th instruction.

    Timing
    ------
    From a fault in the engine's latch to `irq`: 1 cycle, while a program runs. Trace pulses come 1 cycle after the
    event.

    Requirements
    ------------
    Reads return in request order (all identifiers are 0). `clk` is the only clock.

    Reset and faults
    ----------------
    `rst` resets everything. The soft reset, after a program and on the reset command, clears only the engine:
    registers, counters and STATUS survive it. A fault sets STATUS.error and its cause, and raises the error interrupt.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(npu_members(params))

    def elaborate(self, platform: object) -> Module:
        """The engine in its own reset domain; registers and counters survive the soft reset."""
        m = Module()
        run_control = RunControl()
        engine = Engine(self._params)
        m.submodules.run_control = run_control
        m.submodules.registers = registers = Registers(self._params)
        m.submodules.counters = counters = Counters()
        m.submodules.engine = DomainRenamer("engine")(engine)
        self._reset_engine(m, run_control)
        bus = self._convert_width(m, engine)
        self._connect_buses(m, bus, registers)
        self._configure(m, run_control, engine, registers)
        self._connect_run_control(m, run_control, engine, registers)
        self._connect_counters(m, counters, run_control, engine, bus, registers)
        self._connect_outstanding(m, bus, registers)
        if self._params.trace:
            # Registered, so that observing the events lengthens no path.
            m.d.sync += [self.trace_started.eq(engine.started), self.trace_done.eq(engine.done)]
        return m

    def _reset_engine(self, m: Module, run_control: RunControl) -> None:
        """Create the domain `engine`. Its reset is a register, because of its fan-out to all of the engine."""
        m.domains.engine = ClockDomain()
        # Starts at 1 and has no reset of its own: the engine is in reset from configuration on, and `rst` reaches it
        # through one register like the soft reset.
        reset = Signal(init=1, reset_less=True)
        m.d.sync += reset.eq(ResetSignal() | run_control.clear)
        m.d.comb += ResetSignal("engine").eq(reset)
        self._clock_engine(m)

    def _clock_engine(self, m: Module) -> None:
        """Give the engine the accelerator's clock.

        In Amaranth's own simulator (0.5) a clock that another drives ticks one delta cycle late, so that registers
        of the engine see values of the same edge. A simulation there overrides this method and adds the clock `engine`.
        """
        m.d.comb += ClockSignal("engine").eq(ClockSignal())

    def _convert_width(self, m: Module, engine: Engine) -> wiring.PureInterface:
        """The engine's bus with the width of the port."""
        if self._params.port_bytes == self._params.word_bytes:
            return engine.bus
        m.submodules.width = converter = DomainRenamer("engine")(WidthConverter(self._params))
        wiring.connect(m, engine.bus, converter.words)
        return converter.beats

    def _connect_buses(self, m: Module, bus: wiring.PureInterface, registers: Registers) -> None:
        inner = {"m_axi": bus, "s_axi": registers.bus}
        for prefix, (layouts, flows) in _buses(self._params).items():
            pairs = axi4.flat_pairs(self, prefix, inner[prefix], layouts, flows)
            m.d.comb += [driven.eq(driver) for driven, driver in pairs]
        if self._params.axi_user_bits:
            m.d.comb += [getattr(self, f"m_axi_{channel}user").eq(self._params.axi_user) for channel in ("aw", "ar")]

    def _configure(self, m: Module, run_control: RunControl, engine: Engine, registers: Registers) -> None:
        m.submodules.window = window = Window(self._params)
        wiring.connect(m, window.latched, engine.window)
        base = Cat(registers.base_low, registers.base_high)[: self._params.axi_addr_bits]
        m.d.comb += [
            window.update.eq(run_control.idle),
            # A word address: the bits below it are read-only zeros of BASE_LOW.
            window.base.eq(base[self._params.axi_addr_bits - len(window.base) :]),
            window.limit.eq(registers.limit),
            engine.program.eq(registers.program),
            engine.length.eq(registers.length),
            engine.watchdog.eq(registers.watchdog),
        ]

    def _connect_run_control(self, m: Module, run_control: RunControl, engine: Engine, registers: Registers) -> None:
        fault = engine.fault.fault
        m.d.comb += [
            run_control.start.eq(_field("CONTROL", "start", registers.control)),
            run_control.reset.eq(_field("CONTROL", "reset", registers.control)),
            run_control.fault.eq(engine.fault.valid),
            run_control.ended.eq(engine.ended),
            run_control.bus_idle.eq(engine.bus_idle),
            engine.launch.eq(run_control.launch),
            engine.running.eq(run_control.running),
            engine.halt.eq(run_control.halt),
            _field("STATUS", "busy", registers.status).eq(run_control.busy),
            _field("STATUS", "done", registers.status).eq(run_control.done),
            _field("STATUS", "error", registers.status).eq(run_control.error),
            _field("STATUS", "cause", registers.status).eq(fault.cause),
            _field("STATUS", "unit", registers.status).eq(fault.unit),
            registers.error_index.eq(fault.index),
            _field("IRQ_STATUS", "done", registers.irq_status).eq(run_control.done_event),
            _field("IRQ_STATUS", "error", registers.irq_status).eq(run_control.error_event),
            self.irq.eq((registers.irq_status_value & registers.irq_enable).any()),
        ]

    def _connect_counters(
        self,
        m: Module,
        counters: Counters,
        run_control: RunControl,
        engine: Engine,
        bus: wiring.PureInterface,
        registers: Registers,
    ) -> None:
        m.d.comb += [
            counters.launch.eq(run_control.launch),
            counters.running.eq(run_control.running),
            counters.read_beat.eq(bus.r.valid & bus.r.ready),
            counters.write_beat.eq(bus.w.valid & bus.w.ready),
            counters.units.eq(engine.units),
            registers.scan_index.eq(counters.scan_index),
            registers.count.eq(counters.value),
        ]

    def _connect_outstanding(self, m: Module, bus: wiring.PureInterface, registers: Registers) -> None:
        m.submodules.outstanding = outstanding = Outstanding()
        for name in CHANNELS:
            channel = getattr(bus, name)
            m.d.comb += getattr(outstanding, f"{name}_valid").eq(channel.valid)
            m.d.comb += getattr(outstanding, f"{name}_ready").eq(channel.ready)
        m.d.comb += [
            outstanding.read_end.eq(bus.r.valid & bus.r.ready & bus.r.payload.last),
            outstanding.write_end.eq(bus.b.valid & bus.b.ready),
        ]
        for name in ("reads", "writes", "offered"):
            m.d.comb += _field("OUTSTANDING", name, registers.outstanding).eq(getattr(outstanding, name))


def _field(register_name: str, field_name: str, value: Value) -> Value:
    """The bits of a register's field."""
    field = next(f for f in register(register_name).fields if f.name == field_name)
    return value[field.lsb : field.lsb + field.width]
