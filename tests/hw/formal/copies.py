"""Soft reset equals reset, proved by the model checker ABC: no data of two copies that counts ever differs.

The two copies start in any two states, have one cycle of reset and then equal inputs. A payload of an input must be
equal only while it is valid. To be proved: every output is equal for all time, a payload while it is valid. Contents of
memories are equal at first: by specification no reset changes them.

Both copies are in one graph, right after the reset. What is equal for sure (`knowledge.py`) is there once. Other equal
parts are found and merged, and the rest is searched for a statement that holds for all time, of any form. A component
inside may be a box, of which its own proof says when its outputs are equal and what its inputs have to be: all
components together are then right by induction over time, since an output that follows an input in the same cycle never
has a way back to it.

Contents of memories are not in the graph: a read port gives any word, the same in both copies if they read equal
entries at one address. What the copies write differently is not equal until both write it alike. A product is any
function of its operands.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from amaranth.hdl import Fragment, _nir
from amaranth.hdl._ir import build_netlist
from amaranth.lib import wiring

from tests.hw.formal.aig import FALSE, TRUE, Blaster, Graph, Register, Word
from tests.hw.formal.conditions import Bench, Boxes, Pairs, Rules, no_lemmas
from tests.hw.formal.knowledge import Knowledge

_ENTRIES = 64
"""Memories with more entries are equal as a whole, or not."""
_SEARCH = "bmc3 -T 1 -F 20; {merge}pdr -T 300"
"""A difference after a few cycles is found first."""
_INDUCTION = "bmc3 -F {cycles}; bmc3 -T 1 -F 20; ind -F {cycles}"
"""A component with lemmas keeps them if they have held in so many cycles before."""


class Copies:
    """Two copies of a component in one graph, and for each output whether it counts and differs."""

    def __init__(self, component: wiring.Component, rules: Rules, boxes: Boxes = MappingProxyType({})) -> None:
        self.graph = graph = Graph()
        bench = Bench(component, rules, boxes)
        netlist = build_netlist(Fragment.get(bench.module, None), bench.directed, name="component")
        self._cells = netlist.cells
        self._kept = {net for signal, value in netlist.signals.items() if signal.reset_less for net in value}
        self._bench, self._valids, self._ports = bench, bench.valids, netlist.top
        self._known: dict[str, Word] = {}
        self._equal: dict[int, list[Register]] = {}
        self._same: dict[int, Register] = {}
        self._data: dict[int, tuple[Word, Word]] = {}
        self._products: dict[int, tuple[Word, Word, Word]] = {}
        self._one = Blaster(graph, netlist, self._of_both, self._first_read, self._first_product)
        self._two = Blaster(
            graph, netlist, self._of_second, self._second_read, self._second_product, self._second_register
        )
        cleared = {
            _nir.Net.from_cell(index, bit)
            for index, cell in enumerate(self._cells)
            if isinstance(cell, _nir.FlipFlop)
            for bit in range(len(cell.data))
        } - self._kept
        self._equal_for_sure = Knowledge(graph, netlist, self._one, self._counts, self._is_read_equal, cleared)
        self._copies = self._one, self._two
        resets, clocks = (self._of_both(name) if name in self._ports.ports_i else [] for name in ("rst", "clk"))
        self.tied = resets + clocks
        hidden = {*bench.unseen, *bench.same.values(), *bench.entries.values()}
        seen = [name for name in self._ports.ports_o if name not in hidden]
        words = [self._of_both(name) for name in seen]
        self._one.close()
        self.differs = {name: self._differs(name, word) for name, word in zip(seen, words, strict=True)}
        """Of each output, whether it counts and differs; of a rule, whether it is broken."""
        self._two.close()
        self._equal_for_sure.close()
        self._two.close()
        self.differs |= {name: self._entries_differ(name, equal) for name, equal in bench.entries.items()}
        self._link()
        if rules.lemmas is not no_lemmas:
            # The statements are to keep themselves, without a search for more: a register with a reset is equal, unless
            # one of them says when it is.
            told = {net for name in bench.lemmas for net in self._ports.ports_o[name]}
            self.differs["cleared"] = graph.any(
                graph.xor(*(literal for copy in self._copies for literal in copy.word([net])))
                for net in (cleared & self._one.registers.keys() & self._two.registers.keys()) - told
            )
        self.mistaken = graph.any(
            graph.both(self._equal_for_sure.of([net]), graph.xor(*self._one.word([net]), register.value))
            for net, register in self._two.registers.items()
        )
        """Whether a register of the second copy is known to be equal, and is not."""
        for reset in resets:
            graph.cleared(reset)

    def _of_both(self, name: str) -> Word:
        """A port of the first copy: an input is that of the second one too, as long as it counts."""
        if name not in self._known:
            if name in self._ports.ports_o:
                self._known[name] = self._one.word(self._ports.ports_o[name])
            elif name in self._bench.same:
                self._known[name] = [self._is_equal(self._bench.same[name])]
            else:
                self._known[name] = [self.graph.input() for _ in range(self._ports.ports_i[name][1])]
        return self._known[name]

    def _of_second(self, name: str) -> Word:
        word = self._of_both(name)
        return self.graph.muxes(self._counts(name), word, [self.graph.input() for _ in word])

    def _counts(self, name: str) -> int:
        if name in self._bench.unseen:
            return FALSE
        return self._of_both(self._valids[name])[0] if name in self._valids else TRUE

    def _is_equal(self, name: str) -> int:
        """Whether an output is equal in both copies."""
        return self.graph.equal(self._of_both(name), self._two.word(self._ports.ports_o[name]))

    def _differs(self, name: str, word: Word) -> int:
        if name in self._bench.broken:
            return self.graph.any((*word, *self._two.word(self._ports.ports_o[name])))
        return self.graph.both(self._counts(name), self._is_equal(name) ^ 1)

    def _entries_differ(self, name: str, equal: str) -> int:
        """Whether an entry that is to be equal is not."""
        (memory,) = (n for n, cell in enumerate(self._cells) if isinstance(cell, _nir.Memory) and cell.name == name)
        pairs = zip(self._of_both(equal), self._entries(memory), strict=True)
        return self.graph.any(self.graph.both(bit, entry.value ^ 1) for bit, entry in pairs)

    def _first_read(self, index: int, address: Word) -> Word:
        self._data[index] = [self.graph.input() for _ in range(self._cells[index].width)], address
        return self._data[index][0]

    def _second_read(self, index: int, address: Word) -> Word:
        graph, cell = self.graph, self._cells[index]
        if index not in self._data:
            raise ValueError("a read port that only one copy depends on")
        data, other = self._data[index]
        entries = self._entries(cell.memory)
        if isinstance(cell, _nir.AsyncReadPort):
            same = graph.both(self._at([entry.value for entry in entries], address), graph.equal(address, other))
        else:
            same = self._is_read_equal(index, TRUE, [])
        return graph.muxes(same, data, [graph.input() for _ in data])

    def _first_product(self, index: int, a: Word, b: Word) -> Word:
        if max(a) <= TRUE or max(b) <= TRUE:
            return self.graph.product(a, b)
        self._products[index] = a, b, [self.graph.input() for _ in a]
        return self._products[index][2]

    def _second_product(self, index: int, a: Word, b: Word) -> Word:
        if index not in self._products:
            return self.graph.product(a, b)
        x, y, product = self._products[index]
        same = self.graph.both(self.graph.equal(a, x), self.graph.equal(b, y))
        return self.graph.muxes(same, product, [self.graph.input() for _ in a])

    def _is_read_equal(self, index: int, known: int, address: Word) -> int:
        cell = self._cells[index]
        entries = self._entries(cell.memory)
        if isinstance(cell, _nir.AsyncReadPort):
            return self.graph.both(known, self._at([entry.value for entry in entries], address))
        if index not in self._same:
            self._same[index] = self.graph.register(FALSE)
        return self._same[index].value

    def _second_register(self, net: _nir.Net, new: Callable[[], int]) -> int:
        """The first copy's, where it is known to be equal."""
        return self.graph.mux(self._equal_for_sure.of([net]), self._one.word([net])[0], new())

    def _entries(self, memory: int) -> list[Register]:
        if memory not in self._equal:
            depth = self._cells[memory].depth
            self._equal[memory] = [self.graph.register(TRUE) for _ in range(1 if depth > _ENTRIES else depth)]
        return self._equal[memory]

    def _at(self, entries: Word, address: Word) -> int:
        """The bit of an entry."""
        padded = [*entries, *[FALSE] * ((1 << len(address)) - len(entries))]
        return entries[0] if len(entries) == 1 else self.graph.shifted(padded, address, FALSE)[0]

    def _link(self) -> None:
        """What is equal after this cycle: entries of memories, and words that synchronous ports have read."""
        done: set[int] = set()
        while left := (self._equal.keys() | self._same.keys()) - done:
            for index in sorted(left & self._equal.keys()):
                self._after_writes(index)
            for index in sorted(left & self._same.keys()):
                self._after_read(index)
            done |= left
            for copy in self._copies:
                copy.close()
            self._equal_for_sure.close()

    def _after_read(self, index: int) -> None:
        graph, cell, register = self.graph, self._cells[index], self._same[index]
        ports = [copy.word((*cell.addr, cell.en)) for copy in self._copies]
        (*address, enable), (*_, other) = ports
        entries = [entry.next if cell.transparent_for else entry.value for entry in self._equal[cell.memory]]
        same = graph.all((self._at(entries, address), graph.equal(*ports), enable))
        register.next = graph.mux(graph.any((enable, other)), same, register.value)

    def _after_writes(self, memory: int) -> None:
        graph, entries = self.graph, self._equal[memory]
        now = [entry.value for entry in entries]
        for cell in self._cells:
            if not isinstance(cell, _nir.SyncWritePort) or cell.memory != memory:
                continue
            enables, addresses, words = (
                [copy.word(value) for copy in self._copies] for value in (cell.en, cell.addr, cell.data)
            )
            masked = [list(map(graph.both, *pair)) for pair in zip(enables, words, strict=True)]
            alike = graph.all(graph.equal(*pair) for pair in (enables, addresses, masked))
            writes, whole = list(map(graph.any, enables)), graph.all((alike, *enables[0]))
            for at, before in enumerate(now):
                if len(now) < self._cells[memory].depth:
                    now[at] = graph.both(before, graph.any((alike, graph.any(writes) ^ 1)))
                    continue
                here = [graph.all(bit ^ 1 ^ (at >> k & 1) for k, bit in enumerate(address)) for address in addresses]
                touched = graph.any(map(graph.both, writes, here))
                after = graph.any((graph.both(whole, here[0]), graph.both(alike, before)))
                now[at] = graph.mux(touched, after, before)
        for entry, value in zip(entries, now, strict=True):
            entry.next = value


