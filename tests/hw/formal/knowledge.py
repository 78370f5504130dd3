"""What is equal in both copies for sure: it follows from nothing but what is.

The rules see where a value comes from, not what it is: the sum of a known and an unknown number is unknown. A
multiplexer whose condition is known passes on what is known of the operand that it chooses, and a gate with a known
operand that decides its result is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from amaranth.hdl import _nir

from tests.hw.formal.aig import FALSE, TRUE, Blaster, Graph, Register, Word

Given = Callable[[str], int]
"""Whether an input is equal, by its name."""
Read = Callable[[int, int, Word], int]
"""Whether the data of a read port are equal: by its cell, by whether its address is, and by the address."""


class Knowledge:
    """For each net of the first copy a literal that is high only where the second copy has the same value."""

    def __init__(
        self, graph: Graph, netlist: Any, first: Blaster, given: Given, read: Read, cleared: Collection[_nir.Net]
    ) -> None:
        self._graph, self._cells, self._first, self._given, self._read = graph, netlist.cells, first, given, read
        self._inputs = netlist.top.ports_i
        self._cleared = cleared
        self._bits: dict[int, int] = {0: TRUE, 1: TRUE}
        self._open: list[tuple[_nir.Net, Register]] = []

    def of(self, nets: Iterable[_nir.Net]) -> int:
        """Whether all these nets are known."""
        wanted = list(nets)
        stack = [net for net in wanted if net not in self._bits]
        while stack:
            net = stack[-1]
            if net in self._bits:
                stack.pop()
                continue
            left = [source for source in self._sources(net) if source not in self._bits]
            if left:
                stack += left
            else:
                self._bits[net] = self._begin(net) if self._begins(net) else self._follow(net)
        return self._graph.all(self._bits[net] for net in wanted)

    def close(self) -> None:
        """Say of all registers whether their next value is known."""
        while self._open:
            net, register = self._open.pop()
            register.next = self.of([self._cells[net >> 16].data[net & 0xFFFF]])

    def _begins(self, net: _nir.Net) -> bool:
        return isinstance(self._cells[net >> 16], _nir.Top | _nir.FlipFlop | _nir.SyncReadPort)

    def _sources(self, net: _nir.Net) -> list[_nir.Net]:
        if self._begins(net):
            return []
        return [source for source, _ in self._cells[net >> 16].comb_edges_to(net & 0xFFFF)]

    def _begin(self, net: _nir.Net) -> int:
        """An input, or a register."""
        match self._cells[net >> 16]:
            case _nir.Top():
                bits = self._inputs.items()
                (name,) = (name for name, (start, width) in bits if 0 <= (net & 0xFFFF) - start < width)
                return self._given(name)
            case _nir.SyncReadPort():
                return self._read(net >> 16, TRUE, [])
        register = self._graph.register(TRUE if net in self._cleared else FALSE)
        self._open.append((net, register))
        return register.value

    def _follow(self, net: _nir.Net) -> int:
        """A bit of a cell whose operands are done."""
        cell, bit = self._cells[net >> 16], net & 0xFFFF
        match cell:
            case _nir.AsyncReadPort():
                return self._read(net >> 16, self.of(cell.addr), self._first.word(cell.addr))
            case _nir.AssignmentList():
                known = self._bits[cell.default[bit]]
                for step in cell.assignments:
                    if 0 <= bit - step.start < len(step.value):
                        known = self._chosen(step.cond, self._bits[step.value[bit - step.start]], known)
                return known
            case _nir.PriorityMatch():
                return self._decided((cell.en, *cell.inputs[: bit + 1]), (FALSE, *[TRUE] * bit, FALSE))
            case _nir.Operator(operator="&" | "|"):
                return self._decided([value[bit] for value in cell.inputs], [int(cell.operator == "|")] * 2)
            case _nir.Operator(operator="m"):
                (condition,), *values = cell.inputs
                return self._chosen(condition, *(self._bits[value[bit]] for value in values))
        return self._graph.all(self._bits[source] for source in self._sources(net))

    def _decided(self, nets: Collection[_nir.Net], by: Iterable[int]) -> int:
        """All operands are known, or one that alone decides the result by this value."""
        graph, alone = self._graph, []
        for net, literal, value in zip(nets, self._first.word(nets), by, strict=True):
            alone.append(graph.both(self._bits[net], literal ^ value ^ 1))
        return graph.any((graph.all(self._bits[net] for net in nets), *alone))

    def _chosen(self, condition: _nir.Net, one: int, other: int) -> int:
        """Whether what a condition chooses is known."""
        return self._graph.both(self._bits[condition], self._graph.mux(*self._first.word([condition]), one, other))
