"""A counter for loops."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value


class DownCounter:
    """Counts from a number down to one; that it has come to its last round stands in a register of its own.

    So nobody who looks at `last` waits for a comparison. Driven by the module that owns it.
    """

    def __init__(self, bits: int, name: str) -> None:
        self._left = Signal(bits, name=f"{name}_left", reset_less=True)
        self.last = Signal(name=f"{name}_last")

    def load(self, m: Module, count: Value) -> None:
        """Begin `count` rounds, at least one."""
        m.d.sync += [self._left.eq(count), self.last.eq(count == 1)]

    def step(self, m: Module) -> None:
        """Go on to the next round; there must be one."""
        m.d.sync += [self._left.eq(self._left - 1), self.last.eq(self._left == 2)]
