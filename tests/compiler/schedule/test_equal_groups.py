"""Groups of stages that cost the same: one of them is planned for all, and the program is as if each was planned."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import pytest

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.file import to_bytes
from intloom.compiler.schedule import DEFAULT_MEMORY, compile_graph
from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.plan.groups import Goal, GroupCosts
from intloom.compiler.schedule.plan.tiling import choose_tilings
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.regress.graphs import GraphMaker, matmul, softmax
from tests.support.random_graph import random_graph

BASE = preset("base")
SMALL_SCRATCHPAD = BASE.replace(scratch_kib=16)
"""In which some groups of each graph do not fit."""
LAYERS = 12
"""With three stages or more in each, more than the longest group has."""


def repeated() -> IntGraph:
    """Layers that differ in a kernel, in a pool, in what reads their result later, or only in their weights."""
    maker = GraphMaker(1)
    x, results = maker.input(16, 24, 24), []
    for number in range(LAYERS):
        y = maker.conv(maker.conv(x, 32), 16, 5 if number == 5 else 3)
        y = maker.max_pool(y, 5 if number == 7 else 3, pad=2 if number == 7 else 1)
        x = maker.add(x, y)
        results += [y] if number in (2, 8) else []
    return maker.graph(maker.max_pool(maker.add(x, results[0]), 3), results[1])


def tables() -> IntGraph:
    """Pools with tables, which some neighbors have in common."""
    maker = GraphMaker(2)
    x = maker.input(16, 16, 16)
    for number in range(9):
        x = maker.apply_table(maker.max_pool(x, 3, pad=1))
        if number in (4, 5):
            maker.nodes[-1] = replace(maker.nodes[-1], table=bytes(range(256)))
    return maker.graph(x)


def operands() -> IntGraph:
    """Sums of two layers that read the same tensor, or one each."""
    maker = GraphMaker(3)
    results = []
    for number in range(8):
        a = maker.input(16, 24, 24)
        b = a if number in (2, 5) else maker.input(16, 24, 24)
        results.append(maker.add(maker.conv(a, 16, 3), maker.conv(b, 16, 3)))
    return maker.graph(*results)


def attention() -> IntGraph:
    """Heads behind each other."""
    maker = GraphMaker(4)
    x = maker.conv(maker.input(16, 16, 16), 16)
    for _ in range(8):
        x = maker.conv(matmul(maker, softmax(maker, matmul(maker, x, columns=256)), columns=16), 16)
    return maker.graph(x)


def graphs() -> Iterator[IntGraph]:
    yield from (repeated(), tables(), operands(), attention())
    yield from (random_graph(seed)[0] for seed in range(8))


def costs_of(graph: IntGraph, params: HardwareParams) -> tuple[Dataflow, GroupCosts]:
    stages = build_stages(graph, params, keep_intermediates=False)
    flow, goal = Dataflow(stages), Goal(memory=DEFAULT_MEMORY, word_beats=params.word_beats, stripe_heights=1)
    return flow, GroupCosts(flow, params, choose_tilings(stages), goal)


@pytest.mark.parametrize("graph", list(graphs()))
def test_the_earliest_group_has_the_same_costs(graph: IntGraph) -> None:
    flow, costs = costs_of(graph, SMALL_SCRATCHPAD)
    for first in range(len(flow.stages)):
        for stop in range(first + 2, min(first + 24, len(flow.stages)) + 1):
            same = costs.earliest(first, stop)
            if same != (first, stop):
                assert costs.whole(*same) == costs.whole(first, stop)
                assert costs.striped(*same, 4) == costs.striped(first, stop, 4)


@pytest.mark.parametrize("graph", list(graphs()))
def test_a_bound_refuses_no_group_at_its_own_cost(graph: IntGraph) -> None:
    flow, costs = costs_of(graph, SMALL_SCRATCHPAD)
    for first in range(len(flow.stages)):
        for stop in range(first + 2, min(first + 24, len(flow.stages)) + 1):
            for cost_within in (costs.whole, lambda a, b, limit=inf: costs.striped(a, b, 4, limit)):
                cost = cost_within(first, stop)
                if cost is not None:
                    # Sums of the same numbers in another order.
                    assert cost_within(first, stop, limit=cost * (1 + 1e-9)) == cost


def test_layers_that_repeat_are_planned_once() -> None:
    flow, costs = costs_of(attention(), BASE)
    pairs = [(k, k + 4) for k in range(len(flow.stages) - 4)]
    assert len({costs.earliest(*pair) for pair in pairs}) < len(pairs) / 2


def test_a_program_is_as_without_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = [to_bytes(compile_graph(graph, BASE)) for graph in graphs()]
    monkeypatch.setattr(Dataflow, "cost_keys", lambda flow, _reach: tuple(range(len(flow.stages))))
    assert shared == [to_bytes(compile_graph(graph, BASE)) for graph in graphs()]


@pytest.mark.parametrize("params", [BASE, SMALL_SCRATCHPAD])
def test_a_program_is_as_without_bounds(params: HardwareParams, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = [to_bytes(compile_graph(graph, params)) for graph in graphs()]
    whole, striped, in_parts = GroupCosts.whole, GroupCosts.striped, GroupCosts.in_parts
    monkeypatch.setattr(GroupCosts, "whole", lambda costs, first, stop, _limit: whole(costs, first, stop))
    monkeypatch.setattr(GroupCosts, "striped", lambda costs, *group_and_limit: striped(costs, *group_and_limit[:3]))
    monkeypatch.setattr(GroupCosts, "in_parts", lambda costs, first, _limit: in_parts(costs, first, inf))
    assert bounded == [to_bytes(compile_graph(graph, params)) for graph in graphs()]
