"""The LiteX system of a board: RISC-V core, SDRAM, UART bridge, LEDs and the accelerator."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litedram import modules as sdram_modules
from litedram.init import get_sdram_phy_init_sequence
from litedram.phy import GENSDRPHY
from litex.build.generic_platform import IOStandard, Misc, Pins, Subsignal
from litex.build.io import DDROutput
from litex.build.lattice import LatticePlatform
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex.soc.cores.gpio import GPIOOut
from litex.soc.integration.export import get_csr_csv
from litex.soc.integration.soc_core import SoCCore
from migen import ClockDomain, ClockSignal

from intloom.common.atomic_write import write_text
from intloom.common.errors import CapacityError
from intloom.hw.fpga.board.bitstream import CHIP
from intloom.hw.fpga.board.boards import Board
from intloom.hw.package.intloom_litex import add_intloom

REGISTERS_AT = 0x8200_0000
BAUD = 1_000_000
ROM_BYTES = 0x8000
SRAM_BYTES = 0x2000
_CONSOLE_BYTES = 1024
"""Depth of the console's FIFO: the firmware prints less and so never waits for a reader."""
_QUARTER = 90
"""Phase of the SDRAM's clock: its edge is in the middle of command and data."""


class _Clocks(LiteXModule):
    """The system's clock, and the SDRAM's a quarter of a period later; reset by the button and until the PLL locks."""

    def __init__(self, platform: Any, board: Board) -> None:
        self.cd_sys = ClockDomain()
        self.cd_sdram = ClockDomain()
        self.pll = pll = ECP5PLL()
        self.comb += [pll.reset.eq(platform.request("rst")), platform.request("high").eq(1)]
        pll.register_clkin(platform.request("clk"), board.oscillator)
        pll.create_clkout(self.cd_sys, board.clock)
        pll.create_clkout(self.cd_sdram, board.clock, phase=_QUARTER, with_reset=False)
        self.specials += DDROutput(1, 0, platform.request("sdram_clk"), ClockSignal("sdram"))


class BoardSystem(SoCCore):
    """RISC-V core with firmware in ROM, SDRAM behind an L2 cache, and the accelerator as a bus master.

    The serial port is a bridge to the bus for the host; the firmware's console is a FIFO that the host reads.
    """

    def __init__(self, board: Board, device: str, preset: str | None, folder: Path) -> None:
        platform = board_platform(board, device)
        super().__init__(
            platform, board.clock, cpu_type="vexriscv", ident="", with_timer=False,
            integrated_rom_size=ROM_BYTES, integrated_sram_size=SRAM_BYTES,
            uart_name="crossover", with_uartbone=True, uart_baudrate=BAUD, uart_fifo_depth=_CONSOLE_BYTES,
        )  # fmt: skip
        self.board = board
        self.crg = _Clocks(platform, board)
        self.leds = GPIOOut(platform.request("leds"))
        self.phy = GENSDRPHY(platform.request("sdram"), board.clock)
        self.chips = getattr(sdram_modules, board.sdram)(board.clock, "1:1")
        self.add_sdram("sdram", phy=self.phy, module=self.chips)
        add_intloom(self, preset, origin=REGISTERS_AT, folder=folder)


def board_platform(board: Board, device: str) -> Any:
    """LiteX's platform with the pins of the board."""
    groups = [_group(name, pins, board.options.get(name)) for name, pins in board.pins.items()]
    return LatticePlatform(f"LFE5U-{device}-{board.grade}BG381C", groups, toolchain="trellis", name=CHIP)


def _group(name: str, pins: Any, option: str | None) -> tuple[Any, ...]:
    parts = [Pins(sites) if not signal else Subsignal(signal, Pins(sites)) for signal, sites in pins.items()]
    return (name, 0, *parts, IOStandard("LVCMOS33"), *([Misc(option)] if option else []))


@dataclass(frozen=True)
class Write:
    """A register write of the SDRAM's start, and how many turns of a loop the firmware waits after it."""

    address: int
    value: int
    wait: int


_COMMANDS = {
    "DFII_COMMAND_CS": 1, "DFII_COMMAND_WE": 2, "DFII_COMMAND_CAS": 4, "DFII_COMMAND_RAS": 8,
    "DFII_CONTROL_SEL": 1, "DFII_CONTROL_CKE": 2, "DFII_CONTROL_ODT": 4, "DFII_CONTROL_RESET_N": 8,
}  # fmt: skip
"""Bits of the control and command registers of LiteDRAM's injector, by the names in its sequences."""


