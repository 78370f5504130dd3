"""Statements of generated Verilog, described without the numbers that Amaranth and Yosys give to what has no name.

`$12`, `$procmux$349_Y` and the 7 of `valid$7` change when another part of the design changes. A net with such a name is
described by the statement that drives it, so that statements of two designs can be compared.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

_HEAD = re.compile(r"^module (\S+?) ?\(")
_PATH_NUMBER = re.compile(r"\$\d+$")
_TOKEN = re.compile(r"(\\\S+ |(?<![\w'\\$.])[A-Za-z_]\w*)")
_NUMBERED = re.compile(r"\\\$.*|_\d+_|procmux_\d+|\\.*\$\d+|\\npu\..*")
_NUMBER = re.compile(r"\$\d.*|\d+")
_WIDTH = re.compile(r"\d+'h0*|\[[\d:]+\]|\d+'b\?+")
_DECLARED = re.compile(r"(?:input|output|wire|reg)\b(?: \[[\d:]+\])? (\\\S+|\w+)")
_CONNECTION = re.compile(r"\.(\\\S+ |\w+)\(([^()]*)\)")
_INDEX = re.compile(r"\[[^\]]*\]")
_DECLARATIONS = ("input", "output", "wire", "reg")
_STATEMENTS = ("assign", "always", "function", "initial", "final")
_ROUNDS = 3
"""Statements between a register without a name and what its description looks at."""


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


@dataclass
class Item:
    """A declaration, a statement or an instance."""

    first: int
    """Number of its first line."""
    lines: list[str]

    @cached_property
    def text(self) -> str:
        """Its lines as one."""
        return " ".join(line.strip() for line in self.lines) + " "

    @cached_property
    def tokens(self) -> list[str]:
        """Its text; every second part is a name."""
        return _TOKEN.split(self.text)

    @cached_property
    def word(self) -> str:
        """What it starts with."""
        return self.lines[0].split(maxsplit=1)[0]

    def driven(self) -> Iterator[str]:
        """Names on the left side of its assignments."""
        operator, begin = ("<=", ")") if self.word == "always" else ("=", "assign")
        for part in self.text.split(";") if self.word in ("assign", "always") else ():
            left, equals, _ = part.partition(f" {operator} ")
            target = _INDEX.sub("", left.rpartition(f"{begin} ")[2]) if equals else ""
            yield from (name.strip() for name in _TOKEN.findall(f"{target} "))


@dataclass
class Module:
    """A module with its items."""

    path: str
    """The path of instances, without numbers."""
    items: list[Item] = field(default_factory=list)

    def caller(self, number: int) -> int:
        """The number of an item; of a function, that of the statement that calls it."""
        if self.items[number].word != "function":
            return number
        call = f" {self.items[number].lines[0].split()[2]} ("
        return next(n for n, item in enumerate(self.items) if n != number and call in item.text)

    @cached_property
    def declared(self) -> dict[str, Item]:
        """The last declaration of each name: that of a port says what it is as a net."""
        found = ((_DECLARED.match(item.text), item) for item in self.items if item.word in _DECLARATIONS)
        return {match[1]: item for match, item in found if match}

    @cached_property
    def _drivers(self) -> dict[str, list[Item]]:
        drivers = defaultdict(list)
        for item in self.items:
            for name in item.driven():
                drivers[name].append(item)
        for item in self.items:
            if item.word not in (*_STATEMENTS, *_DECLARATIONS):
                for _, net in _CONNECTION.findall(item.text):
                    drivers[net.strip()] = drivers[net.strip()] or [item]
        return drivers

    @cached_property
    def exactly(self) -> str:
        """A hash of all that the module does."""
        names = Names(self)
        return _digest(sorted(names.describe(item) for item in self.items))


class Names:
    """Descriptions of a module's statements and nets; without `widths` they are equal for words of different widths."""

    def __init__(self, module: Module, *, widths: bool = True) -> None:
        self._module, self._widths = module, widths
        self._registers: dict[str, str] = {}
        numbered = [n for n, drivers in module._drivers.items() if _NUMBERED.fullmatch(n) and _is_register(drivers)]
        for _ in range(_ROUNDS):
            self._labels: dict[str, str] = {}
            self._registers = {n: _digest(map(self.describe, module._drivers[n])) for n in numbered}
        self._labels = {}

    def describe(self, item: Item) -> str:
        """A statement with descriptions instead of numbers."""
        own = {*item.driven()}
        parts = []
        for number, part in enumerate(item.tokens):
            name = part.strip()
            if number % 2 == 0:
                parts.append(part if self._widths else _WIDTH.sub("", part))
            else:
                parts.append("@" if name in own and _NUMBERED.fullmatch(name) else self.label(name))
        return " ".join(parts)

    def label(self, name: str) -> str:
        """A net's own name, or what drives it."""
        if not _NUMBERED.fullmatch(name):
            return name
        if name not in self._labels:
            # A net may depend on other bits of itself.
            self._labels[name] = _unnumbered(name)
            self._labels[name] += self._driver(name)
        return self._labels[name]

    def _driver(self, name: str) -> str:
        drivers = self._module._drivers.get(name, [])
        if _is_register(drivers) or not drivers:
            declared = self._module.declared.get(name)
            width = _DECLARED.sub("", declared.text) if declared is not None and self._widths else ""
            return f" {self._registers.get(name, width)}"
        if drivers[0].word == "assign":
            return f" {_digest(map(self.describe, drivers))}"
        instance = drivers[0].text.split()[1]
        connections = _CONNECTION.findall(drivers[0].text)
        return f" {instance} {sorted(_unnumbered(port.strip()) for port, net in connections if net.strip() == name)}"


def _unnumbered(name: str) -> str:
    """A name without numbers that depend on other parts of the design; of a module, without its path."""
    return _NUMBER.sub("#", name.rpartition(".")[2]) if _NUMBERED.fullmatch(name) else name


def _is_register(drivers: list[Item]) -> bool:
    return bool(drivers) and drivers[0].word == "always"


def path_of(name: str) -> str:
    """A module's path, from its name in the Verilog."""
    return _PATH_NUMBER.sub("", name.removeprefix("\\"))


def modules(verilog: str) -> dict[str, Module]:
    """The modules of a design by path; both forms of one with two."""
    found: dict[str, Module] = {}
    module: Module | None = None
    for number, line in enumerate(verilog.splitlines(), 1):
        if head := _HEAD.match(line):
            module = found.setdefault(path_of(head[1]), Module(path_of(head[1])))
        elif line == "endmodule":
            module = None
        elif module is not None and line.startswith("  ") and not line.startswith("  (*"):
            if line[2] == " " or line.split()[0] in (");", "end", "endfunction"):
                module.items[-1].lines.append(line)
            else:
                module.items.append(Item(number, [line]))
    return found
