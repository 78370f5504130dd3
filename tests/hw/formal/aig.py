"""And-inverter graphs of components, for the model checker ABC: graphs of whole accelerators take seconds.

A literal is an even number, or that number plus one for its complement; 0 is false. A word is a list of literals,
lowest bit first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar

from amaranth.hdl import _nir

FALSE, TRUE = 0, 1
Word = list[int]


@dataclass
class Register:
    """One bit of state."""

    value: int
    """Its literal."""
    next: int = FALSE
    init: int | None = None
    """Value in the first cycle; any, if None."""


@dataclass
class Graph:
    """Gates with two inputs, each one once; registers and inputs."""

    gates: list[tuple[int, int]] = field(default_factory=list)
    """Operands of each gate, in the order of their literals; inputs and registers have none."""
    inputs: list[int] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    _known: dict[tuple[int, int], int] = field(default_factory=dict)
    _NONE: ClassVar = (-1, -1)

    def _new(self, operands: tuple[int, int]) -> int:
        self.gates.append(operands)
        return 2 * len(self.gates)

    def input(self) -> int:
        """A new input."""
        self.inputs.append(self._new(self._NONE))
        return self.inputs[-1]

    def register(self, init: int | None = None) -> Register:
        """A new register."""
        self.registers.append(Register(self._new(self._NONE), init=init))
        return self.registers[-1]

    def both(self, a: int, b: int) -> int:
        """A and b."""
        a, b = max(a, b), min(a, b)
        if b <= TRUE or a == b:
            return a if b else FALSE
        if a ^ b == 1:
            return FALSE
        if (a, b) not in self._known:
            self._known[a, b] = self._new((a, b))
        return self._known[a, b]

    def all(self, literals: Iterable[int]) -> int:
        """All of them."""
        result = TRUE
        for literal in literals:
            result = self.both(result, literal)
        return result

    def any(self, literals: Iterable[int]) -> int:
        """One of them or more."""
        return self.all(literal ^ 1 for literal in literals) ^ 1

    def mux(self, condition: int, a: int, b: int) -> int:
        """A if the condition holds, else b."""
        return b if a == b else self.both(self.both(condition, a) ^ 1, self.both(condition ^ 1, b) ^ 1) ^ 1

    def xor(self, a: int, b: int) -> int:
        """Whether one of both holds, and not the other."""
        return self.mux(a, b ^ 1, b)

    def muxes(self, condition: int, a: Word, b: Word) -> Word:
        """Word a if the condition holds, else b."""
        return [self.mux(condition, x, y) for x, y in zip(a, b, strict=True)]

    def equal(self, a: Sequence[int], b: Sequence[int]) -> int:
        """Whether two words are equal."""
        return self.all(self.xor(x, y) ^ 1 for x, y in zip(a, b, strict=True))

    def add(self, a: Word, b: Word, carry: int = FALSE) -> tuple[Word, int]:
        """Sum and carry."""
        total = []
        for x, y in zip(a, b, strict=True):
            half = self.xor(x, y)
            total.append(self.xor(half, carry))
            carry = self.mux(half, carry, x)
        return total, carry

    def product(self, a: Word, b: Word) -> Word:
        """The product, as wide as its operands."""
        total = [FALSE] * len(a)
        for at, bit in enumerate(b):
            row = [*[FALSE] * at, *(self.both(bit, literal) for literal in a)][: len(a)]
            total = self.add(total, row)[0]
        return total

    def less(self, a: Word, b: Word, *, signed: bool) -> int:
        """Whether a is less than b."""
        if signed:
            a, b = [*a[:-1], a[-1] ^ 1], [*b[:-1], b[-1] ^ 1]
        return self.add(a, _not(b), TRUE)[1] ^ 1

    def shifted(self, value: Word, amount: Sequence[int], fill: int, stride: int = 1) -> Word:
        """The word moved down by an amount of steps."""
        for step, bit in enumerate(amount):
            by = min(stride << step, len(value))
            value = self.muxes(bit, [*value[by:], *[fill] * by], value)
        return value

    def cleared(self, reset: int) -> None:
        """Give each register that a cycle with `reset` sets to a constant this constant as its value at first."""
        known: list[int | None] = [0, *[None] * len(self.gates)]

        def value(literal: int) -> int | None:
            of = known[literal >> 1]
            return None if of is None else of ^ (literal & 1)

        known[reset >> 1] = 1
        for at, (a, b) in enumerate(self.gates, 1):
            if (a, b) != self._NONE:
                values = value(a), value(b)
                known[at] = 0 if 0 in values else None if None in values else 1
        for register in self.registers:
            if register.init is None:
                register.init = value(register.next)

    def write(self, file: Path, bad: Sequence[int], tied: Iterable[int] = ()) -> None:
        """Write it as AIGER; the inputs `tied` are low.

        An input of its own gives a register with any first value this value.
        """
        low = set(tied)
        kept = [literal for literal in self.inputs if literal not in low]
        free = sum(register.init is None for register in self.registers)
        gates: list[tuple[int, int]] = []
        source = 2 * len(kept)
        latches = source + 2 * free + 2
        started = latches + 2 * len(self.registers)

        def gate(a: int, b: int) -> int:
            gates.append((max(a, b), min(a, b)))
            return started + 2 * len(gates)

        def name(literal: int) -> int:
            return names[literal >> 1] ^ (literal & 1)

        names = [0] * (len(self.gates) + 1)
        for number, literal in enumerate(kept, 1):
            names[literal >> 1] = 2 * number
        for number, register in enumerate(self.registers):
            own = latches + 2 * number
            if register.init is None:
                source += 2
                own = gate(gate(started ^ 1, source) ^ 1, gate(started, own) ^ 1) ^ 1
            names[register.value >> 1] = own ^ (register.init or 0)
        for at, operands in enumerate(self.gates, 1):
            if operands != self._NONE:
                names[at] = gate(*map(name, operands))
        ends = (register.next ^ (register.init or 0) for register in self.registers)
        lines = [*map(name, ends), TRUE, *map(name, bad)]
        counts = (started // 2 + len(gates), len(kept) + free, len(self.registers) + 1, len(bad), len(gates))
        text = f"aig {' '.join(map(str, counts))}\n" + "".join(f"{literal}\n" for literal in lines)
        deltas = (_code(delta) for number, (a, b) in enumerate(gates, 1) for delta in (started + 2 * number - a, a - b))
        file.write_bytes(text.encode() + b"".join(deltas))


def _code(number: int) -> bytes:
    """A number in groups of seven bits, lowest first."""
    groups = [number >> at & 0x7F for at in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


Read = Callable[[int, Word], Word]
"""Data of a read port, by the index of its cell and its address; that of a synchronous port is of a register."""
Given = Callable[[str], Word]
"""An input by its name, when something depends on it."""
Product = Callable[[int, Word, Word], Word]
"""The product of two operands, by the index of its cell."""
Settled = Callable[[_nir.Net, Callable[[], int]], int]
"""The value of a register that may be known, or that of a new one."""


def _never(_: _nir.Net, new: Callable[[], int]) -> int:
    return new()


class Blaster:
    """A netlist of Amaranth in a graph, as far as outputs depend on it."""

    def __init__(
        self, graph: Graph, netlist: Any, given: Given, read: Read, product: Product, settled: Settled = _never
    ) -> None:
        self._graph, self._cells, self._given, self._read, self._product = graph, netlist.cells, given, read, product
        self._settled = settled
        self._bits: dict[int, int] = {FALSE: FALSE, TRUE: TRUE}
        self.registers: dict[_nir.Net, Register] = {}
        """Those that something depends on."""
        self._open: deque[_nir.Net] = deque()
        """Those without a next value, in the order of the graph: in another one ABC takes minutes for the MAC array."""
        self._inputs = netlist.top.ports_i

    def word(self, value: Iterable[int]) -> Word:
        """The literals of some nets."""
        nets = list(value)
        stack = [net for net in nets if net not in self._bits]
        while stack:
            net = stack[-1]
            if net in self._bits:
                stack.pop()
                continue
            cell, bit = self._cells[net >> 16], net & 0xFFFF
            if net >> 16 == 0:
                self._take_input(bit)
                continue
            left = [source for source, _ in cell.comb_edges_to(bit) if source not in self._bits]
            if left:
                stack += left
            else:
                self._evaluate(net >> 16, bit)
        return [self._bits[net] for net in nets]

    def _take_input(self, bit: int) -> None:
        """Take the input that has this bit of the module's."""
        ((name, start),) = ((n, start) for n, (start, width) in self._inputs.items() if 0 <= bit - start < width)
        for at, literal in enumerate(self._given(name), start):
            self._bits[_nir.Net.from_cell(0, at)] = literal

    def close(self) -> None:
        """Give all registers that something depends on their next value."""
        while self._open:
            net = self._open.popleft()
            (self.registers[net].next,) = self.word([self._cells[net.cell].data[net.bit]])

    def _of(self, value: Iterable[int]) -> Word:
        return [self._bits[net] for net in value]

    def _evaluate(self, index: int, bit: int) -> None:
        cell = self._cells[index]
        literal = self._bit(index, bit, cell)
        if literal is not None:
            self._bits[index << 16 | bit] = literal
            return
        for at, literal in enumerate(self._word(index, cell)):
            self._bits[index << 16 | at] = literal

    def _bit(self, index: int, bit: int, cell: Any) -> int | None:
        """A bit of a cell whose bits do not depend on the same nets; None for other cells."""
        graph = self._graph
        match cell:
            case _nir.FlipFlop():
                net = _nir.Net.from_cell(index, bit)
                return self._settled(net, lambda: self._register(net))
            case _nir.AssignmentList():
                value = self._bits[cell.default[bit]]
                for step in cell.assignments:
                    if 0 <= bit - step.start < len(step.value):
                        value = graph.mux(*self._of((step.cond, step.value[bit - step.start])), value)
                return value
            case _nir.PriorityMatch():
                enable, *earlier, own = self._of((cell.en, *cell.inputs[: bit + 1]))
                return graph.all((enable, own, *(literal ^ 1 for literal in earlier)))
            case _nir.Operator(operator="m"):
                condition, *values = cell.inputs
                return graph.mux(*self._of((*condition, *(value[bit] for value in values))))
            case _nir.Operator(operator="~" | "&" | "|" | "^"):
                return _BITWISE[cell.operator](graph, *self._of(value[bit] for value in cell.inputs))
        return None

    def _register(self, net: _nir.Net) -> int:
        self.registers[net] = self._graph.register()
        self._open.append(net)
        return self.registers[net].value

    def _word(self, index: int, cell: Any) -> Word:
        graph = self._graph
        match cell:
            case _nir.AsyncReadPort():
                return self._read(index, self._of(cell.addr))
            case _nir.SyncReadPort():
                return self._read(index, [])
            case _nir.Matches():
                value = self._of(cell.value)
                return [graph.any(self._matches(value, pattern) for pattern in cell.patterns)]
            case _nir.Part():
                value = self._of(cell.value)
                fill = value[-1] if cell.value_signed else FALSE
                value += [fill] * (cell.width - len(value))
                return graph.shifted(value, self._of(cell.offset), fill, cell.stride)[: cell.width]
            case _nir.Operator(operator="*"):
                return self._product(index, *map(self._of, cell.inputs))
            case _nir.Operator():
                return _OPERATIONS[cell.operator, len(cell.inputs)](graph, *map(self._of, cell.inputs))
        raise TypeError(f"a cell of the kind {type(cell).__name__}")

    def _matches(self, value: Word, pattern: str) -> int:
        bits = zip(value, reversed(pattern), strict=True)
        return self._graph.all(literal ^ (bit == "0") for literal, bit in bits if bit != "-")


