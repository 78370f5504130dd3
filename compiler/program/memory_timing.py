"""Latency and bandwidth of the memory that a schedule is made for and a forecast assumes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """Latency and bandwidth of the memory; the defaults are those of a run."""

    read_latency: int = 100
    """Cycles from a read request to its first beat."""
    write_latency: int = 20
    """Cycles from a burst's last beat to its response."""
    bandwidth: float = 1.0
    """Beats per cycle, reads and writes together; 0: one beat per cycle in each direction."""

    @property
    def words_per_cycle(self) -> float:
        """Words per cycle, reads and writes together."""
        return min(self.bandwidth, 2.0) if self.bandwidth > 0 else 2.0
