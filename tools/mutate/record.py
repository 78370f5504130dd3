"""Records the ports of a component, cycle by cycle, while its tests simulate it; a pytest plugin.

`pytest -p tools.mutate.record` with `MUTATE_COMPONENT=module:Class` and `MUTATE_RECORDS=folder` writes one file per
simulation, below a folder per netlist, since tests simulate a component with different parameters.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth import sim
from amaranth.back import rtlil
from amaranth.hdl import Cat, Const, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

COMPONENT = "MUTATE_COMPONENT"
RECORDS = "MUTATE_RECORDS"
TOP = "dut"
_WORD_BYTES = 4
_NETLISTS: dict[tuple[type[Any], str], str] = {}
"""By class and arguments that a component is made of: elaboration takes most of the time of a short simulation."""
_ADDRESS = " at 0x"
"""In the text of an argument without a text of its own."""


@dataclass(frozen=True)
class Port:
    """A port of the netlist."""

    name: str
    width: int
    is_input: bool

    @property
    def words(self) -> int:
        """32-bit words it takes in a record."""
        return -(-self.width // (8 * _WORD_BYTES))


def _members(component: wiring.Component) -> Iterator[tuple[Port, Value]]:
    for path, member, value in component.signature.flatten(component):
        signal = Value.cast(value)
        if len(signal):
            yield Port("__".join(map(str, path)), len(signal), member.flow is wiring.In), signal


def _remember_arguments(component: type[wiring.Component]) -> None:
    """Let every new component keep what it is made of."""
    create = component.__init__

    def create_and_remember(self: Any, *arguments: Any, **named: Any) -> None:
        self.made_of = (arguments, named)
        create(self, *arguments, **named)

    component.__init__ = create_and_remember


def _has_memory(value: Any) -> bool:
    return isinstance(value, Memory) or (isinstance(value, list | tuple) and any(_has_memory(v) for v in value))


def _netlist(component: Any) -> str:
    """The component's netlist; components of equal arguments have equal ones."""
    arguments = repr(component.made_of)
    if _ADDRESS in arguments:
        return _elaborated(component)
    key = type(component), arguments
    if key not in _NETLISTS:
        _NETLISTS[key] = _elaborated(component)
    return _NETLISTS[key]


def _elaborated(component: Any) -> str:
    # Amaranth elaborates a memory once only, so one that is an attribute needs a second component.
    if any(_has_memory(value) for value in vars(component).values()):
        arguments, named = component.made_of
        component = type(component)(*arguments, **named)
    text: str = rtlil.convert(component, name=TOP, emit_src=False)
    return text


class Recorder:
    """Makes simulators that write down what passes through the ports of one class of component."""

    def __init__(self, component: type[wiring.Component], folder: Path) -> None:
        _remember_arguments(component)
        self._component = component
        self._folder = folder
        self._numbers = itertools.count()
        self._simulator = sim.Simulator

    def simulator(self, toplevel: Any, **options: Any) -> sim.Simulator:
        """A simulator of `toplevel`, recording if it is the component itself."""
        if not isinstance(toplevel, self._component):
            return self._simulator(toplevel, **options)
        ports = list(_members(toplevel))
        netlist = _netlist(toplevel)
        simulator = self._simulator(toplevel, **options)
        folder = self._folder / hashlib.sha256(netlist.encode()).hexdigest()[:12]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{TOP}.il").write_text(netlist, encoding="utf-8")
        (folder / "ports").write_text(
            "".join(f"{p.name} {p.width} {p.is_input:d}\n" for p, _ in ports), encoding="utf-8"
        )
        path = folder / f"{os.getpid()}-{next(self._numbers)}.record"
        simulator.add_process(_process(path, ports))
        return simulator


def _process(path: Path, ports: list[tuple[Port, Value]]) -> Any:
    # One value with all ports: the simulator takes as long for it as for the sample of one port.
    sample = Cat(Cat(value, Const(0, 8 * _WORD_BYTES * port.words - port.width)) for port, value in ports)
    size = len(sample) // 8

    async def process(context: Any) -> None:
        # The simulation ends without ending this process, so nothing may be left in a buffer.
        with path.open("wb", buffering=0) as file:
            async for _edge, reset, values in context.tick().sample(sample):
                if reset:
                    break
                file.write(values.to_bytes(size, "little"))

    return process


def pytest_configure() -> None:
    """Replace the simulator by the recorder before tests import it."""
    module, _, name = os.environ[COMPONENT].partition(":")
    component = getattr(importlib.import_module(module), name)
    sim.Simulator = Recorder(component, Path(os.environ[RECORDS])).simulator
