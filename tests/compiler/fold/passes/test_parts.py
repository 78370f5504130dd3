"""Parts of tensors are computed apart, with the same bytes: tables reach the array, and no part waits for another."""

from collections import Counter

import numpy as np
import pytest

from intloom.compiler.fold.passes.merge_tables import merge_tables
from intloom.compiler.fold.passes.parts import compute_parts_apart
from intloom.compiler.ir import Add, Concat, Conv, Slice, Table
from intloom.compiler.ir.graph import without_dead_nodes
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker


def apart(maker, *outputs):
    """The graph after the passes, which must give the same bytes, and how many nodes it has of each class."""
    graph = maker.graph(*outputs)
    made = merge_tables(without_dead_nodes(compute_parts_apart(graph)))
    inputs = maker.random_inputs()
    before, after = (run_graph(g, inputs, match=RoundingMode.ORT) for g in (graph, made))
    for name in outputs:
        np.testing.assert_array_equal(after[name], before[name])
    return made, Counter(type(n) for n in made.nodes)


@pytest.fixture
def maker(seed):
    return GraphMaker(seed)


@pytest.fixture(params=range(3))
def seed(request):
    return request.param


@pytest.fixture
def x(maker):
    return maker.input(16, 5, 4)


def test_tables_and_sums_of_concatenations_become_those_of_the_parts(maker, x):
    a, b = (maker.concat(maker.conv(x, 16), maker.conv(x, 32)) for _ in range(2))
    made, kinds = apart(maker, maker.conv(maker.apply_table(maker.add(a, maker.apply_table(b))), 8))
    assert kinds == {Conv: 5, Add: 2, Concat: 1}
    # The sum needs no part but its own.
    first = next(n for n in made.nodes if isinstance(n, Add))
    assert {type(made.producer(v)) for v in first.inputs} == {Conv}


def test_parts_of_other_sizes_stay_together(maker, x):
    a = maker.concat(maker.conv(x, 16), maker.conv(x, 32))
    b = maker.concat(maker.conv(x, 32), maker.conv(x, 16))
    _, kinds = apart(maker, maker.conv(maker.add(a, b), 8))
    assert kinds == {Conv: 5, Add: 1, Concat: 2}


def test_a_pixel_is_broadcast_over_each_part(maker, x):
    image = maker.concat(maker.conv(x, 16), maker.conv(x, 16))
    pixel = maker.input(16, 1, 1)
    _, kinds = apart(maker, maker.conv(maker.mul(image, maker.concat(pixel, pixel)), 8))
    assert kinds[Concat] == 1


@pytest.mark.parametrize(("start", "stop"), [(0, 16), (16, 40), (40, 48), (3, 7)])
def test_channels_that_only_a_table_reads_become_a_convolution(maker, x, start, stop):
    whole = maker.conv(x, 48, table=False)
    rest = [maker.slice(whole, a, b) for a, b in ((0, start), (stop, 48)) if a < b]
    made, kinds = apart(maker, maker.apply_table(maker.slice(whole, start, stop)), *(maker.conv(r, 8) for r in rest))
    assert kinds == {Conv: 1 + 2 * len(rest)}
    assert {len(n.weights) for n in made.nodes if not n.inputs[0].startswith(whole)} >= {stop - start}


def test_slices_of_a_table_are_slices_of_its_convolution(maker, x):
    whole = maker.conv(x, 48, table=False)
    table = maker.apply_table(whole)
    heads = [maker.conv(maker.slice(table, k, k + 8), 8) for k in (0, 8)]
    _, kinds = apart(maker, *heads, maker.conv(maker.slice(whole, 16, 48), 8))
    assert kinds == {Conv: 5, Slice: 2}


def test_channels_with_another_reader_stay(maker, x):
    whole = maker.conv(x, 48, table=False)
    table = maker.apply_table(maker.slice(whole, 0, 16))
    _, kinds = apart(maker, table, maker.conv(maker.slice(whole, 8, 48), 8))
    assert kinds == {Conv: 2, Slice: 2, Table: 1}


def test_an_output_keeps_its_name(maker, x):
    whole = maker.concat(maker.conv(x, 16), maker.conv(x, 16))
    made, kinds = apart(maker, maker.slice(whole, 16, 32), maker.apply_table(whole))
    assert kinds[Slice] == 1
    assert made.outputs == maker.graph(*made.outputs).outputs
