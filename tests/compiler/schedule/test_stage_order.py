"""Stages in depth-first order: sources first, one branch after the other."""

import pytest

from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.stages.build import build_stages
from intloom.hw.spec.params import preset
from tests.support.graph_maker import GraphMaker
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
