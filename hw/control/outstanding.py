"""What the accelerator has in flight on its memory bus, for software that recovers from a bus that hangs."""

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

COUNT_BITS = 8
CHANNELS = ("ar", "aw", "w")


class Outstanding(wiring.Component):
    """Counts the bursts whose address was taken and that have not been completed.

    Members
    -------
    ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready
        Handshakes of the requests.
    read_end, write_end
        The last beat of a read, and the response to a write, transfer.
    reads, writes
        Bursts outstanding.
    offered
        A request on AR, AW and W (bits 0 to 2) was valid and not taken.

    Handshake
    ---------
    None.

    Timing
    ------
    From a handshake to the outputs: 1 cycle.

    Requirements
    ------------
    At most 255 bursts of a kind are outstanding.

    Reset and faults
    ----------------
    The soft reset does not reach this component: it waits for the bursts that are counted here. No faults.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                **{f"{channel}_{wire}": In(1) for channel in CHANNELS for wire in ("valid", "ready")},
                "read_end": In(1),
                "write_end": In(1),
                "reads": Out(COUNT_BITS),
                "writes": Out(COUNT_BITS),
                "offered": Out(len(CHANNELS)),
            }
        )

    @staticmethod
    def model(steps: Iterable[Mapping[str, int]]) -> Iterator[tuple[int, int, int]]:
        """Reads, writes and offers after each cycle."""
        reads = writes = 0
        for step in steps:
            fires = {channel: step[f"{channel}_valid"] & step[f"{channel}_ready"] for channel in CHANNELS}
            reads += fires["ar"] - step["read_end"]
            writes += fires["aw"] - step["write_end"]
            waits = (step[f"{channel}_valid"] and not fires[channel] for channel in CHANNELS)
            yield reads, writes, sum(wait << bit for bit, wait in enumerate(waits))

    def elaborate(self, platform: object) -> Module:
        """Two counters and a register."""
        m = Module()
        for count, channel, end in ((self.reads, "ar", self.read_end), (self.writes, "aw", self.write_end)):
            fire = Signal(name=f"{channel}_fire")
            m.d.comb += fire.eq(getattr(self, f"{channel}_valid") & getattr(self, f"{channel}_ready"))
            with m.If(fire ^ end):
                m.d.sync += count.eq(count + fire - end)
        for bit, channel in enumerate(CHANNELS):
            valid, ready = getattr(self, f"{channel}_valid"), getattr(self, f"{channel}_ready")
            m.d.sync += self.offered[bit].eq(valid & ~ready)
        return m
