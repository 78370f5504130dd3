"""Stages in depth-first order: sources first, one branch after the other, and other work in parallel with a Softmax."""

from dataclasses import replace

import pytest

from intloom.compiler.schedule import DEFAULT_MEMORY
from intloom.compiler.schedule.plan import make_plan
from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.plan.groups import Goal
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker, matmul, softmax
from tests.support.golden import golden_program
from tests.support.random_graph import random_graph

BASE = preset("base")


def stages_of(graph):
    return build_stages(graph, BASE, keep_intermediates=False)


def test_branches_that_alternate_in_the_graph_follow_each_other():
    maker = GraphMaker(1)
    x = maker.conv(maker.input(16, 8, 8), 16)
    a = b = x
    for _ in range(3):
        a, b = maker.conv(a, 16, 3), maker.conv(b, 16, 3)
    names = [n.name for n in maker.nodes]
    order = [s.name for s in stages_of(maker.graph(a, b)).stages]
    assert order == [names[0], *names[1::2], *names[2::2]]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_stage_reads_was_written_before(seed):
    flow = Dataflow(stages_of(random_graph(seed)[0]))
    for reads in flow.reads:
        for read in reads:
            for write in flow.writers[read.buffer]:
                assert write.index < read.index or not set(write.blocks) & set(read.blocks)


class Branches:
    """Two independent branches: a layer, attention over 256 pixels, and two layers."""

    def __init__(self, pixels: int = 16):
        self.maker = maker = GraphMaker(1)
        self.first, self.attention, self.after = [], [], []
        outputs = []
        for _ in range(2):
            x = maker.conv(maker.input(16, pixels, pixels), 16)
            self.first.append(maker.nodes[-1].name)
            y = matmul(maker, softmax(maker, matmul(maker, x, columns=pixels * pixels)), columns=16)
            self.attention.append([n.name for n in maker.nodes[-3:]])
            outputs.append(maker.conv(maker.conv(y, 32), 16))
            self.after.append([n.name for n in maker.nodes[-2:]])
        self.graph = maker.graph(*outputs)


def test_layers_of_another_branch_come_before_the_products_of_a_softmax():
    made = Branches()
    order = [s.name for s in stages_of(made.graph).stages]
    (a, b), (before, after) = made.attention, made.after
    assert order == [*made.first, *a, *before, *b, *after]


def test_they_run_in_stripes_with_it():
    made, goal = Branches(), Goal(memory=DEFAULT_MEMORY, word_beats=BASE.word_beats, stripe_heights=1)
    slots = make_plan(stages_of(made.graph), goal)
    groups = [{s.name for s in slot.stages} for slot in slots if slot.stripes is not None]
    assert any({made.attention[1][1], *made.after[0]} <= group for group in groups)


def test_a_short_softmax_changes_no_order():
    made = Branches(pixels=4)
    order = [s.name for s in stages_of(made.graph).stages]
    assert order == [name for k in range(2) for name in (made.first[k], *made.attention[k], *made.after[k])]


def test_a_product_does_not_run_with_it_if_its_weights_are_made_there():
    maker = GraphMaker(1)
    scores = matmul(maker, maker.conv(maker.input(16, 16, 16), 16), columns=256)
    last = matmul(maker, softmax(maker, scores), columns=16)
    keys = maker.conv(maker.input(16, 1, 64), 16)
    product = matmul(maker, maker.input(16, 4, 4), columns=64)
    maker.nodes[-1] = replace(maker.nodes[-1], inputs=(maker.nodes[-1].inputs[0], keys))
    first, *attention, layer, weighted = (n.name for n in maker.nodes)
    order = [s.name for s in stages_of(maker.graph(last, product)).stages]
    assert order == [first, layer, *attention, weighted]


@pytest.mark.parametrize(("height", "softmax_first"), [(1, True), (4, False)])
def test_the_array_makes_a_stationary_operand_during_the_softmax_of_one_row(height: int, softmax_first: bool):
    maker = GraphMaker(1)
    moving = softmax(maker, matmul(maker, maker.input(16, height, 64), columns=64))
    stationary = maker.conv(maker.input(64, 1, 16), 64)
    product = matmul(maker, moving, columns=16)
    maker.nodes[-1] = replace(maker.nodes[-1], inputs=(moving, stationary))
    scores, vector, made, last = (n.name for n in maker.nodes)
    order = [s.name for s in stages_of(maker.graph(product)).stages]
    assert order == ([scores, vector, made, last] if softmax_first else [made, scores, vector, last])


@pytest.mark.parametrize("name", ["nano", "small", "base"])
def test_the_bytes_are_those_of_the_golden_model(name):
    made, params = Branches(), preset(name).replace(vector_softmax=True, weight_sums=True)
    golden_program(made.graph, made.maker.random_inputs(), params)
