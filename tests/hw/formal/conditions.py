"""A component in a bench: what it requires of its inputs, and when its outputs count."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar
from unittest.mock import patch

from amaranth.hdl import Cat, Const, Elaboratable, Fragment, Module, Mux, Signal, Value, ValueCastable
from amaranth.hdl._ir import PortDirection
from amaranth.lib import data, wiring

from tests.hw.formal.planted import with_locals

_Shared = TypeVar("_Shared")


class Ports(dict[str, Value]):
    """A component's ports by name, and what conditions remember of them."""

    def __init__(self, component: wiring.Component) -> None:
        super().__init__()
        self.component = component
        self.boxes: list[Ports] = []
        """Those of the components inside it that are boxes."""
        self._shared: dict[str, Any] = {}

    def shared(self, name: str, make: Callable[[], _Shared]) -> _Shared:
        """What has this name, made once for all conditions."""
        if name not in self._shared:
            self._shared[name] = make()
        result: _Shared = self._shared[name]
        return result

    def register(self, m: Module, name: str, following: Callable[[Signal], Value]) -> Signal:
        """The register of this name; 0 after the reset."""

        def make() -> Signal:
            register = Signal(name=name)
            m.d.sync += register.eq(following(register))
            return register

        return self.shared(name, make)


Condition = Callable[[Module, Ports], Value]
"""A bit, and what it needs in a module with the component; ports have the names of its members."""
Pairs = Mapping[str, str | Condition]
"""Ports whose value counts only under a condition, or while another port is high, or never in this proof.

Fields of a structure may count apart: `<port>__<field>`.
"""
UNSEEN = ""
SAME = "="
"""Of an input: it counts while another port, `<name>__same`, is high. Conditions say when that has to be."""


def delayed(m: Module, name: str, value: Value, cycles: int) -> Value:
    """The value so many cycles before; 0 in those after the reset."""
    for number in range(cycles):
        later = Signal(len(value), name=f"{name}_before{number}")
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
        return ports.register(m, f"{name}_seen", lambda seen: seen | ports[name].any())

    return condition


class Rule(Protocol):
    """What holds for ports of a component."""

    def drive(self, m: Module, ports: Ports) -> dict[str, Value]:
        """Let it hold: drive ports from others, which are returned under their names."""

    def holds(self, m: Module, ports: Ports) -> Value:
        """Whether it holds in this cycle."""


@dataclass(frozen=True)
class Only:
    """The port is high only where the condition holds; with another `idle`, it has another value only there."""

    name: str
    condition: Condition
    idle: int = 0

    def drive(self, m: Module, ports: Ports) -> dict[str, Value]:
        """Leave it idle elsewhere."""
        asked = Signal.like(ports[self.name], name=f"{self.name}_asked")
        m.d.comb += ports[self.name].eq(Mux(self.condition(m, ports), asked, self.idle))
        return {self.name: asked}

    def holds(self, m: Module, ports: Ports) -> Value:
        """Look at the port, and at the condition."""
        return (ports[self.name] == self.idle) | self.condition(m, ports)


@dataclass(frozen=True)
class Is:
    """The port is high where the condition holds, and only there."""

    name: str
    condition: Condition

    def drive(self, m: Module, ports: Ports) -> dict[str, Value]:
        """Drive it; nothing is left to ask for."""
        m.d.comb += ports[self.name].eq(self.condition(m, ports))
        return {self.name: Signal(name=f"{self.name}_unused")}

    def holds(self, m: Module, ports: Ports) -> Value:
        """Compare both."""
        return ports[self.name] == self.condition(m, ports)


@dataclass(frozen=True)
class Kept:
    """The port changes only where the condition holds."""

    name: str
    condition: Condition

    def drive(self, m: Module, ports: Ports) -> dict[str, Value]:
        """Repeat it elsewhere."""
        asked, before = Signal.like(ports[self.name], name=f"{self.name}_asked"), self._before(m, ports)
        m.d.comb += ports[self.name].eq(Mux(self.condition(m, ports), asked, before))
        return {self.name: asked}

    def holds(self, m: Module, ports: Ports) -> Value:
        """Compare it with the cycle before."""
        return (ports[self.name] == self._before(m, ports)) | self.condition(m, ports)

    def _before(self, m: Module, ports: Ports) -> Signal:
        before = Signal.like(ports[self.name], name=f"{self.name}_before", reset_less=True)
        m.d.sync += before.eq(ports[self.name])
        return before


