"""Monitor of a valid/ready channel.

1. Once `valid` is high it stays high until the transfer.
2. The payload stays as it is while `valid` is high and `ready` is low.
3. `valid` does not wait for `ready`. A monitor cannot see what a sender would like to send, so the bench checks this
   one: it keeps every `ready` low at times, and the run must still end.
"""

from collections.abc import Mapping
from typing import Any

from intloom.sim.rtl.monitors.violation import ProtocolViolation, sample


class HandshakeMonitor:
    """Checks one channel; call `clock` at every rising edge with the values before it.

    Parameters
    ----------
    name
        The channel, for messages.
    valid, ready
        Its strobes.
    payload
        Its other signals by name.
    """

    def __init__(self, name: str, valid: Any, ready: Any, payload: Mapping[str, Any]) -> None:
        self._name = name
        self._valid = valid
        self._ready = ready
        self._payload = payload
        self._held: dict[str, int] | None = None
        self.transfers = 0

    def clock(self) -> dict[str, int] | None:
        """The payload when a transfer happens at this edge, else None; raises `ProtocolViolation`."""
        if not sample(self._valid):
            if self._held is not None:
                raise ProtocolViolation(f"{self._name}: rule 1: valid must stay high until the transfer, but it fell")
            return None
        # The payload is sampled only while `valid` is high: AXI does not define it otherwise, and `sample` refuses
        # undefined bits.
        payload = {name: sample(signal) for name, signal in self._payload.items()}
        if self._held is not None and payload != self._held:
            changed = next(n for n in payload if payload[n] != self._held[n])
            raise ProtocolViolation(
                f"{self._name}: rule 2: {changed} must stay {self._held[changed]:#x} until the transfer, "
                f"but it became {payload[changed]:#x}"
            )
        if sample(self._ready):
            self._held = None
            self.transfers += 1
            return payload
        self._held = payload
        return None
