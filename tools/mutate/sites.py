"""Where a fault can be planted in an elaborated component: the bits of operands in assignments and conditions."""

import functools
import linecache
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import amaranth
from amaranth.hdl import Const, Fragment, Signal, Value
from amaranth.hdl._ast import Assign, Concat, Operator, Part, Slice, Switch, SwitchValue

import intloom.hw
from tools.mutate.targets import mutated

_FOLDERS = (Path(intloom.hw.__file__).parents[1], Path(amaranth.__file__).parents[1])
"""Packages with statements of a component; Amaranth makes those of connections."""
_STATE_FLAGS = "amaranth/hdl/_dsl.py"
"""Amaranth's own assignments: a flag for every state, which few designs read."""
INVERTED, STUCK_AT_0, STUCK_AT_1 = "inverted", "stuck at 0", "stuck at 1"
_LOW_BITS = frozenset(["+", "-", "*", "&", "|", "^", "~", "u", "s"])
"""Operators whose low result bits depend on the operands' low bits only."""
_BITWISE = _LOW_BITS - frozenset("+-*")
_TRANSPARENT = frozenset("us")
"""A fault in the operand is one in the result."""

Bits = tuple[int, int]
"""First bit, and the one after the last."""


@dataclass(frozen=True, order=True)
class Site:
    """An operand in a statement. A loop in the source makes many statements of one line."""

    file: str
    line: int
    statement: int
    """Number of the statement among those of this line."""
    operand: tuple[int, ...]
    """Number of the operand on every level of the expression."""


@dataclass(frozen=True)
class Extent:
    """What is known of a site in one elaboration."""

    bits: Bits
    constant: bool


@dataclass(frozen=True)
class Mutant:
    """A fault in one bit."""

    site: Site
    bit: int
    kind: str

    @property
    def _lines(self) -> list[str]:
        """The file up to the line."""
        paths = (str(folder / self.site.file) for folder in (*_FOLDERS, Path("/")))
        lines = next(filter(None, map(linecache.getlines, paths)), [])
        return [line.strip() for line in lines[: self.site.line]]

    @property
    def source(self) -> str:
        """The line of the source."""
        return self._lines[-1]

    @property
    def fault(self) -> str:
        """What is wrong, without the line's number: it stays the same when lines above are edited."""
        operand = ".".join(map(str, self.site.operand)) or "all"
        before = self._lines[:-1].count(self.source)
        again = f"line {before + 1} of this text, " if before else ""
        return f"{again}statement {self.site.statement}, operand {operand}, bit {self.bit} {self.kind}"

    def __str__(self) -> str:
        return f"{self.site.file}:{self.site.line}: {self.source}\n    {self.fault}"


def _operands(value: Any, bits: Bits) -> Iterator[tuple[Any, Bits]]:
    """The operands of an expression, each with its bits that can change `bits` of the result."""
    low, high = bits
    if _is_sign(value):
        signed = value.operands[0]
        yield signed, (len(signed) - 1, len(signed))
    elif isinstance(value, Operator):
        same = value.operator in _LOW_BITS
        first = low if value.operator in _BITWISE else 0
        for operand in value.operands:
            yield operand, (first, min(high, len(operand))) if same else (0, len(operand))
    elif isinstance(value, Slice):
        yield value.value, (value.start + low, value.start + high)
    elif isinstance(value, Part):
        yield value.value, (0, len(value.value))
        yield value.offset, (0, len(value.offset))
    elif isinstance(value, Concat):
        start = 0
        for part in value.parts:
            yield part, (max(0, low - start), min(len(part), high - start))
            start += len(part)
    elif isinstance(value, SwitchValue):
        yield value.test, (0, len(value.test))
        for _patterns, case in value.cases:
            yield case, (low, min(high, len(case)))


def _is_sign(value: Any) -> bool:
    """A comparison with 0 looks at the sign only."""
    return (
        isinstance(value, Operator)
        and value.operator in {"<", ">="}
        and isinstance(value.operands[1], Const)
        and value.operands[1].value == 0
    )


def _with_operand(value: Any, number: int, change: Callable[[Any], Value]) -> Any:
    """The expression with one operand changed."""
    operands = [change(o) if i == number else o for i, (o, _) in enumerate(_operands(value, (0, len(value))))]
    if _is_sign(value):
        return Operator(value.operator, [*operands, value.operands[1]])
    if isinstance(value, Operator):
        return Operator(value.operator, operands)
    if isinstance(value, Slice):
        return Slice(operands[0], value.start, value.stop)
    if isinstance(value, Part):
        return Part(*operands, value.width, value.stride)
    if isinstance(value, Concat):
        return Concat(operands)
    patterns = [patterns for patterns, _ in value.cases]
    return SwitchValue(operands[0], list(zip(patterns, operands[1:], strict=True)))


