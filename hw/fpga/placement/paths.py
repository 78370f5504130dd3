"""Timing graph of a placed netlist: the longest path through each connection."""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from intloom.hw.fpga.netlist import COMB, is_mode
from intloom.hw.fpga.placement import delays
from intloom.hw.fpga.placement.delays import Integers
from intloom.hw.fpga.placement.sites import point_of

_CLOCKS = {"CLK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3", "WCK"}
_INPUTS = {"A", "B", "C", "D", "M", "F1", "FXA", "FXB", "FCI"}
"""Inputs of a LUT, its multiplexer or a chain cell that its outputs depend on. The others write a distributed RAM."""
_UNTIMED = ("$PACKER_", "$glbnet$")
"""Beginnings of the names of constants and of global nets."""
_NO_PATH = -(1 << 40)


class Paths:
    """The connections of a netlist that nextpnr has placed, and the delays of the paths through them.

    A path begins at the output of a register, multiplier or memory and ends at an input of one. Cells, nets and
    connections are numbers: a connection leads from a net's driver to one input of a cell.

    Parameters
    ----------
    module:
        The module of nextpnr's netlist. Cells without a site are left out.

    Attributes
    ----------
    names, cells:
        Names and contents of the cells.
    columns, rows:
        Their positions. After a change, `move` computes the delays of their connections.
    net, reader:
        The net and the reading cell of each connection.
    driver:
        The cell that drives each net.
    arrival:
        Longest delay from a path's begin to a net's driver.
    remaining:
        Longest delay from there to a path's end.
    total:
        Delay of the longest path that ends with each connection, or a negative number where none ends.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        cells = {n: c for n, c in module["cells"].items() if "NEXTPNR_BEL" in c["attributes"]}
        self.names = list(cells)
        self.cells: list[dict[str, Any]] = list(cells.values())
        self.columns, self.rows = np.array([point_of(cell["attributes"]["NEXTPNR_BEL"]) for cell in self.cells]).T
        self._number_nets(module)
        self._connect()
        self._arcs()
        self._delay = np.zeros(len(self.net), int)
        self._set_delays(np.arange(len(self.net)))
        self.measure()

    def inputs(self, cell: int) -> Sequence[int]:
        """Connections to a cell."""
        return self._inputs[cell]

    def outputs(self, cell: int) -> Sequence[int]:
        """Connections from a cell."""
        return self._outputs[cell]

    def beyond(self, connection: int) -> int:
        """Longest delay from a connection's input to a path's end."""
        if self._ends[connection]:
            return 0
        arcs = self._arcs_from[connection]
        return max((int(self._arc_delay[a] + self.remaining[self._arc_net[a]]) for a in arcs), default=_NO_PATH)

    def through(self) -> Integers:
        """Delay of the longest path through each connection."""
        after = np.where(self._ends, 0, _NO_PATH)
        np.maximum.at(after, self._arc_connection, self._arc_delay + self.remaining[self._arc_net])
        return self.arrival[self.net] + self._delay + after

    def move(self, cells: Sequence[int], *, measure: bool = True) -> None:
        """Compute the delays of paths after these cells have changed their positions."""
        self._set_delays(np.array([c for cell in cells for c in (*self._inputs[cell], *self._outputs[cell])]))
        if measure:
            self.measure()

    def measure(self) -> None:
        """Compute arrival, remaining and total."""
        arrival = self._start.copy()
        for arcs, nets, first in self._forward:
            through = self._arc_connection[arcs]
            values = arrival[self.net[through]] + self._delay[through] + self._arc_delay[arcs]
            arrival[nets] = np.maximum(arrival[nets], np.maximum.reduceat(values, first))
        remaining = np.full(len(self.driver), _NO_PATH)
        ending, nets, first = self._last
        if len(ending):
            remaining[nets] = np.maximum.reduceat(self._delay[ending], first)
        for arcs, nets, first in self._backward:
            values = self._delay[self._arc_connection[arcs]] + self._arc_delay[arcs] + remaining[self._arc_net[arcs]]
            remaining[nets] = np.maximum(remaining[nets], np.maximum.reduceat(values, first))
        self.arrival, self.remaining = arrival, remaining
        self.total = np.where(self._ends, arrival[self.net] + self._delay, _NO_PATH)

    def trace(self, connection: int) -> list[int]:
        """The cells of the longest path that ends with a connection, from its begin to its end."""
        cells = [int(self.reader[connection])]
        while True:
            net = int(self.net[connection])
            cells.append(int(self.driver[net]))
            before = [
                int(self._arc_connection[arc])
                for arc in self._arcs_to[net]
                if self._at(int(self._arc_connection[arc])) + self._arc_delay[arc] == self.arrival[net]
            ]
            if not before:
                return cells[::-1]
            connection = before[0]

    def _at(self, connection: int) -> int:
        return int(self.arrival[self.net[connection]] + self._delay[connection])

    def _number_nets(self, module: dict[str, Any]) -> None:
        untimed = {bit for name, net in module["netnames"].items() if name.startswith(_UNTIMED) for bit in net["bits"]}
        drivers: list[int] = []
        self._nets: dict[int | str, int] = {}
        self._ports: list[str] = []
        self._driven: dict[int, list[int]] = defaultdict(list)
        for number, cell in enumerate(self.cells):
            for port, bits in cell["connections"].items():
                for bit in bits if cell["port_directions"][port] == "output" else ():
                    if bit not in untimed:
                        self._nets[bit] = len(drivers)
                        self._driven[number].append(len(drivers))
                        drivers.append(number)
                        self._ports.append(port)
        self.driver = np.array(drivers, int)
        self._start = np.array([_start(self.cells[cell]) for cell in drivers], int)

    def _connect(self) -> None:
        found = [
            (self._nets[bit], number, port)
            for number, cell in enumerate(self.cells)
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] != "output" and port not in _CLOCKS
            for bit in bits
            if bit in self._nets
        ]
        self.net = np.array([net for net, _, _ in found], int)
        self.reader = np.array([cell for _, cell, _ in found], int)
        self._port = [port for _, _, port in found]
        self._ends = np.array([self.cells[cell]["type"] != COMB for _, cell, _ in found], bool)
        self._inputs: dict[int, list[int]] = defaultdict(list)
        self._outputs: dict[int, list[int]] = defaultdict(list)
        for connection, (net, cell, _) in enumerate(found):
            self._inputs[cell].append(connection)
            self._outputs[int(self.driver[net])].append(connection)
        ending = np.nonzero(self._ends)[0]
        self._last = _grouped(ending, self.net[ending])

    def _arcs(self) -> None:
        """Arcs from an input of a LUT or chain cell to its outputs, in the order in which delays are computed."""
        found = [
            (connection, net, _through(self.cells[self.reader[connection]], port, self._ports[net]))
            for connection, port in enumerate(self._port)
            if not self._ends[connection] and port in _INPUTS
            for net in self._driven[int(self.reader[connection])]
        ]
        self._arc_connection = np.array([connection for connection, _, _ in found], int)
        self._arc_net = np.array([net for _, net, _ in found], int)
        self._arc_delay = np.array([delay for _, _, delay in found], int)
        self._arcs_from: dict[int, list[int]] = defaultdict(list)
        self._arcs_to: dict[int, list[int]] = defaultdict(list)
        for arc, (connection, net, _) in enumerate(found):
            self._arcs_from[connection].append(arc)
            self._arcs_to[net].append(arc)
        source = self.net[self._arc_connection]
        level = self._levels()
        self._forward = [_grouped(arcs, self._arc_net[arcs]) for arcs in _layers(level[self._arc_net])]
        self._backward = [_grouped(arcs, source[arcs]) for arcs in reversed(_layers(level[source]))]

    def _levels(self) -> Integers:
        """For each net, the most cells that a path to it passes."""
        waits = np.bincount(self._arc_net, minlength=len(self.driver)).tolist()
        level = [0] * len(waits)
        after: dict[int, list[int]] = defaultdict(list)
        for source, net in zip(self.net[self._arc_connection].tolist(), self._arc_net.tolist(), strict=True):
            after[source].append(net)
        ready = deque(net for net, count in enumerate(waits) if not count)
        while ready:
            source = ready.popleft()
            for net in after[source]:
                level[net] = max(level[net], level[source] + 1)
                waits[net] -= 1
                if not waits[net]:
                    ready.append(net)
        return np.array(level, int)

    def _set_delays(self, connections: Integers) -> None:
        start, end = self.driver[self.net[connections]], self.reader[connections]
        across = np.abs(self.columns[start] - self.columns[end])
        along = np.abs(self.rows[start] - self.rows[end])
        chained = np.array([self._port[connection] == "FCI" for connection in connections], bool)
        self._delay[connections] = np.where(chained, 0, delays.route(across, along))


def _start(cell: dict[str, Any]) -> int:
    """Delay at an output of a cell without regard to what is before the cell."""
    if cell["type"] == COMB:
        return delays.MEMORY_READ if is_mode(cell, "DPRAM") else 0
    return delays.CLOCK_TO_OUTPUT.get(cell["type"], delays.OTHER_CLOCK_TO_OUTPUT)


def _through(cell: dict[str, Any], port: str, output: str) -> int:
    if port == "FCI":
        return delays.CARRY if output == "FCO" else delays.CARRY_TO_SUM
    if is_mode(cell, "DPRAM"):
        return delays.MEMORY_READ
    return delays.CARRY_FROM_INPUT if is_mode(cell, "CCU2") else delays.LUT


def _layers(level: Integers) -> list[Integers]:
    """Indices of equal level, from the lowest level on."""
    order = np.argsort(level, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(level[order])) + 1) if len(order) else []


def _grouped(items: Integers, keys: Integers) -> tuple[Integers, Integers, Integers]:
    """Items in the order of their keys, the keys once each, and the position of each key's first item."""
    order = np.argsort(keys, kind="stable")
    unique, first = np.unique(keys[order], return_index=True)
    return items[order], unique, first
