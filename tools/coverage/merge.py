"""Points of several designs that are of the same source: reached in one design, they are covered."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tools.coverage.constants import ANY, constant_bits
from tools.coverage.counts import Point
from tools.netlist import Module, Names, modules, path_of

_ENCODED = re.compile(r"__0([0-9a-fA-F]{2})")
_RISES = "0->1"
_CONDITIONS = {
    **dict.fromkeys(("if", "else"), re.compile(r"if \((!?)(\\\S+|\w+) ?(?:\[(\d+)\])? ?\)")),
    **dict.fromkeys(("cond_then", "cond_else"), re.compile(r"= (!?)(\\\S+|\w+) ?(?:\[(\d+)\])? +\?")),
}
"""A condition that is one bit, inverted or not, in the line of a branch of this name."""
_BIT = re.compile(r"(.*?)((?:\[\d+\])*(?::.*)?)")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Design:
    """What was reached of one hardware."""

    name: str
    verilog: str
    counts: Mapping[Point, int]


@dataclass
class SharedPoint:
    """A point with the design in which it was found first."""

    module: str
    kind: str
    name: str
    """The signal's bit of a toggle, as in the Verilog; the branch of a branch."""
    text: str
    """The line of the Verilog."""
    where: str
    """Design and line."""
    count: int = 0
    """In all designs."""
    constant: bool = False
    """No design can reach it: the bit, or the condition of the branch, has one value in each."""


class _Identities:
    """What a module's lines and signals are called in every design."""

    def __init__(self, module: Module) -> None:
        self._module, self._names = module, Names(module, widths=False)

    @cached_property
    def _firsts(self) -> list[int]:
        return [item.first for item in self._module.items]

    @cached_property
    def _statements(self) -> list[str]:
        return _different(map(self._names.describe, self._module.items))

    @cached_property
    def _signals(self) -> dict[str, str]:
        declared = [*self._module.declared]
        return dict(zip(declared, _different(map(self._names.label, declared)), strict=True))

    def statement(self, line: int) -> str:
        """The statement of a line, and which of its lines that is."""
        number = bisect_right(self._firsts, line) - 1
        item = self._module.items[number]
        return f"{self._statements[self._module.caller(number)]} line {line - item.first}"

    def signal(self, name: str) -> str:
        """A signal; one without a name of its own by what drives it."""
        return self._signals.get(name) or self._signals.get(f"\\{name}", name)


def _different(texts: Iterable[str]) -> list[str]:
    """The texts with the number of equal ones before."""
    seen: Counter[str] = Counter()
    found = []
    for text in texts:
        found.append(f"{text} {seen[text]}")
        seen[text] += 1
    return found


def decoded(name: str) -> tuple[str, str]:
    """A signal and the bit and direction behind it, from Verilator's name of a toggle."""
    match = _BIT.fullmatch(name)
    assert match is not None
    return _ENCODED.sub(lambda code: chr(int(code[1], 16)), match[1]), match[2]


def _index(bit: str) -> int:
    """The number of a bit; an entry of a memory, with two, is no net."""
    numbers = [int(n) for n in re.findall(r"\[(\d+)\]", bit)]
    return {0: 0, 1: numbers[0] if numbers else 0}.get(len(numbers), -1)


def _value(words: Mapping[str, str], net: str, index: int) -> str:
    """The value that a bit always has, or `ANY`."""
    word = words.get(net, "")
    return word[index] if 0 <= index < len(word) else ANY


def _never_taken(name: str, text: str, words: Mapping[str, str], within: str) -> bool:
    """Whether the condition of a branch always has the value for the other one."""
    condition = _CONDITIONS[name].search(text) if name in _CONDITIONS else None
    if condition is None:
        return False
    inverted, net, index = condition.groups()
    value = _value(words, within + net.removeprefix("\\"), int(index or 0))
    holds = (value == "1") != bool(inverted)
    return value != ANY and holds != (name in ("if", "cond_then"))


def _identified(design: Design) -> Iterator[tuple[Key, SharedPoint]]:
    lines = design.verilog.splitlines()
    identities = {path: _Identities(module) for path, module in modules(design.verilog).items()}
    words = constant_bits(design.verilog)
    for point, count in design.counts.items():
        path, name = path_of(point.module), point.name
        text, where = lines[point.line - 1].strip(), f"{design.name}:{point.line}"
        within = "".join(f"{part}." for part in point.module.split(".")[1:])
        if point.kind == "toggle":
            signal, bit = decoded(name)
            name, identity = f"{signal}{bit}", identities[path].signal(signal) + bit
            constant = _value(words, within + signal, _index(bit)) != ANY
        else:
            identity = f"{identities[path].statement(point.line)} {name}"
            constant = point.kind == "branch" and _never_taken(name, text, words, within)
        # A bit that is 1 rises once, when the simulation begins.
        if constant and count and not name.endswith(_RISES):
            raise ValueError(f"{within}{name} of {where} is counted {count} times, and the netlist has one value")
        counted = 0 if constant else count
        yield (path, point.kind, identity), SharedPoint(path, point.kind, name, text, where, counted, constant)


def merged(designs: Iterable[Design]) -> list[SharedPoint]:
    """The points of all designs, each once."""
    points: dict[Key, SharedPoint] = {}
    for design in designs:
        for key, point in _identified(design):
            if key in points:
                points[key].count += point.count
                points[key].constant &= point.constant
            else:
                points[key] = point
    return [points[key] for key in sorted(points)]