def registers(system: BoardSystem) -> dict[str, int]:
    """Addresses of LiteX's registers by peripheral and register; finalizes the system."""
    system.finalize()
    addresses = {}
    for group, region in system.csr.regions.items():
        address = region.origin
        for register in region.obj:
            addresses[f"{group}_{register.name}"] = address
            address += 4 * -(-register.size // system.csr.data_width)
    return addresses


def sdram_start(system: BoardSystem) -> list[Write]:
    """What the firmware writes to start the SDRAM and hand it to the controller."""
    at = registers(system)
    steps, _ = get_sdram_phy_init_sequence(system.phy.settings, system.chips.timing_settings)
    writes = [Write(at["sdram_dfii_control"], _value(steps[0][3]), 0)]
    for _, address, bank, command, wait in steps:
        if "CONTROL" in command:
            writes.append(Write(at["sdram_dfii_control"], _value(command), wait))
            continue
        writes += [
            Write(at["sdram_dfii_pi0_address"], address, 0),
            Write(at["sdram_dfii_pi0_baddress"], bank, 0),
            Write(at["sdram_dfii_pi0_command"], _value(command), 0),
            Write(at["sdram_dfii_pi0_command_issue"], 1, wait),
        ]
    return [*writes, Write(at["sdram_dfii_control"], _COMMANDS["DFII_CONTROL_SEL"], 0)]


def _value(text: str) -> int:
    return sum(_COMMANDS[name] for name in text.split("|"))


def addresses(system: BoardSystem) -> dict[str, int]:
    """Addresses and sizes that the firmware and its linker script need, by C name."""
    at, regions = registers(system), system.bus.regions
    return {
        "LEDS_AT": at["leds_out"],
        "UART_AT": at["uart_rxtx"],
        "BUS_ERRORS_AT": at["ctrl_bus_errors"],
        "ACCELERATOR_AT": regions["intloom"].origin,
        "MEMORY_AT": regions["main_ram"].origin,
        "MEMORY_BYTES": regions["main_ram"].size,
        "ROM_AT": regions["rom"].origin,
        "ROM_BYTES": regions["rom"].size,
        "SRAM_AT": regions["sram"].origin,
        "SRAM_BYTES": regions["sram"].size,
    }


def write_verilog(system: BoardSystem, firmware: bytes, folder: Path) -> list[Path]:
    """Write the system with this firmware in its ROM into `folder`; returns all Verilog sources.

    Beside them are the pin file, and LiteX's table of addresses, `csr.csv`.

    Raises
    ------
    CapacityError
        The firmware is larger than the ROM.
    """
    if len(firmware) > ROM_BYTES:
        raise CapacityError(f"the firmware has {len(firmware)} bytes, the ROM {ROM_BYTES}; raise ROM_BYTES")
    padded = firmware + bytes(-len(firmware) % 4)
    system.init_rom("rom", list(struct.unpack(f"<{len(padded) // 4}I", padded)), auto_size=False)
    system.finalize()
    text = system.platform.get_verilog(system, name=CHIP)
    for name, contents in {f"{CHIP}.v": text.main_source, **text.data_files}.items():
        write_text(folder / name, contents)
    write_text(folder / f"{CHIP}.lpf", _pin_file(system, text.ns))
    write_text(folder / "csr.csv", get_csr_csv(system.csr.regions, system.constants, system.mem_regions))
    return [*(Path(path) for path, *_ in system.platform.sources), folder / f"{CHIP}.v"]


def _pin_file(system: BoardSystem, names: Any) -> str:
    """Constraints for nextpnr: a site and a standard for each pin, and the oscillator's frequency."""
    lines = [f'FREQUENCY PORT "clk" {system.board.oscillator / 1e6} MHz;']
    for signal, pins, others, _ in system.platform.resolve_signals(names)[0]:
        for index, pin in enumerate(pins):
            port = f"{signal}[{index}]" if len(pins) > 1 else signal
            options = [f"IO_TYPE={o.name}" if isinstance(o, IOStandard) else o.misc for o in others]
            lines += [f'LOCATE COMP "{port}" SITE "{pin}";', f'IOBUF PORT "{port}" {" ".join(options)};']
    return "\n".join([*lines, ""])
