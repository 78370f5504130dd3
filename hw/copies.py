"""Registers whose value is wanted in places far apart: each place gets its own, next to it."""

from __future__ import annotations

from amaranth.hdl import Module, Signal

COPY = "register_copy"
"""Attribute of registers that are alike on purpose: `hw.fpga` keeps Yosys from making one of them."""


def copy_of(m: Module, name: str, value: Signal) -> Signal:
    """The value, a cycle later, in a register for those who are near to it."""
    copy = Signal.like(value, name=name, attrs={COPY: 1}, reset_less=True)
    m.d.sync += copy.eq(value)
    return copy