def _searched(copies: Copies, differs: Iterable[int], script: str, folder: Path) -> str:
    """What ABC says of these statements that two values differ."""
    copies.graph.write(folder / "copies.aig", [copies.graph.any(differs)], copies.tied)
    command = ["yosys-abc", "-c", f"read_aiger copies.aig; {script}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _is_refuted(answer: str) -> bool:
    return re.search(r"was asserted in frame \d+", answer) is not None


def always_equal(component: wiring.Component, rules: Rules, folder: Path, boxes: Boxes = MappingProxyType({})) -> bool:
    """Whether the property is proved; that the search comes to no end is an error."""
    copies = Copies(component, rules, boxes)
    searches = rules.lemmas is no_lemmas
    script = (_SEARCH if searches else _INDUCTION).format(merge="scorr; " * rules.merged, cycles=rules.cycles)
    answer = _searched(copies, copies.differs.values(), script, folder)
    if _is_refuted(answer):
        return False
    begins = searches or f"No output asserted in {rules.cycles} frames" in answer
    if begins and re.search(
        r"^(Property proved|Explored all reachable states|Networks are equivalent)", answer, re.MULTILINE
    ):
        return True
    raise RuntimeError(f"ABC gave no result:\n{answer[-2000:]}")


def knowledge_holds(
    component: wiring.Component, rules: Rules, folder: Path, boxes: Boxes = MappingProxyType({})
) -> bool:
    """Whether registers are equal wherever that is known for sure, by a short induction."""
    copies = Copies(component, rules, boxes)
    answer = _searched(copies, [copies.mistaken], "bmc3 -F 3; ind -F 3", folder)
    return "No output asserted in 3 frames" in answer and "Networks are equivalent" in answer


def equal_for(component: wiring.Component, pairs: Pairs, cycles: Mapping[tuple[str, ...], int], folder: Path) -> bool:
    """Whether none of these outputs differs within so many cycles after the reset where it counts.

    Each entry is one search: few outputs suit large designs, many suit small ones.
    """
    copies = Copies(component, Rules(pairs))
    for names, number in cycles.items():
        answer = _searched(copies, [copies.differs[name] for name in names], f"bmc3 -F {number}", folder)
        if _is_refuted(answer):
            return False
        if f"No output asserted in {number} frames" not in answer:
            raise RuntimeError(f"ABC gave no result for {', '.join(names)}:\n{answer[-2000:]}")
    return True
