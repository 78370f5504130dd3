"""The system on a chip: RISC-V core, accelerator, UART and interconnect."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from intloom.hw.bus import axi4, axi4_lite
from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.soc.axi_arbiter import AxiArbiter
from intloom.hw.soc.bus_errors import BusErrors
from intloom.hw.soc.dram_bridge import DramBridge
from intloom.hw.soc.register_bridge import RegisterBridge
from intloom.hw.soc.uart import UartTransmitter
from intloom.hw.soc.wishbone import Wishbone
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
ERRORS_BASE = 0xF000_2000
_NOTHING = 0xFFFF_FFFF
_MEMORY_SELECT = 0b01
"""Upper two address bits of the memory: 0x4000_0000 to 0x7fff_ffff."""
_BLOCK_SHIFT = 10
"""Blocks of 4 KiB, in addresses of 4-byte words."""
_CPU_BUS = {"we": "WE", "adr": "ADR", "sel": "SEL", "cti": "CTI", "dat_w": "DAT_MOSI", "cyc": "CYC", "stb": "STB"}
_CPU_BUS_INPUTS = {"dat_r": "DAT_MISO", "ack": "ACK"}


def memory_members(params: HardwareParams) -> dict[str, Any]:
    """The memory port by the names of the AXI standard."""
    return axi4.flat_members("m_axi", _memory_layouts(params), axi4.CHANNELS)


def _memory_layouts(params: HardwareParams) -> dict[str, Any]:
    return axi4.channel_layouts(params.axi_addr_bits, params.axi_data_bits)


class Soc(wiring.Component):
    """VexRiscv and the accelerator on one memory, with a UART.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    m_axi_*
        AXI4 master to the memory.
    uart_tx
        Serial output.

    Handshake
    ---------
    AXI4. Identifier 0 marks the accelerator's bursts, 1 the CPU's.

    Timing
    ------
    That of `DramBridge` and `AxiArbiter`.

    Requirements
    ------------
    Modules `VexRiscv` and `npu` are in the same design. Memory starts at `RESET_VECTOR` with the firmware.

    Reset and faults
    ----------------
    `rst` resets everything. Error responses, and accesses to addresses without memory or device, are recorded in
    `BusErrors`. Interrupt 0 of the CPU is the accelerator's.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__({**memory_members(params), "uart_tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        """The core, its address decoder and the slaves."""
        m = Module()
        m.submodules.arbiter = arbiter = AxiArbiter(self._params)
        m.submodules.dram = dram = self._dram = DramBridge(self._params)
        m.submodules.registers = registers = self._registers = RegisterBridge()
        m.submodules.uart = uart = self._uart = UartTransmitter()
        m.submodules.errors = self._errors = BusErrors()
        data_bus, fetch_bus = Wishbone().create(path=("cpu_data",)), Wishbone().create(path=("cpu_fetch",))
        interrupts = Signal(32)
        m.submodules.cpu = Instance(
            CPU_MODULE,
            i_clk=ClockSignal(),
            i_reset=ResetSignal(),
            i_externalResetVector=RESET_VECTOR,
            i_timerInterrupt=0,
            i_softwareInterrupt=0,
            i_externalInterruptArray=interrupts,
            **_cpu_bus("dBusWishbone", data_bus),
            **_cpu_bus("iBusWishbone", fetch_bus),
        )
        irq = self._connect_accelerator(m, arbiter, registers)
        m.d.comb += [interrupts.eq(irq), self.uart_tx.eq(uart.tx)]
        self._decode(m, data_bus, fetch_bus)
        connect(m, dram.memory, arbiter.second)
        pairs = axi4.flat_pairs(self, "m_axi", arbiter.memory, _memory_layouts(self._params), axi4.CHANNELS)
        m.d.comb += [driven.eq(driver) for driven, driver in pairs]
        return m

    def _decode(self, m: Module, data: Any, fetch: Any) -> None:
        """Select the slave of an access; an access without one reads all ones and is recorded."""
        dram, registers, errors = self._dram, self._registers, self._errors
        in_memory = data.adr[-2:] == _MEMORY_SELECT
        block = data.adr[_BLOCK_SHIFT:]
        selects = [
            (in_memory, dram.data),
            (block == UART_BASE >> 2 >> _BLOCK_SHIFT, self._uart.bus),
            # The accelerator sees earlier writes to memory only after their responses.
            ((block == REGISTERS_BASE >> 2 >> _BLOCK_SHIFT) & dram.idle, registers.bus),
            ((block == ERRORS_BASE >> 2 >> _BLOCK_SHIFT) & dram.idle, errors.bus),
        ]
        for selected, slave in selects:
            _forward(m, data, slave, selected)
            with m.If(selected):
                m.d.comb += [data.dat_r.eq(slave.dat_r), data.ack.eq(slave.ack)]
        devices = (UART_BASE, REGISTERS_BASE, ERRORS_BASE)
        nowhere = ~in_memory & ~Cat(block == base >> 2 >> _BLOCK_SHIFT for base in devices).any()
        nothing = data.cyc & data.stb & nowhere
        with m.If(nowhere):
            m.d.comb += [data.dat_r.eq(_NOTHING), data.ack.eq(nothing)]
        m.d.comb += errors.event.eq(nothing | dram.error | registers.error)
        fetchable = fetch.adr[-2:] == _MEMORY_SELECT
        _forward(m, fetch, dram.fetch, fetchable)
        m.d.comb += [
            fetch.dat_r.eq(dram.fetch.dat_r),
            # Outside memory the core reads an undefined instruction and traps.
            fetch.ack.eq(dram.fetch.ack | (fetch.cyc & fetch.stb & ~fetchable)),
        ]

    def _connect_accelerator(self, m: Module, arbiter: AxiArbiter, registers: RegisterBridge) -> Signal:
        """Create the accelerator as an instance; returns its interrupt."""
        ports: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        outer = wiring.Signature(npu_members(self._params)).create(path=("npu",))
        for name, member in npu_members(self._params).items():
            ports[f"{'o' if member.flow is Out else 'i'}_{name}"] = getattr(outer, name)
        m.submodules.npu = Instance(TOP_NAME, **ports)
        # Seen from outside, the accelerator's outputs drive: the directions of `flat_pairs` are reversed.
        lite = axi4_lite.channel_layouts(ADDRESS_BITS)
        buses = (
            ("m_axi", arbiter.first, _memory_layouts(self._params), axi4.CHANNELS),
            ("s_axi", registers.registers, lite, axi4_lite.CHANNELS),
        )
        for prefix, bus, layouts, flows in buses:
            pairs = axi4.flat_pairs(outer, prefix, bus, layouts, {c: In if f is Out else Out for c, f in flows.items()})
            m.d.comb += [driven.eq(driver) for driven, driver in pairs]
        irq: Signal = outer.irq
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


def generate_soc(params: HardwareParams) -> str:
    """The system as Verilog, without the modules `npu` and `VexRiscv`; deterministic."""
    return translated(Soc(params), SOC_TOP)
