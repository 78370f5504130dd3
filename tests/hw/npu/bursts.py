"""The rules of AXI4 bursts, beyond those of a single handshake."""

from collections import deque
from dataclasses import dataclass, field

from intloom.hw.bus.axi4 import BOUNDARY_BYTES, Burst
from intloom.hw.spec.params import HardwareParams


@dataclass
class BurstRules:
    """Follows what passes on the master's five channels and fails at the first burst that is not legal."""

    params: HardwareParams
    window: range
    """Byte addresses that a burst may touch."""
    reads: deque[int] = field(default_factory=deque)
    """Beats still to come of each outstanding read burst."""
    addressed: deque[int] = field(default_factory=deque)
    """Lengths of write bursts whose data is not complete."""
    sent: deque[int] = field(default_factory=deque)
    """Lengths of data bursts whose address has not come."""
    beats: int = 0
    unanswered: int = 0

    def forget(self) -> None:
        """Nothing is outstanding: after the reset input."""
        for bursts in (self.reads, self.addressed, self.sent):
            bursts.clear()
        self.beats = self.unanswered = 0

    def passed(self, channel: str, payload: dict[str, int]) -> None:
        """A transfer on `channel`."""
        getattr(self, f"_{channel}")(payload)

    def _address(self, channel: str, payload: dict[str, int]) -> int:
        beats, at, size = payload["len"] + 1, payload["addr"], self.params.beat_bytes
        assert 1 << payload["size"] == size, f"{channel}: a beat must have {size} bytes"
        assert payload["burst"] == Burst.INCR, f"{channel}: bursts must increment"
        assert beats <= self.params.axi_burst, f"{channel}: {beats} beats are more than a burst may have"
        assert at % self.params.word_bytes == 0, f"{channel}: {at:#x} is not a word's address"
        for name in {"prot", "cache", "qos", "user"} & payload.keys():
            assert payload[name] == getattr(self.params, f"axi_{name}"), f"{channel}: {name} must be the parameter's"
        last = at + beats * size - 1
        assert at in self.window and last in self.window, f"{channel}: {at:#x} to {last:#x} leaves the window"
        assert at // BOUNDARY_BYTES == last // BOUNDARY_BYTES, f"{channel}: {at:#x} to {last:#x} crosses 4 KiB"
        return beats

    def _ar(self, payload: dict[str, int]) -> None:
        self.reads.append(self._address("ar", payload))
        assert len(self.reads) <= self.params.axi_outstanding, "ar: too many bursts outstanding"

    def _r(self, payload: dict[str, int]) -> None:
        assert self.reads, "r: data without a request was accepted"
        self.reads[0] -= 1
        assert payload["last"] == (self.reads[0] == 0), "r: last must mark the last beat"
        if payload["last"]:
            self.reads.popleft()

    def _aw(self, payload: dict[str, int]) -> None:
        self.addressed.append(self._address("aw", payload))
        self.unanswered += 1
        assert self.unanswered <= self.params.axi_outstanding, "aw: too many bursts outstanding"
        self._match()

    def _w(self, payload: dict[str, int]) -> None:
        self.beats += 1
        if payload["last"]:
            self.sent.append(self.beats)
            self.beats = 0
            self._match()

    def _match(self) -> None:
        while self.addressed and self.sent:
            asked, given = self.addressed.popleft(), self.sent.popleft()
            assert asked == given, f"w: {given} beats were sent for a burst of {asked}"

    def _b(self, _payload: dict[str, int]) -> None:
        self.unanswered -= 1
        assert self.unanswered >= 0, "b: a response without a burst was accepted"
