"""Pipeline registers: a value N cycles later, and a reset-less output register for a port."""

from __future__ import annotations

from typing import Any, TypeVar

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

_Shaped = TypeVar("_Shaped", Value, "data.View[data.StructLayout]")


def pipeline_stages(m: Module, name: str, value: _Shaped, cycles: int, *, reset_less: bool) -> _Shaped:
    """Delay `value` by `cycles` pipeline registers, called `name1`, `name2` and so on; 0 cycles return `value` itself.

    Pass `reset_less=False` for `valid` bits and events, True for payload that such a bit qualifies.
    """
    for number in range(1, cycles + 1):
        stage = Signal.like(value, name=f"{name}{number}", reset_less=reset_less)
        m.d.sync += stage.eq(value)
        value = stage
    return value


def output_register(m: Module, port: Any, name: str = "register") -> Any:
    """Create the output register of a data port, without a reset, and drive the port from it.

    Assigning `m.d.sync += port.eq(...)` would make the port itself a register, which has a reset.
    """
    register = Signal.like(port, name=name, reset_less=True)
    m.d.comb += port.eq(register)
    return register
