"""Every cycle of a run belongs to one layer; layers end with their last computing instruction."""

from dataclasses import replace

import numpy as np
import pytest

from intloom.compiler.program.program import Provenance
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec import regs
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result import RunResult
from intloom.sim.rtl.layers import Boundary, boundaries, layer_results, spans
from intloom.sim.rtl.status import Pulses, Snapshot


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(4)
    x = maker.conv(maker.input(4, 8, 8), 8, 3)
    graph = maker.graph(maker.conv(maker.max_pool(x, 3, pad=1), 4, 1))
    return compile_graph(graph, preset("nano")), maker.random_inputs()


def serial(program, length=10):
    """Pulses of a machine that works one instruction after the other, each `length` cycles long."""
    started, done = ([[] for _ in QUEUED_UNITS] for _ in range(2))
    for n, instruction in enumerate(i for i in program.instructions if i.unit is not Unit.CONTROL):
        started[instruction.unit].append(length * n)
        done[instruction.unit].append(length * n + length)
    return Pulses(*(tuple(np.array(a, np.uint64) for a in rows) for rows in (started, done)))


def test_boundaries_lie_on_the_computing_units(case):
    program, _ = case
    ends = boundaries(program)
    assert [program.layers[e.layer].op for e in ends] == ["Conv", "MaxPool", "Conv"]
    assert [e.unit for e in ends] == [Unit.MAC, Unit.VEC, Unit.MAC]


def test_all_cycles_are_given_out_and_computing_layers_get_theirs(case):
    program, _ = case
    count = sum(i.unit is not Unit.CONTROL for i in program.instructions)
    cycles = spans(program, serial(program), 0, 10 * count + 7)
    assert sum(cycles) == 10 * count + 7
    assert all(c > 0 for c in cycles)


@pytest.mark.parametrize("known", [3, 2, 1, 0])
def test_a_layer_has_the_counts_from_the_end_of_the_layer_before_on(case, known):
    """The last one has all that follows; one whose counters were not read counts for the next one that were."""
    program, _ = case
    ends, pulses = boundaries(program), serial(program)
    rng = np.random.default_rng(known)
    names = [counter.name for counter in regs.COUNTERS]
    totals = np.cumsum(rng.integers(1, 50, (len(ends) + 1, len(names))), axis=0)
    at_ends = [dict(zip(names, map(int, row), strict=True)) for row in totals]
    result = RunResult(
        backend="rtl", outputs={}, wall_s=1.0, pulses=pulses, counters=at_ends[-1] | {"CYCLES": 10 * len(names)},
        snapshots=tuple(Snapshot(0, counters) for counters in at_ends[: len(ends)][:known]),
    )  # fmt: skip
    layers = layer_results(program, ends, result)
    assert sum(layer.cycles for layer in layers) == result.counters["CYCLES"]
    assert all(layer.mac_use == layer.macs / (layer.cycles * program.params.macs) for layer in layers)
    before = dict.fromkeys(names, 0)
    for number, end in enumerate(ends):
        last = number == len(ends) - 1
        now = at_ends[-1] if last else at_ends[number] if number < known else before
        layer = layers[end.layer]
        assert layer.busy == {u.name: now[f"{u.name}_BUSY"] - before[f"{u.name}_BUSY"] for u in QUEUED_UNITS}
        stalls = {n: now[n] - before[n] for n in names if "_STALL_" in n and now[n] > before[n]}
        assert layer.stalls == stalls and bool(stalls) == (last or number < known)
        before = now
    assert layer_results(program, ends, replace(result, pulses=None)) == ()
    nothing = Pulses(*[tuple(np.array([], np.uint64) for _ in QUEUED_UNITS)] * 2)
    assert layer_results(program, ends, replace(result, pulses=nothing)) == ()


def test_a_layer_that_only_moves_data_ends_with_its_last_move(case):
    """As those of an instruction that belongs to no layer, moves do not end a layer that computes."""
    program, _ = case
    kinds = [i.unit for i in program.instructions]
    last_store = max(n for n, unit in enumerate(kinds) if unit is Unit.STORE)
    sources = [Provenance(layer=0 if n == last_store else 2 if unit is Unit.STORE else 1, tile=0, note="")
               for n, unit in enumerate(kinds)]  # fmt: skip
    sources[0] = Provenance(layer=-1, tile=0, note="")
    sources[kinds.index(Unit.LOAD)] = Provenance(layer=len(program.layers), tile=0, note="")
    ends = boundaries(replace(program, provenance=tuple(sources)))
    last = max(n for n, unit in enumerate(kinds) if unit in (Unit.MAC, Unit.VEC))
    expected = [(1, kinds[last], kinds[: last + 1].count(kinds[last])), (0, Unit.STORE, kinds.count(Unit.STORE))]
    if kinds.count(Unit.STORE) > 1:
        stores = [n for n, unit in enumerate(kinds) if unit is Unit.STORE]
        expected.append((2, Unit.STORE, len(stores) - 1))
    assert sorted(ends, key=lambda e: e.layer) == sorted((Boundary(*e) for e in expected), key=lambda e: e.layer)


@pytest.mark.slow
def test_a_real_run_gives_every_cycle_to_a_layer(case):
    program, inputs = case
    result = RtlBackend().run(program, inputs)
    assert sum(layer.cycles for layer in result.layers) == result.cycles
    assert all(0 <= layer.mac_use <= 1 for layer in result.layers)
    for unit in QUEUED_UNITS:
        assert sum(layer.busy[unit.name] for layer in result.layers) == result.counters[f"{unit.name}_BUSY"]
