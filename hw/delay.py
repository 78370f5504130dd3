"""Registers of data: values some cycles later, and what stands behind a port."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value


def delayed(m: Module, name: str, value: Value, cycles: int, *, reset_less: bool) -> Value:
    """The value, so many cycles later, in registers `name1` and on; what counts as an event must be reset."""
    for number in range(1, cycles + 1):
        after = Signal.like(value, name=f"{name}{number}", reset_less=reset_less)
        m.d.sync += after.eq(value)
        value = after
    return value


def behind(m: Module, port: Any) -> Any:
    """The register behind a port of plain data, which no reset need reach: a port's own register would have one."""
    register = Signal.like(port, name="register", reset_less=True)
    m.d.comb += port.eq(register)
    return register
