"""How often the clock of each gated component ticked: each gate counts and prints its edges at the end."""

import re
from collections.abc import Mapping

COUNT_FLAG = "-DINTLOOM_CLOCK_GATE_COUNT"
"""Verilator's flag with which gates count."""
_CLOCK = re.compile(r"^clock \S*?(\w+)_gate (\d+)$", re.MULTILINE)


def clock_edges(log: str) -> dict[str, int]:
    """Clock edges of each gated component, from a simulator's log; empty where clocks are not gated."""
    return {name: int(edges) for name, edges in _CLOCK.findall(log)}


def stopped_shares(edges: Mapping[str, int], cycles: int) -> dict[str, float]:
    """Share of the cycles in which each component's clock was stopped, 0 to 1."""
    return {name: max(0.0, 1 - count / cycles) if cycles else 0.0 for name, count in edges.items()}
