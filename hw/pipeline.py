"""Registers of data: values some cycles later, and what stands behind a port."""

from __future__ import annotations

from typing import Any, TypeVar

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

_Shaped = TypeVar("_Shaped", Value, "data.View[data.StructLayout]")


def pipeline_stages(m: Module, name: str, value: _Shaped, cycles: int, *, reset_less: bool) -> _Shaped:
    """The value, so many cycles later, in registers `name1` and on; what counts as an event must be reset."""
    for number in range(1, cycles + 1):
        after = Signal.like(value, name=f"{name}{number}", reset_less=reset_less)
        m.d.sync += after.eq(value)
        value = after
    return value


def output_register(m: Module, port: Any, name: str = "register") -> Any:
    """The register behind a port of plain data, which no reset need reach: a port's own register would have one."""
    register = Signal.like(port, name=name, reset_less=True)
    m.d.comb += port.eq(register)
    return register
