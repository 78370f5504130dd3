"""Programs of some thousand cycles, and the comparison of two results of one program."""

import dataclasses

import numpy as np

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker

PARAMS = preset("nano").replace(scratch_kib=8, weight_kib=2, strip=16)
"""Small memories make many tiles, and load quickly."""

SCAN_PERIOD = 64
"""Cycles within which a register read gives the counter's value."""


def residual_network():
    """Convolutions with tables that tiles keep, a residual addition, pooling, a concatenation."""
    maker = GraphMaker(5)
    x = maker.conv(maker.input(6, 64, 48), 8, 3, stride=2)
    y = maker.add(maker.conv(x, 8, 3), x)
    z = maker.concat(maker.max_pool(y, 3, pad=1), maker.conv(y, 8, 3))
    graph = maker.graph(maker.conv(maker.conv(z, 16, 3), 12, 1))
    return compile_graph(graph, PARAMS), maker.random_inputs()


def vector_network():
    """Mostly vector instructions: sums and products with tables, averages, an enlargement."""
    maker = GraphMaker(8)
    a = maker.input(8, 28, 32)
    b = maker.mul(maker.apply_table(a), maker.conv(a, 8, 3), table=True)
    c = maker.add(maker.avg_pool(b, 2, 2, table=True), maker.max_pool(a, 2, 2), table=True)
    graph = maker.graph(maker.apply_table(maker.conv(maker.resize(c), 8, 3)))
    return compile_graph(graph, PARAMS), maker.random_inputs()


def require_equal(found, plain):
    """Everything that a run gives is equal, but for the time that it took."""
    assert found.cycles == plain.cycles
    assert found.counters == plain.counters
    assert found.dram_bytes == plain.dram_bytes
    np.testing.assert_array_equal(found.memory, plain.memory)
    for name, expected in plain.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], expected)
    for name, expected in plain.tensors.items():
        np.testing.assert_array_equal(found.tensors[name], expected)
    np.testing.assert_array_equal(found.writes, plain.writes)
    for side, expected in ((found.pulses.started, plain.pulses.started), (found.pulses.done, plain.pulses.done)):
        for unit, cycles in zip(side, expected, strict=True):
            np.testing.assert_array_equal(unit, cycles)
    assert [layer.cycles for layer in found.layers] == [layer.cycles for layer in plain.layers]
    assert found.origin == plain.origin
    assert dataclasses.replace(found.report, seconds=0) == dataclasses.replace(plain.report, seconds=0)
    # The last cycle of the status is that of the host's last register access.
    assert dataclasses.replace(found.status, cycle=0) == dataclasses.replace(plain.status, cycle=0)
    assert [s.cycle for s in found.snapshots] == [s.cycle for s in plain.snapshots]
    # The clocks also tick, or not, while the host reads registers at the end.
    assert found.clock_stopped.keys() == plain.clock_stopped.keys()
    assert "vec" in plain.clock_stopped
    for name, share in plain.clock_stopped.items():
        assert 0 < share < 1
        assert abs(found.clock_stopped[name] - share) * plain.cycles <= SCAN_PERIOD, name
    # No counter falls; the register reads behind a layer's end take a varying number of cycles.
    for rows in (found.snapshots, plain.snapshots):
        for name in plain.counters:
            assert sorted(row.counters[name] for row in rows) == [row.counters[name] for row in rows]
    for one, other in zip(found.snapshots, plain.snapshots, strict=True):
        assert all(abs(one.counters[name] - other.counters[name]) <= SCAN_PERIOD for name in plain.counters)
