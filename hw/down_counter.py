"""A loadable loop counter with a registered terminal count."""

from amaranth.hdl import Module, Signal, Value


class DownCounter:
    """Counts iterations down to 1; `last` is high during the last iteration.

    `last` is a register: the comparison is made one step ahead, so it adds no logic to the path that reads the flag.
    The owner calls `load` and `step` in its own module; at most one of the two in a cycle.
    """

    def __init__(self, bits: int, name: str) -> None:
        self._left = Signal(bits, name=f"{name}_left", reset_less=True)
        self.last = Signal(name=f"{name}_last")

    def load(self, m: Module, count: Value) -> None:
        """Load `count` iterations, at least 1; `last` is valid from the next cycle on."""
        m.d.sync += [self._left.eq(count), self.last.eq(count == 1)]

    def step(self, m: Module) -> None:
        """Go to the next iteration. Not allowed while `last` is high."""
        m.d.sync += [self._left.eq(self._left - 1), self.last.eq(self._left == 2)]
