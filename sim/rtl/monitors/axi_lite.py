"""Monitor of an AXI4-Lite port.

1, 2. The handshake rules on all five channels.
3. Every response belongs to an access: B after address and data, R after its address.
"""

from typing import Any

from intloom.sim.rtl.monitors.channels import watch_channels
from intloom.sim.rtl.monitors.violation import ProtocolViolation

_PAYLOADS = {"aw": ("addr",), "w": ("data", "strb"), "b": ("resp",), "ar": ("addr",), "r": ("data", "resp")}


class AxiLiteMonitor:
    """Checks the port `prefix` of `dut`; call `clock` at every rising edge.

    Parameters
    ----------
    dut
        The module with the port.
    prefix
        Its name, such as `s_axi`.
    """

    def __init__(self, dut: Any, prefix: str) -> None:
        self._name = prefix
        self._channels = watch_channels(dut, prefix, _PAYLOADS)

    def clock(self) -> None:
        """Check this edge; raises `ProtocolViolation`."""
        for channel in self._channels.values():
            channel.clock()
        count = {name: channel.transfers for name, channel in self._channels.items()}
        # AXI4-Lite has no bursts or IDs, so counts of transfers are enough.
        if count["b"] > min(count["aw"], count["w"]):
            raise ProtocolViolation(f"{self._name}: rule 3: B without a write")
        if count["r"] > count["ar"]:
            raise ProtocolViolation(f"{self._name}: rule 3: R without a read")
