"""Intloom in a LiteX system: `add_intloom(soc)`.

The file needs only LiteX and the folder that `intloom verilog` writes. Tested with LiteX 2024.12.
"""

import tomllib
from pathlib import Path
from typing import Any

from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect.axi import AXIInterface, AXILiteInterface
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from litex.soc.interconnect.stream import Buffer
from migen import ClockSignal, Instance, ResetSignal, Signal

REGISTER_ADDRESS_BITS = 10
_NOT_SOURCES = ("npu_tb", "npu_aresetn")
_ADDRESS = ("addr", "prot")
_BURST = (*_ADDRESS, "id", "len", "size", "burst", "lock", "cache", "qos")
_LITE = {"aw": _ADDRESS, "w": ("data", "strb"), "b": ("resp",), "ar": _ADDRESS, "r": ("data", "resp")}
_FULL = {
    "aw": _BURST, "w": ("data", "strb", "last"), "b": ("id", "resp"), "ar": _BURST,
    "r": ("id", "data", "resp", "last"),
}  # fmt: skip
"""Members of each channel."""
_REQUESTS = ("aw", "w", "ar")


class Intloom(LiteXModule):
    """The accelerator with its AXI4-Lite registers `registers`, its AXI4 master `memory` and its interrupt `ev`."""

    def __init__(self, platform: Any, folder: Path, address_width: int = 32) -> None:
        parameters = tomllib.loads((folder / "parameters.toml").read_text(encoding="utf-8"))
        self.registers = AXILiteInterface(data_width=32, address_width=address_width)
        sizes = {"data_width": parameters["axi_data_bits"], "address_width": address_width, "id_width": 1}
        self.memory, port = AXIInterface(**sizes), AXIInterface(**sizes)
        self.ev = EventManager()
        self.ev.done = EventSourceLevel(description="A program ended, or an error stopped it.")
        self.ev.finalize()
        wide = parameters["axi_addr_bits"]
        ports = {"i_clk": ClockSignal("sys"), "i_rst": ResetSignal("sys"), "o_irq": self.ev.done.trigger}
        ports |= _ports("s_axi", self.registers, _LITE, ("b", "r"))
        ports |= _ports("m_axi", port, _FULL, _REQUESTS)
        for channel in ("aw", "ar"):
            ports[f"i_s_axi_{channel}addr"] = getattr(self.registers, channel).addr[:REGISTER_ADDRESS_BITS]
        # The bus may have fewer address bits than the accelerator.
        for channel in ("aw", "ar"):
            address = ports[f"o_m_axi_{channel}addr"] = Signal(wide)
            self.comb += getattr(port, channel).addr.eq(address)
        # LiteX's bridges and cache answer in the cycle of a request: their paths would go on in the accelerator.
        for channel in _FULL:
            ends = getattr(port, channel), getattr(self.memory, channel)
            first, last = ends if channel in _REQUESTS else reversed(ends)
            buffer = Buffer(first.description, pipe_valid=True, pipe_ready=True)
            self.add_module(f"buffer_{channel}", buffer)
            self.comb += [first.connect(buffer.sink), buffer.source.connect(last)]
        self.specials += Instance("npu", **ports)
        for source in sorted(folder.glob("*.v")):
            if source.stem not in _NOT_SOURCES:
                platform.add_source(str(source))


def _ports(prefix: str, bus: Any, members: dict[str, tuple[str, ...]], driven: tuple[str, ...]) -> dict[str, Any]:
    """Connections of one bus; the accelerator drives payload and `valid` of the channels `driven`."""
    ports: dict[str, Any] = {}
    for channel, names in members.items():
        forward, backward = ("o", "i") if channel in driven else ("i", "o")
        for name in (*names, "valid"):
            ports[f"{forward}_{prefix}_{channel}{name}"] = getattr(getattr(bus, channel), name)
        ports[f"{backward}_{prefix}_{channel}ready"] = getattr(bus, channel).ready
    return ports


def add_intloom(
    soc: Any, preset: str | None = None, *, name: str = "intloom", origin: int | None = None, folder: Path | None = None
) -> Intloom:
    """Add the accelerator to a LiteX system: registers, DMA master, interrupt.

    Parameters
    ----------
    soc
        A `SoCCore` or another `SoC`.
    preset
        Preset whose Verilog is written into `build/intloom-PRESET` first; this needs the package `intloom`.
    name
        Name of the register region, of the CSRs of the interrupt, and of the interrupt.
    origin
        Address of the registers; without it LiteX chooses one.
    folder
        Folder that `intloom verilog` wrote. Default without preset: that of this file.
    """
    if preset is not None:
        from intloom.hw.generate import write_package
        from intloom.hw.spec.params import preset as params_of

        folder = folder or Path("build") / f"intloom-{preset}"
        write_package(params_of(preset), folder)
    folder = (folder or Path(__file__).parent).resolve()
    if not (folder / "npu.v").exists():
        raise FileNotFoundError(f"{folder} has no npu.v: name a preset, or a folder that `intloom verilog` wrote")
    module = Intloom(soc.platform, folder, soc.bus.address_width)
    soc.add_module(name=name, module=module)
    soc.bus.add_slave(name, module.registers, SoCRegion(origin=origin, size=1 << REGISTER_ADDRESS_BITS, cached=False))
    # Systems whose CPU has a coherent port for DMA have a bus of its own for it.
    getattr(soc, "dma_bus", soc.bus).add_master(f"{name}_memory", module.memory)
    if soc.irq.enabled:
        soc.irq.add(name, use_loc_if_exists=True)
    return module
