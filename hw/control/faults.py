"""The sticky error: the first fault."""

from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, Signature

from intloom.hw.control.dispatch import FAULT_LAYOUT
from intloom.hw.spec.isa import QUEUED_UNITS


class FaultPort(Signature):
    """A fault and its description, from the side of the component that reports it."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "fault": Out(FAULT_LAYOUT)})


SOURCES = len(QUEUED_UNITS) + 3
"""The units, then dispatch, the watchdog and fetch: highest priority first."""
PARITY_SOURCES = 2
"""With `memory_parity`, after the others: scratchpad, weight memory."""


class FaultLatch(wiring.Component):
    """Latches the first fault.

    Of several faults in one cycle it takes the one of the source with the lowest index.

    Parameters
    ----------
    sources
        Number of sources.

    Members
    -------
    sources
        Faults of the units, of dispatch, of the watchdog and of fetch; with `memory_parity` also those of the two
        memories.
    latched
        The first fault.

    Handshake
    ---------
    Each source is a level or a pulse, with its description; `latched.valid` stays high and `latched.fault` stable until
    reset.

    Timing
    ------
    From a source's `valid` to `latched.valid`: `LATENCY` = 1 cycle.

    Requirements
    ------------
    A source's description is valid in the cycle in which its `valid` rises.

    Reset and faults
    ----------------
    Reset clears the latch.
    """

    LATENCY = 1

    def __init__(self, sources: int = SOURCES) -> None:
        self._sources = sources
        super().__init__(
            {
                "sources": In(FaultPort()).array(sources),
                "latched": Out(FaultPort()),
            }
        )

    @staticmethod
    def model(cycles: Iterable[Sequence[Any]]) -> Any:
        """The fault that is latched, or None; each cycle has one fault or None per source."""
        return next((fault for reported in cycles for fault in reported if fault is not None), None)

    def elaborate(self, platform: object) -> Module:
        """A priority multiplexer and a register."""
        m = Module()
        with m.If(~self.latched.valid):
            # The last assignment wins: the lowest index, with the highest priority, comes last.
            for source in reversed(range(self._sources)):
                with m.If(self.sources[source].valid):
                    m.d.sync += [self.latched.valid.eq(1), self.latched.fault.eq(self.sources[source].fault)]
        return m
