"""Monitor of an AXI4 port, seen from the memory's side.

1, 2. The handshake rules on all five channels.
4. Bursts are incrementing, of whole beats, aligned, and do not cross a 4 KiB boundary.
5. WLAST marks the last beat of every write burst and no other; no write data comes without its address, and no strobe
   is outside the lanes of its beat.
6. Every response belongs to a burst: a B for each completed write, an R for each requested beat, RLAST on the last.
7. At the end nothing is outstanding.
"""

from collections import deque
from typing import Any

from intloom.sim.rtl.monitors.channels import watch_channels
from intloom.sim.rtl.monitors.violation import ProtocolViolation

_PAYLOADS = {
    "aw": ("id", "addr", "len", "size", "burst"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
    "ar": ("id", "addr", "len", "size", "burst"),
    "r": ("id", "data", "resp", "last"),
}
_PAGE = 4096
_INCREMENTING = 1


class Axi4Monitor:
    """Checks the port `prefix` of `dut`; call `clock` at every rising edge.

    Parameters
    ----------
    dut
        The module with the port.
    prefix
        Its name, such as `m_axi`.
    beat_bytes
        Bytes that a beat carries.
    """

    def __init__(self, dut: Any, prefix: str, beat_bytes: int) -> None:
        self._name = prefix
        self._bytes = beat_bytes
        self._lanes = len(getattr(dut, f"{prefix}_wdata")) // 8
        self._channels = watch_channels(dut, prefix, _PAYLOADS)
        self._writes: deque[int] = deque()
        self._write_addresses: deque[int] = deque()
        self._reads: deque[int] = deque()
        self._beat = 0
        self._owed_responses = 0

    def clock(self) -> None:
        """Check this edge; raises `ProtocolViolation`."""
        taken = {name: channel.clock() for name, channel in self._channels.items()}
        # Addresses before data: the first data beat may be transferred in the cycle of its address.
        for name, pending in (("aw", self._writes), ("ar", self._reads)):
            if (request := taken[name]) is not None:
                self._check_burst(name, request)
                pending.append(request["len"] + 1)
                if name == "aw":
                    self._write_addresses.append(request["addr"])
        if taken["w"] is not None:
            self._write_beat(taken["w"])
        if taken["r"] is not None:
            self._read_beat(taken["r"])
        if taken["b"] is not None:
            self._owed_responses -= 1
            if self._owed_responses < 0:
                self._broken("6: B without a completed write burst")

    def finish(self) -> None:
        """Check that nothing is outstanding; raises `ProtocolViolation`."""
        if self._writes or self._reads or self._owed_responses:
            left = f"{len(self._reads)} reads, {len(self._writes)} writes, {self._owed_responses} responses"
            self._broken(f"7: nothing may be outstanding at the end, but there are {left}")

    def _broken(self, text: str) -> None:
        raise ProtocolViolation(f"{self._name}: rule {text}")

    def _check_burst(self, channel: str, request: dict[str, int]) -> None:
        beats, address = request["len"] + 1, request["addr"]
        text = f"4: {channel.upper()} of {beats} beats at {address:#x}"
        if request["burst"] != _INCREMENTING:
            self._broken(f"{text} must be incrementing, not of type {request['burst']}")
        if 1 << request["size"] != self._bytes:
            self._broken(f"{text} must move {self._bytes} bytes a beat, not {1 << request['size']}")
        if address % self._bytes:
            self._broken(f"{text} must be aligned to {self._bytes} bytes")
        # AXI4: a burst must not cross a 4 KiB boundary.
        if address // _PAGE != (address + beats * self._bytes - 1) // _PAGE:
            self._broken(f"{text} crosses a 4 KiB boundary")

    def _write_beat(self, beat: dict[str, int]) -> None:
        if not self._writes:
            self._broken("5: write data without an address")
        lane = (self._write_addresses[0] + self._beat * self._bytes) % self._lanes
        if beat["strb"] & ~((1 << self._bytes) - 1 << lane):
            self._broken(f"5: strobes {beat['strb']:#x} must be inside lanes {lane} to {lane + self._bytes - 1}")
        self._beat += 1
        is_last = self._beat == self._writes[0]
        if bool(beat["last"]) != is_last:
            self._broken(f"5: WLAST must be {int(is_last)} on beat {self._beat} of {self._writes[0]}")
        if is_last:
            self._writes.popleft()
            self._write_addresses.popleft()
            self._beat = 0
            self._owed_responses += 1

    def _read_beat(self, beat: dict[str, int]) -> None:
        if not self._reads:
            self._broken("6: R without a request")
        self._reads[0] -= 1
        if bool(beat["last"]) != (self._reads[0] == 0):
            self._broken(f"6: RLAST must be {int(self._reads[0] == 0)} with {self._reads[0]} beats left")
        if self._reads[0] == 0:
            self._reads.popleft()