def _expressions(value: Any, bits: Bits, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Extent]]:
    if bits[0] >= bits[1]:
        return
    if not (isinstance(value, Operator) and value.operator in _TRANSPARENT):
        yield path, Extent(bits, isinstance(value, Const))
    for number, (operand, its_bits) in enumerate(_operands(value, bits)):
        # A fault in the signal of a slice is one in the slice.
        if not (isinstance(value, Slice) and isinstance(operand, Signal)):
            yield from _expressions(operand, its_bits, (*path, number))


def _statements(fragment: Fragment) -> Iterator[Any]:
    """Assignments and switches of a component, but not of components inside that have a bench of their own."""

    def nested(statements: Any) -> Iterator[Any]:
        for statement in statements:
            yield statement
            if isinstance(statement, Switch):
                for _patterns, inner, _location in statement.cases:
                    yield from nested(inner)

    classes = tuple(mutated().values())
    for statements in fragment.statements.values():
        yield from (s for s in nested(statements) if isinstance(s, Assign | Switch))
    for subfragment, _name, _location in fragment.subfragments:
        if not any(isinstance(origin, classes) for origin in subfragment.origins or ()):
            yield from _statements(subfragment)


@functools.cache
def _in_package(path: str) -> str:
    folder = next(f for f in (*_FOLDERS, Path("/")) if Path(path).is_relative_to(f))
    return str(Path(path).relative_to(folder))


def _located(fragment: Fragment) -> Iterator[tuple[tuple[str, int, int], Any]]:
    """Every statement with file, line, and its number among those of the line."""
    numbers: Counter[tuple[str, int]] = Counter()
    for statement in _statements(fragment):
        path, line = statement.src_loc
        location = _in_package(path), line
        if location[0] == _STATE_FLAGS:
            continue
        yield (*location, numbers[location]), statement
        numbers[location] += 1


def _value(statement: Any) -> tuple[Any, Bits]:
    if isinstance(statement, Switch):
        return statement.test, (0, len(statement.test))
    return statement.rhs, (0, min(len(statement.rhs), len(statement.lhs)))


def sites(fragment: Fragment) -> dict[Site, Extent]:
    """All sites of an elaborated component; faults in components inside that are mutated are not its own."""
    return {
        Site(*location, path): found
        for location, statement in _located(fragment)
        for path, found in _expressions(*_value(statement))
    }


def _faulty(value: Any, mutant: Mutant) -> Value:
    """The same value with a fault in one bit, of the same shape."""
    mask = 1 << mutant.bit
    bits: Value = value.as_unsigned()
    if mutant.kind == INVERTED:
        changed = bits ^ Const(mask, len(value))
    elif mutant.kind == STUCK_AT_1:
        changed = bits | Const(mask, len(value))
    else:
        changed = bits & Const(~mask & ((1 << len(value)) - 1), len(value))
    return changed.as_signed() if value.shape().signed else changed


def plant(fragment: Fragment, mutant: Mutant) -> bool:
    """Plant a fault; False if this elaboration does not have the site or the bit."""

    def change(value: Any, bits: Bits, path: tuple[int, ...]) -> Any:
        if not path:
            return _faulty(value, mutant)
        number, *rest = path
        its_bits = [b for _, b in _operands(value, bits)][number]
        return _with_operand(value, number, lambda operand: change(operand, its_bits, tuple(rest)))

    site = mutant.site
    for location, statement in _located(fragment):
        if location != (site.file, site.line, site.statement):
            continue
        value, bits = _value(statement)
        known = dict(_expressions(value, bits)).get(site.operand)
        if known is None or not known.bits[0] <= mutant.bit < known.bits[1]:
            return False
        name = "_test" if isinstance(statement, Switch) else "_rhs"
        setattr(statement, name, change(value, bits, site.operand))
        return True
    return False


def draw(found: Mapping[Site, Extent], count: int, seed: int) -> list[Mutant]:
    """Up to `count` different faults: every line of the source is as likely as the others, then every operand of it."""
    rng = random.Random(seed)
    lines: dict[tuple[str, int], dict[int, list[Site]]] = {}
    for site in sorted(found):
        lines.setdefault((site.file, site.line), {}).setdefault(site.statement, []).append(site)
    drawn: dict[Mutant, None] = {}
    for _ in range(10 * count * bool(lines)):
        if len(drawn) == count:
            break
        statements = lines[rng.choice(list(lines))]
        site = rng.choice(statements[rng.choice(list(statements))])
        bit = rng.randrange(*found[site].bits)
        # A constant that is stuck at its value has no fault.
        kinds: Collection[str] = [INVERTED] if found[site].constant else [INVERTED, STUCK_AT_0, STUCK_AT_1]
        drawn[Mutant(site, bit, rng.choice(list(kinds)))] = None
    return list(drawn)