@dataclass(frozen=True)
class Shifted:
    """Each bit of the port follows the one below it by a cycle."""

    name: str

    def drive(self, m: Module, ports: Ports) -> dict[str, Value]:
        """Drive the upper bits by registers."""
        first, later = Signal(name=f"{self.name}_first"), self._later(m, ports)
        m.d.comb += ports[self.name].eq(Cat(first, later))
        return {self.name: first}

    def holds(self, m: Module, ports: Ports) -> Value:
        """Compare the upper bits with the lower ones of the cycle before."""
        return ports[self.name][1:] == self._later(m, ports)

    def _later(self, m: Module, ports: Ports) -> Signal:
        later = Signal(len(ports[self.name]) - 1, name=f"{self.name}_later")
        m.d.sync += later.eq(ports[self.name])
        return later


@dataclass(frozen=True)
class Held:
    """An offer of the stream stays until it is taken."""

    name: str

    def drive(self, m: Module, ports: Ports) -> dict[str, Value]:
        """Repeat an offer that was not taken."""
        valid, payload, waits, kept = self._waiting(m, ports)
        asked, offered = Signal(name=f"{self.name}_asked"), Signal.like(kept, name=f"{self.name}_offered")
        m.d.comb += [ports[valid].eq(asked | waits), ports[payload].eq(Mux(waits, kept, offered))]
        return {valid: asked, payload: offered}

    def holds(self, m: Module, ports: Ports) -> Value:
        """Compare an offer with the one before that was not taken."""
        valid, payload, waits, kept = self._waiting(m, ports)
        return ~waits | (ports[valid] & (ports[payload] == kept))

    def _waiting(self, m: Module, ports: Ports) -> tuple[str, str, Signal, Signal]:
        valid, payload, ready = (f"{self.name}__{member}" for member in ("valid", "payload", "ready"))
        waits, kept = Signal(name=f"{self.name}_waits"), Signal.like(ports[payload], name=f"{self.name}_kept")
        m.d.sync += [waits.eq(ports[valid] & ~ports[ready]), kept.eq(Mux(ports[valid], ports[payload], 0))]
        return valid, payload, waits, kept


@dataclass(frozen=True)
class Entries:
    """Entries of a memory that are equal in both copies."""

    memory: str
    equal: Value
    """A bit for each entry."""


Lemma = tuple[Value, Value] | Entries | Value
"""A value, and a bit that tells when it counts; or a bit that is always high."""
Variables = Mapping[str, Mapping[str, Any]]
"""Local variables of a component's methods: signals, state machines and components inside it."""
Lemmas = Callable[[Module, Ports, Variables], Mapping[str, Lemma]]
"""Those of a component."""


def no_lemmas(_: Module, __: Ports, ___: Variables) -> Mapping[str, Lemma]:
    """A proof that needs none."""
    return {}


@dataclass(frozen=True)
class Rules:
    """What the proof of a component says of it."""

    pairs: Pairs
    required: Collection[Rule] = ()
    """What holds for its inputs."""
    promised: Collection[Rule] = ()
    """What holds for its outputs then."""
    lemmas: Lemmas = no_lemmas
    """What is proved of values inside it, so that the search for the rest is short."""
    cycles: int = 5
    """So many cycles in which the lemmas have held are enough for the next one."""
    merged: bool = True
    """Without lemmas: whether equal parts of both copies are merged before the search."""


Boxes = Mapping[type[wiring.Component], Rules]


class _Elaborated(Elaboratable):
    """A component that has been elaborated."""

    def __init__(self, fragment: Fragment) -> None:
        self._fragment = fragment

    def elaborate(self, platform: object) -> Fragment:
        """Return it."""
        return self._fragment


def _without(
    component: wiring.Component, kinds: Collection[type[wiring.Component]]
) -> tuple[Fragment, Variables, list[wiring.Component]]:
    """The component with nothing in those inside it that are of these classes, its variables, and these."""
    found: list[wiring.Component] = []

    def empty(self: wiring.Component, platform: object) -> Module:
        found.append(self)
        return Module()

    with ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(patch.object(kind, "elaborate", empty))
        module, variables = with_locals(component.elaborate, None)
        return Fragment.get(module, None), variables, found


def _fields(value: ValueCastable | Value) -> Collection[str]:
    """Those of a structure."""
    return (
        value.shape().members if isinstance(value, data.View) and isinstance(value.shape(), data.StructLayout) else ()
    )


