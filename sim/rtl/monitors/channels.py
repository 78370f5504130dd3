"""The channels of an AXI port, each with its handshake monitor."""

from collections.abc import Mapping, Sequence
from typing import Any

from intloom.sim.rtl.monitors.handshake import HandshakeMonitor


def watch_channels(dut: Any, prefix: str, payloads: Mapping[str, Sequence[str]]) -> dict[str, HandshakeMonitor]:
    """A monitor for every channel of the port `prefix` of `dut`; `payloads` names each channel's signals."""
    return {
        channel: HandshakeMonitor(
            f"{prefix} {channel.upper()}",
            getattr(dut, f"{prefix}_{channel}valid"),
            getattr(dut, f"{prefix}_{channel}ready"),
            {n: getattr(dut, f"{prefix}_{channel}{n}") for n in names},
        )
        for channel, names in payloads.items()
    }
