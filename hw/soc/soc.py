"""The system on a chip: RISC-V core with a write-back cache, accelerators, UART, timer and interconnect."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from intloom.hw.bus import axi4, axi4_lite
from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.soc.axi_arbiter import AxiArbiter, memory_layouts
from intloom.hw.soc.bus_errors import BusErrors
from intloom.hw.soc.dram_bridge import DramBridge
from intloom.hw.soc.register_bridge import RegisterBridge
from intloom.hw.soc.timer import Timer
from intloom.hw.soc.uart import UartTransmitter
from intloom.hw.soc.wishbone import Wishbone
from intloom.hw.soc.write_back_cache import WriteBackCache
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import ADDRESS_BITS
from intloom.hw.verilog import translated

SOC_TOP = "soc"
CPU_MODULE = "VexRiscv"
RESET_VECTOR = 0x4000_0000
"""Start of the memory, where the firmware begins."""
UART_BASE = 0xF000_0000
"""The core does not cache addresses with the upper bit set."""
REGISTERS_BASE = 0xF000_1000
"""Of the first accelerator."""
NEXT_REGISTERS = 0x1_0000
"""Bytes from one accelerator's registers to the next one's."""
ERRORS_BASE = 0xF000_2000
CACHE_BASE = 0xF000_3000
TIMER_BASE = 0xF000_4000
_NOTHING = 0xFFFF_FFFF
_MEMORY_SELECT = 0b01
"""Upper two address bits of the memory: 0x4000_0000 to 0x7fff_ffff."""
_BLOCK_SHIFT = 10
"""Blocks of 4 KiB, in addresses of 4-byte words."""
_CPU_BUS = {"we": "WE", "adr": "ADR", "sel": "SEL", "cti": "CTI", "dat_w": "DAT_MOSI", "cyc": "CYC", "stb": "STB"}
_CPU_BUS_INPUTS = {"dat_r": "DAT_MISO", "ack": "ACK"}


class Soc(wiring.Component):
    """VexRiscv and accelerators on one memory, with a UART and a timer.

    Parameters
    ----------
    params
        The accelerators' parameters.
    accelerators
        Number of accelerators.

    Members
    -------
    m_axi_*
        AXI4 master to the memory.
    uart_tx
        Serial output.

    Handshake
    ---------
    AXI4. Identifiers mark the bursts of each accelerator, from 0 on, and the last one the CPU's.

    Timing
    ------
    That of `WriteBackCache`, `DramBridge` and `AxiArbiter`.

    Requirements
    ------------
    Modules `VexRiscv` and `npu` are in the same design. Memory starts at `RESET_VECTOR` with the firmware.

    Reset and faults
    ----------------
    `rst` resets everything. Error responses, and accesses to addresses without memory or device, are recorded in
    `BusErrors`. Interrupt n of the CPU is accelerator n's.
    """

    def __init__(self, params: HardwareParams, accelerators: int = 1) -> None:
        self._params = params
        self._layouts = memory_layouts(params, accelerators + 1)
        self._registers = [RegisterBridge() for _ in range(accelerators)]
        super().__init__({**axi4.flat_members("m_axi", self._layouts, axi4.CHANNELS), "uart_tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        """The core, its address decoder and the slaves."""
        m = Module()
        m.submodules.arbiter = arbiter = AxiArbiter(self._params, len(self._registers) + 1)
        m.submodules.cache = cache = self._cache = WriteBackCache()
        m.submodules.dram = dram = self._dram = DramBridge(self._params)
        m.submodules.uart = uart = self._uart = UartTransmitter()
        m.submodules.errors = self._errors = BusErrors()
        m.submodules.timer = timer = self._timer = Timer()
        data_bus, fetch_bus = Wishbone().create(path=("cpu_data",)), Wishbone().create(path=("cpu_fetch",))
        interrupts = Signal(32)
        m.submodules.cpu = Instance(
            CPU_MODULE,
            i_clk=ClockSignal(),
            i_reset=ResetSignal(),
            i_externalResetVector=RESET_VECTOR,
            i_timerInterrupt=timer.interrupt,
            i_softwareInterrupt=0,
            i_externalInterruptArray=interrupts,
            **_cpu_bus("dBusWishbone", data_bus),
            **_cpu_bus("iBusWishbone", fetch_bus),
        )
        for number, registers in enumerate(self._registers):
            m.submodules[f"registers{number}"] = registers
            m.d.comb += interrupts[number].eq(self._connect_accelerator(m, number, arbiter))
        m.d.comb += self.uart_tx.eq(uart.tx)
        self._decode(m, data_bus, fetch_bus)
        connect(m, cache.memory, dram.data)
        connect(m, dram.memory, arbiter.masters[-1])
        pairs = axi4.flat_pairs(self, "m_axi", arbiter.memory, self._layouts, axi4.CHANNELS)
        m.d.comb += [driven.eq(driver) for driven, driver in pairs]
        return m

    def _decode(self, m: Module, data: Any, fetch: Any) -> None:
        """Select the slave of an access; an access without one reads all ones and is recorded."""
        dram, errors = self._dram, self._errors
        in_memory = data.adr[-2:] == _MEMORY_SELECT
        devices = [
            (UART_BASE, self._uart.bus, 1),
            (CACHE_BASE, self._cache.control, 1),
            (TIMER_BASE, self._timer.bus, 1),
            # Accelerators see earlier writes to memory only after their responses.
            *((REGISTERS_BASE + NEXT_REGISTERS * n, r.bus, dram.idle) for n, r in enumerate(self._registers)),
            (ERRORS_BASE, errors.bus, dram.idle),
        ]
        of_device = [data.adr[_BLOCK_SHIFT:] == base >> 2 >> _BLOCK_SHIFT for base, _, _ in devices]
        selects = [(in_memory, self._cache.cpu)]
        selects += [(chosen & ready, bus) for chosen, (_, bus, ready) in zip(of_device, devices, strict=True)]
        for selected, slave in selects:
            _forward(m, data, slave, selected)
            with m.If(selected):
                m.d.comb += [data.dat_r.eq(slave.dat_r), data.ack.eq(slave.ack)]
        nowhere = ~in_memory & ~Cat(of_device).any()
        nothing = data.cyc & data.stb & nowhere
        with m.If(nowhere):
            m.d.comb += [data.dat_r.eq(_NOTHING), data.ack.eq(nothing)]
        m.d.comb += errors.event.eq(nothing | dram.error | Cat(r.error for r in self._registers).any())
        fetchable = fetch.adr[-2:] == _MEMORY_SELECT
        _forward(m, fetch, dram.fetch, fetchable)
        m.d.comb += [
            fetch.dat_r.eq(dram.fetch.dat_r),
            # Outside memory the core reads an undefined instruction and traps.
            fetch.ack.eq(dram.fetch.ack | (fetch.cyc & fetch.stb & ~fetchable)),
        ]

    def _connect_accelerator(self, m: Module, number: int, arbiter: AxiArbiter) -> Value:
        """Create an accelerator as an instance; returns its interrupt."""
        ports: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        outer = wiring.Signature(npu_members(self._params)).create(path=(f"npu{number}",))
        for name, member in npu_members(self._params).items():
            ports[f"{'o' if member.flow is Out else 'i'}_{name}"] = getattr(outer, name)
        m.submodules[f"npu{number}"] = Instance(TOP_NAME, **ports)
        # Seen from outside, the accelerator's outputs drive: the directions of `flat_pairs` are reversed.
        axi = axi4.channel_layouts(self._params.axi_addr_bits, self._params.axi_data_bits)
        buses = (
            ("m_axi", arbiter.masters[number], axi, axi4.CHANNELS),
            ("s_axi", self._registers[number].registers, axi4_lite.channel_layouts(ADDRESS_BITS), axi4_lite.CHANNELS),
        )
        for prefix, bus, layouts, flows in buses:
            pairs = axi4.flat_pairs(outer, prefix, bus, layouts, {c: In if f is Out else Out for c, f in flows.items()})
            m.d.comb += [driven.eq(driver) for driven, driver in pairs]
        irq: Value = outer.irq
        return irq


def _cpu_bus(name: str, bus: Any) -> dict[str, Any]:
    """Ports of one of the core's buses."""
    ports = {f"o_{name}_{port}": getattr(bus, member) for member, port in _CPU_BUS.items()}
    ports |= {f"i_{name}_{port}": getattr(bus, member) for member, port in _CPU_BUS_INPUTS.items()}
    return {**ports, f"i_{name}_ERR": 0}


def _forward(m: Module, master: Any, slave: Any, selected: Any) -> None:
    """Pass an access to a slave while it is selected."""
    for name in ("we", "adr", "sel", "cti", "dat_w", "stb"):
        m.d.comb += getattr(slave, name).eq(getattr(master, name))
    m.d.comb += slave.cyc.eq(master.cyc & selected)


def generate_soc(params: HardwareParams, accelerators: int = 1) -> str:
    """The system as Verilog, without the modules `npu` and `VexRiscv`; deterministic."""
    return translated(Soc(params, accelerators), SOC_TOP)