class Bench:
    """The component in a module, with an output for each condition, and for each rule that must be proved.

    Components inside it that have a proof of their own may be boxes, of which only what that says is known: what they
    give is an input of the module, and what they get is an output.
    """

    def __init__(self, component: wiring.Component, rules: Rules, boxes: Boxes = MappingProxyType({})) -> None:
        self.ports: Ports = {}
        self.broken: set[str] = set()
        """Outputs that are high where a rule does not hold."""
        self.same: dict[str, str] = {}
        """Inputs that are high where an output is equal in both copies."""
        self._inputs: set[str] = set()
        self._pairs: dict[str, str] = {}
        self._driven: dict[str, str] = {}
        """Of a port that a rule drives, the output that has its value."""
        self.entries: dict[str, str] = {}
        """Of a memory the output with a bit for each of its entries that is equal."""
        self.lemmas: set[str] = set()
        """Outputs with the values that lemmas are about."""
        inside, variables, found = _without(component, boxes)
        self.module = Module()
        self.module.submodules.component = _Elaborated(inside)
        ports = self._add("", component, rules)
        for number, box in enumerate(found):
            ports.boxes.append(self._add(f"{type(box).__name__}{number}__", box, boxes[type(box)], is_box=True))
        for name, lemma in rules.lemmas(self.module, ports, variables).items():
            if isinstance(lemma, Value):
                self.broken.add(self._output(f"lemma_{name}", ~lemma))
            elif isinstance(lemma, Entries):
                self.entries[lemma.memory] = self._output(f"lemma_{name}", lemma.equal)
            else:
                value, counts = lemma
                self.lemmas.add(self._output(f"lemma_{name}", value))
                self._pairs[f"lemma_{name}"] = self._output(f"lemma_{name}__counts", counts)

    def _add(self, prefix: str, component: wiring.Component, rules: Rules, *, is_box: bool = False) -> Ports:
        ports = self._ports(prefix, component, rules.pairs, is_box)
        self._add_same(prefix, ports, rules.pairs, is_box)
        self.ports |= {prefix + name: value for name, value in ports.items()}
        # What a box requires is to be proved, and what it promises is known.
        driven, proved = (rules.promised, rules.required) if is_box else (rules.required, rules.promised)
        changed: dict[str, Value] = {}
        for rule in driven:
            added = rule.drive(self.module, ports)
            assert not changed.keys() & added.keys(), "two rules drive one port"
            changed |= added
        self.ports |= {prefix + name: value for name, value in changed.items()}
        for number, rule in enumerate(proved):
            self.broken.add(self._output(f"{prefix}broken{number}", ~rule.holds(self.module, ports)))
        for name, pair in rules.pairs.items():
            if name not in ports or pair == SAME:
                continue
            if isinstance(pair, str):
                self._pairs[prefix + name] = prefix + pair if pair else UNSEEN
            else:
                self._pairs[prefix + name] = self._output(f"{prefix}{name}__counts", pair(self.module, ports))
        # What a rule drives has given its name to what it is driven from.
        valids = {valid for _, valid in self._all_pairs()}
        for name in changed:
            if prefix + name in valids:
                self._driven[prefix + name] = self._output(f"{prefix}{name}_driven", ports[name])
        return ports

    def _ports(self, prefix: str, component: wiring.Component, pairs: Pairs, is_box: bool) -> Ports:
        """Each port by its name; of a structure whose fields count apart, each field."""
        ports = Ports(component)
        for path, member, value in component.signature.flatten(component):
            # A box may get a constant.
            if isinstance(value, Const):
                continue
            name, is_input = "__".join(map(str, path)), (member.flow is wiring.In) is not is_box
            fields = {f"{name}__{field}": Value.cast(value[field]) for field in _fields(value)}
            if pairs.keys() & fields.keys():
                for field, part in fields.items():
                    ports[field] = Signal(len(part), name=prefix + field)
                    self.module.d.comb += part.eq(ports[field]) if is_input else ports[field].eq(part)
            else:
                fields = {name: Value.cast(value)}
                ports |= fields
            if is_input:
                self._inputs |= {prefix + each for each in fields}
        return ports

    def _add_same(self, prefix: str, ports: Ports, pairs: Pairs, is_box: bool) -> None:
        for name in [name for name in ports if pairs.get(name) == SAME]:
            same = f"{name}__same"
            ports[same] = Signal(name=prefix + same)
            self._inputs.add(prefix + same)
            if is_box:
                self.same[prefix + same] = prefix + name
            else:
                self._pairs[name] = same

    def _output(self, name: str, value: Value) -> str:
        """A value of the module that others may see."""
        output = Signal(len(value), name=name)
        self.module.d.comb += output.eq(value)
        self.ports[name] = output
        return name

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
        pairs = ((name, self._driven.get(valid, valid)) for name, valid in self._all_pairs())
        return {name: valid for name, valid in pairs if {name, valid} <= self.ports.keys()}

    def _all_pairs(self) -> Iterator[tuple[str, str]]:
        for name in self.ports:
            if name.endswith("__payload"):
                yield name, name.removesuffix("payload") + "valid"
        yield from self._pairs.items()
