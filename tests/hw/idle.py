"""Clock enables: without work, registers keep their values whatever the other inputs are.

Such registers hold no valid data, so that a bench which compares results does not see an enable that is stuck at 1.
"""

import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

from amaranth.hdl import Cat, Const, Fragment, Signal, Value
from amaranth.hdl._ast import Assign, SignalSet
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring

from intloom.hw.clock_gate import ClockEnable
from tests.hw.streams import run, set_together

_ROUNDS, _BUSY_CYCLES, _IDLE_CYCLES = 5, 30, 15


def check_idle(component: wiring.Component, rng: random.Random, *work: str) -> None:
    """Registers with an enable, and those of memories, keep their values once all pipelines have settled.

    Parameters
    ----------
    component
        The component, not elaborated yet.
    rng
        Chooses all inputs.
    work
        Inputs that say that there is work, by their names in Verilog: all are 0 while there is none.
    """
    fragment = Fragment.get(component, None)
    registers = [*_enabled(fragment)]
    inputs = {
        "__".join(map(str, path)): Value.cast(value)
        for path, member, value in component.signature.flatten(component)
        if member.flow is wiring.In
    }
    assert registers and {*work} <= {*inputs}

    async def bench(ctx: Any) -> None:
        async def cycles(count: int, *idle: str) -> AsyncIterator[list[int]]:
            """The registers after each cycle."""
            for _ in range(count):
                values = [0 if name in idle else _any_size(rng, len(value)) for name, value in inputs.items()]
                set_together(ctx, Cat(inputs.values()), values)
                await ctx.tick()
                yield [ctx.get(register) for register in registers]

        for _ in range(_ROUNDS):
            async for _values in cycles(_BUSY_CYCLES):
                pass
            async for values in cycles(ClockEnable.SETTLE, *work):
                before = values
            async for values in cycles(_IDLE_CYCLES, *work):
                changed = [r.name for r, old, new in zip(registers, before, values, strict=True) if old != new]
                assert not changed, f"without work these registers change: {changed}"

    run(fragment, bench)


def _any_size(rng: random.Random, bits: int) -> int:
    """A number that is often small: addresses are inside a memory and meet."""
    return rng.getrandbits(rng.choice((bits, min(bits, 3))))


def _enabled(fragment: Fragment) -> Iterator[Signal]:
    """Registers that are assigned under a condition only, and the outputs of memories with a read enable."""
    always, conditional = SignalSet(), SignalSet()
    for statement in fragment.statements.get("sync", ()):
        (always if isinstance(statement, Assign) else conditional).update(statement._lhs_signals())
    yield from (register for register in conditional if register not in always)
    for inner, _name, _location in fragment.subfragments:
        if isinstance(inner, MemoryInstance):
            ports = (port for port in inner._read_ports if port._domain == "sync" and not isinstance(port._en, Const))
            yield from (port._data for port in ports)
        else:
            yield from _enabled(inner)
