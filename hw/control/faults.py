"""The sticky error: what stopped the accelerator first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, Signature

from intloom.hw.control.dispatch import FAULT_LAYOUT
from intloom.hw.spec.isa import QUEUED_UNITS


class FaultPort(Signature):
    """A fault and its description, seen from the one that reports it."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "fault": Out(FAULT_LAYOUT)})


SOURCES = len(QUEUED_UNITS) + 2
"""The units, then dispatch, then the watchdog."""


class FaultLatch(wiring.Component):
    """Keeps the first fault until reset, from `LATENCY` cycles after it on; of several at once, the first source's."""

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "sources": In(FaultPort()).array(SOURCES),
                "latched": Out(FaultPort()),
            }
        )

    @staticmethod
    def model(cycles: Iterable[Sequence[Any]]) -> Any:
        """The fault that is kept, or None, of what the sources report in every cycle: a fault or None."""
        return next((fault for reported in cycles for fault in reported if fault is not None), None)

    def elaborate(self, platform: object) -> Module:
        """A priority choice into a register."""
        m = Module()
        with m.If(~self.latched.valid):
            for source in reversed(range(SOURCES)):
                with m.If(self.sources[source].valid):
                    m.d.sync += [self.latched.valid.eq(1), self.latched.fault.eq(self.sources[source].fault)]
        return m