def _not(word: Word) -> Word:
    return [literal ^ 1 for literal in word]


_BITWISE: dict[str, Callable[..., int]] = {
    "~": lambda g, a: a ^ 1,
    "&": Graph.both,
    "|": lambda g, a, b: g.any((a, b)),
    "^": Graph.xor,
}
_OPERATIONS: dict[tuple[str, int], Callable[..., Word]] = {
    ("-", 1): lambda g, a: g.add([FALSE] * len(a), _not(a), TRUE)[0],
    ("-", 2): lambda g, a, b: g.add(a, _not(b), TRUE)[0],
    ("+", 2): lambda g, a, b: g.add(a, b)[0],
    ("<<", 2): lambda g, a, b: g.shifted(a[::-1], b, FALSE)[::-1],
    ("u>>", 2): lambda g, a, b: g.shifted(a, b, FALSE),
    ("s>>", 2): lambda g, a, b: g.shifted(a, b, a[-1]),
    ("b", 1): lambda g, a: [g.any(a)],
    ("r|", 1): lambda g, a: [g.any(a)],
    ("r&", 1): lambda g, a: [g.all(a)],
    ("r^", 1): lambda g, a: [reduce(g.xor, a, FALSE)],
    ("==", 2): lambda g, a, b: [g.equal(a, b)],
    ("!=", 2): lambda g, a, b: [g.equal(a, b) ^ 1],
    ("u<", 2): lambda g, a, b: [g.less(a, b, signed=False)],
    ("s<", 2): lambda g, a, b: [g.less(a, b, signed=True)],
    ("u>", 2): lambda g, a, b: [g.less(b, a, signed=False)],
    ("s>", 2): lambda g, a, b: [g.less(b, a, signed=True)],
    ("u<=", 2): lambda g, a, b: [g.less(b, a, signed=False) ^ 1],
    ("s<=", 2): lambda g, a, b: [g.less(b, a, signed=True) ^ 1],
    ("u>=", 2): lambda g, a, b: [g.less(a, b, signed=False) ^ 1],
    ("s>=", 2): lambda g, a, b: [g.less(a, b, signed=True) ^ 1],
}
"""Operators of Amaranth's netlist by their number of operands."""
