"""A component in a bench: what it requires of its inputs, and when its outputs count."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import data, wiring

Ports = dict[str, Value]
Condition = Callable[[Module, Ports], Value]
"""A bit, and what it needs in a module with the component; ports have the names of its members."""
Pairs = Mapping[str, str | Condition]
"""Ports whose value counts only under a condition, or while another port is high, or never in this proof."""
Requirement = Callable[[Module, Ports], None]
"""Drives inputs of the component, from others that take their names."""
UNSEEN = ""


def delayed(m: Module, name: str, value: Value, cycles: int) -> Value:
    """The value so many cycles before; 0 in those after the reset."""
    for number in range(cycles):
        later = Signal(name=f"{name}_before{number}")
        m.d.sync += later.eq(value)
        value = later
    return value


def any_of(name: str, layout: data.StructLayout, *fields: str) -> Condition:
    """These fields of the port are not all 0."""

    def condition(_: Module, ports: Ports) -> Value:
        return Cat(ports[name][layout[f].offset :][: layout[f].width] for f in fields).any()

    return condition


@dataclass(frozen=True)
class After:
    """So many cycles after all these ports were high; of none, after the reset."""

    cycles: int
    names: tuple[str, ...] = ()

    def __call__(self, m: Module, ports: Ports) -> Value:
        """Delay the ports."""
        value: Value = Const(1)
        for name in self.names:
            value &= ports[name].any()
        return delayed(m, "_".join(self.names), value, self.cycles)


@dataclass(frozen=True)
class Steady:
    """The port has not changed for so many cycles."""

    cycles: int
    name: str

    def __call__(self, m: Module, ports: Ports) -> Value:
        """Compare the port with its value before, of which nothing is known in the first cycle."""
        before, begun = Signal.like(ports[self.name], name=f"{self.name}_before"), Signal(name="begun")
        m.d.sync += [begun.eq(1), before.eq(ports[self.name])]
        same, value = begun & (ports[self.name] == before), Const(1)
        for number in range(self.cycles):
            value &= delayed(m, f"same{number}", same, number)
        return value


def once(name: str) -> Condition:
    """The port was high in a cycle before."""

    def condition(m: Module, ports: Ports) -> Value:
        seen = Signal(name=f"{name}_seen")
        m.d.sync += seen.eq(seen | ports[name].any())
        return seen

    return condition


def only(name: str, condition: Condition) -> Requirement:
    """The input is high only where the condition holds."""

    def requirement(m: Module, ports: Ports) -> None:
        asked = Signal.like(ports[name], name=f"{name}_asked")
        m.d.comb += ports[name].eq(Mux(condition(m, ports), asked, 0))
        ports[name] = asked

    return requirement


def registered(name: str) -> Requirement:
    """A register with a reset drives the input."""

    def requirement(m: Module, ports: Ports) -> None:
        before = Signal.like(ports[name], name=f"{name}_before")
        m.d.sync += ports[name].eq(before)
        ports[name] = before

    return requirement


def shifted(name: str) -> Requirement:
    """Each bit of the input follows the one below it by a cycle."""

    def requirement(m: Module, ports: Ports) -> None:
        first, later = Signal(name=f"{name}_first"), Signal(len(ports[name]) - 1, name=f"{name}_later")
        m.d.comb += ports[name].eq(Cat(first, later))
        m.d.sync += later.eq(Cat(first, later))
        ports[name] = first

    return requirement


def held(name: str) -> Requirement:
    """An offer of the stream stays until it is taken."""

    def requirement(m: Module, ports: Ports) -> None:
        valid, payload, ready = (f"{name}__{member}" for member in ("valid", "payload", "ready"))
        asked, offered = Signal(name=f"{name}_asked"), Signal.like(ports[payload], name=f"{name}_offered")
        waits, kept = Signal(name=f"{name}_waits"), Signal.like(ports[payload], name=f"{name}_kept")
        m.d.comb += [ports[valid].eq(asked | waits), ports[payload].eq(Mux(waits, kept, offered))]
        m.d.sync += [waits.eq(ports[valid] & ~ports[ready]), kept.eq(Mux(ports[valid], ports[payload], 0))]
        ports[valid], ports[payload] = asked, offered

    return requirement


class Bench:
    """The component in a module, with an output for each condition."""

    def __init__(self, component: wiring.Component, pairs: Pairs, required: Collection[Requirement] = ()) -> None:
        self.ports: Ports = {}
        self._inputs = set()
        for path, member, value in component.signature.flatten(component):
            name = "__".join(map(str, path))
            self.ports[name] = Value.cast(value)
            if member.flow is wiring.In:
                self._inputs.add(name)
        self._pairs = {name: pair for name, pair in pairs.items() if isinstance(pair, str)}
        conditions = {n: pair for n, pair in pairs.items() if not isinstance(pair, str) and n in self.ports}
        self.module: Elaboratable = component
        if required or conditions:
            self.module = module = Module()
            module.submodules.component = component
            for requirement in required:
                requirement(module, self.ports)
            for name, condition in conditions.items():
                counts = Signal(name=f"{name}__counts")
                module.d.comb += counts.eq(condition(module, self.ports))
                self._pairs[name], self.ports[counts.name] = counts.name, counts

    @property
    def directed(self) -> dict[str, tuple[Value, PortDirection]]:
        """Each port with its direction."""
        directions = {True: PortDirection.Input, False: PortDirection.Output}
        return {name: (value, directions[name in self._inputs]) for name, value in self.ports.items()}

    @property
    def unseen(self) -> set[str]:
        """Ports that are not compared."""
        return {name for name, valid in self._pairs.items() if valid == UNSEEN}

    @property
    def valids(self) -> dict[str, str]:
        """The ports whose value counts only while another one is high, payloads of streams among them, and this one."""
        return {name: valid for name, valid in self._all_pairs() if {name, valid} <= self.ports.keys()}

    def _all_pairs(self) -> Iterator[tuple[str, str]]:
        for name in self.ports:
            if name.endswith("__payload"):
                yield name, name.removesuffix("payload") + "valid"
        yield from self._pairs.items()
