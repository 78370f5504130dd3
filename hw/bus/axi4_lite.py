"""AXI4-Lite as a signature, 32 data bits wide: each channel is a stream of a struct."""

from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, Signature

from intloom.hw.bus.axi4 import RESP_BITS

DATA_BITS = 32

CHANNELS = {"aw": In, "w": In, "b": Out, "ar": In, "r": Out}
"""Direction of each of the five channels at the slave."""


def channel_layouts(addr_bits: int) -> dict[str, data.StructLayout]:
    """Payload of each channel, by the channel's standard short name."""
    address = data.StructLayout({"addr": addr_bits, "prot": 3})
    return {
        "aw": address,
        "w": data.StructLayout({"data": DATA_BITS, "strb": DATA_BITS // 8}),
        "b": data.StructLayout({"resp": RESP_BITS}),
        "ar": address,
        "r": data.StructLayout({"data": DATA_BITS, "resp": RESP_BITS}),
    }


class Axi4Lite(Signature):
    """An AXI4-Lite interface from the slave's side: streams `aw`, `w`, `b`, `ar` and `r`.

    Parameters
    ----------
    addr_bits
        Width of byte addresses.
    """

    def __init__(self, addr_bits: int) -> None:
        self.addr_bits = addr_bits
        layouts = channel_layouts(addr_bits)
        super().__init__({name: flow(stream.Signature(layouts[name])) for name, flow in CHANNELS.items()})

    def __repr__(self) -> str:
        return f"Axi4Lite({self.addr_bits})"
