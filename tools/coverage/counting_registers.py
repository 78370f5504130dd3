"""Registers that count or add up: loop counters, levels, credits, addresses, indices, sums.

They are found in the elaborated RTL: registers of at least 2 bits that take a sum or difference with their own value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from amaranth.hdl import Fragment, Signal, Value
from amaranth.hdl._ast import Assign, Concat, Operator, Part, Slice, Statement, Switch, SwitchValue
from amaranth.lib import wiring

from intloom.hw.npu import Npu
from intloom.hw.spec.params import PRESETS
from tests.sim.random_programs.extremes import WIDE
from tools.components import name_of

_PREFIX = "intloom.hw."
_SUMS = ("+", "-")
_SELECTED = ("+", "-", "~", "&", "|", "^", "u", "s", "<<", ">>")
"""Operators through which a value reaches the result; a comparison passes none of its operands on."""
_NUMBERED = re.compile(r"\d+")
Bits = tuple[int, int, int]
"""A signal's identity, and the first and last bit of the part that an assignment writes."""


@dataclass(frozen=True)
class CountingRegister:
    """A register, or a field of one."""

    component: str
    """The component that contains it."""
    name: str
    """The signal's name, `*` for its numbers; numbers of parts, if only parts count, and of equal names.

    Neither depends on a width.
    """
    top: Value
    """The highest bit."""

    @property
    def key(self) -> str:
        """The name of all registers of this kind."""
        return f"{self.component} {self.name}"


@dataclass(frozen=True)
class _Driver:
    target: Slice | Signal
    value: Value


def _targets(target: Value) -> Iterator[Slice | Signal]:
    """The parts of signals that an assignment with one whole target writes."""
    if isinstance(target, Signal) or (isinstance(target, Slice) and isinstance(target.value, Signal)):
        yield target
    elif isinstance(target, Operator) and target.operator in ("u", "s"):
        yield from _targets(target.operands[0])


def _assignments(statements: Iterable[Statement]) -> Iterator[_Driver]:
    for statement in statements:
        if isinstance(statement, Assign):
            yield from (_Driver(target, statement.rhs) for target in _targets(statement.lhs))
        elif isinstance(statement, Switch):
            for _, inner, _ in statement.cases:
                yield from _assignments(inner)


def _bits(value: Slice | Signal) -> Bits:
    if isinstance(value, Signal):
        return id(value), 0, len(value)
    return id(value.value), value.start, value.stop


def _overlap(one: Bits, other: Bits) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


class _Module:
    """The statements of one module."""

    def __init__(self, fragment: Fragment) -> None:
        self.registers: list[_Driver] = []
        self._wires: dict[int, list[_Driver]] = defaultdict(list)
        for domain, statements in fragment.statements.items():
            for driver in _assignments(statements):
                if domain == "comb":
                    self._wires[_bits(driver.target)[0]].append(driver)
                else:
                    self.registers.append(driver)

    def counts(self, driver: _Driver) -> bool:
        """Whether the value is a sum or difference with the target's own value."""
        return self._reaches(driver.value, _bits(driver.target), False, set())

    def _reaches(self, value: Value, target: Bits, in_sum: bool, seen: set[tuple[Bits, bool]]) -> bool:
        if isinstance(value, Signal) or (isinstance(value, Slice) and isinstance(value.value, Signal)):
            bits = _bits(value)
            if in_sum and _overlap(bits, target):
                return True
            if (bits, in_sum) in seen:
                return False
            seen.add((bits, in_sum))
            drivers = (d for d in self._wires[bits[0]] if _overlap(_bits(d.target), bits))
            return any(self._reaches(d.value, target, in_sum, seen) for d in drivers)
        inner = in_sum or (isinstance(value, Operator) and value.operator in _SUMS and len(value.operands) == 2)
        return any(self._reaches(part, target, inner, seen) for part in _parts(value))


def _parts(value: Value) -> Iterator[Value]:
    """The values that reach a value."""
    if isinstance(value, Operator) and value.operator in _SELECTED:
        yield from value.operands
    elif isinstance(value, SwitchValue):
        yield from (case for _, case in value.cases)
    elif isinstance(value, Concat):
        yield from value.parts
    elif isinstance(value, (Slice, Part)):
        yield value.value


def counting_registers(design: Any) -> list[CountingRegister]:
    """All counting registers of a design and its submodules."""
    return [*_below(Fragment.get(design, None), "")]


def _below(fragment: Fragment, component: str) -> Iterator[CountingRegister]:
    for origin in getattr(fragment, "origins", None) or ():
        if isinstance(origin, wiring.Component) and type(origin).__module__.startswith(_PREFIX):
            component = name_of(type(origin))
    if component:
        yield from _of_module(_Module(fragment), component)
    for inner, _, _ in fragment.subfragments:
        yield from _below(inner, component)


def _of_module(module: _Module, component: str) -> Iterator[CountingRegister]:
    names: dict[str, dict[int, list[Bits]]] = defaultdict(dict)
    for driver in module.registers:
        bits = _bits(driver.target)
        signal = driver.target if isinstance(driver.target, Signal) else driver.target.value
        of_name = names[signal.name]
        if len(driver.target) < 2 or bits in of_name.get(bits[0], ()) or not module.counts(driver):
            continue
        of_name.setdefault(bits[0], []).append(bits)
        number = f" {len(of_name)}" if len(of_name) > 1 else ""
        part = "" if len(signal) == len(driver.target) else f" part {len(of_name[bits[0]])}"
        yield CountingRegister(component, _NUMBERED.sub("*", signal.name) + number + part, signal[bits[2] - 1])


@cache
def all_keys() -> frozenset[str]:
    """The registers of the accelerator, on small and large hardware, and with all parts."""
    shapes = [replace(shape, clock_gating=False) for shape in (PRESETS["nano"], PRESETS["base"], WIDE)]
    return frozenset(register.key for shape in shapes for register in counting_registers(Npu(shape)))
