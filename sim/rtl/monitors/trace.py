"""Monitor of the trace port; it also records the pulses.

1. A unit finishes no instruction that it has not started.
2. At the end it has finished as many as it has started.
"""

from typing import Any

from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.sim.rtl.monitors.violation import ProtocolViolation, sample


class TraceMonitor:
    """Checks and records `trace_started` and `trace_done` of `dut`; call `clock` at every rising edge.

    Parameters
    ----------
    dut
        The module with the port.
    """

    def __init__(self, dut: Any) -> None:
        self._started_port = dut.trace_started
        self._done_port = dut.trace_done
        self.records: list[int] = []
        """Cycle << 8 | done << 4 | started, for every cycle with a pulse."""
        self.started = [0] * len(QUEUED_UNITS)
        self.done = [0] * len(QUEUED_UNITS)

    def clock(self, cycle: int) -> None:
        """Check this edge; raises `ProtocolViolation`."""
        started, done = sample(self._started_port), sample(self._done_port)
        if not started | done:
            return
        self.records.append(cycle << 8 | done << 4 | started)
        for unit in QUEUED_UNITS:
            self.started[unit] += started >> unit & 1
            self.done[unit] += done >> unit & 1
            if self.done[unit] > self.started[unit]:
                raise ProtocolViolation(
                    f"trace: rule 1: {unit.name} finished {self.done[unit]} of {self.started[unit]} started"
                )

    def finish(self) -> None:
        """Check that nothing started is unfinished; raises `ProtocolViolation`."""
        for unit in QUEUED_UNITS:
            if self.done[unit] != self.started[unit]:
                raise ProtocolViolation(
                    f"trace: rule 2: {unit.name} started {self.started[unit]}, finished {self.done[unit]}"
                )
