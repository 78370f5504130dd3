"""Where tensors lie: parts of a concatenation in their target, slices as views."""

from intloom.compiler.program.program import Layout
from intloom.compiler.schedule.stages.placement import Placement
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker

BASE = preset("base")


def test_parts_that_fill_words_lie_inside_the_concatenation():
    m = GraphMaker(0)
    x = m.input(16, 4, 4)
    a, b = m.conv(x, 16), m.conv(x, 20)
    whole = m.concat(a, b)
    placement = Placement(m.graph(whole), BASE)
    assert placement.view(a) == placement.view(whole).part(0, 16)
    assert placement.view(b) == placement.view(whole).part(16, 36)


def test_a_concatenation_inside_another_lies_inside_it():
    m = GraphMaker(1)
    x = m.input(16, 4, 4)
    inner = m.concat(m.conv(x, 16), m.conv(x, 16))
    outer = m.concat(m.conv(x, 32), inner)
    placement = Placement(m.graph(outer), BASE)
    assert placement.view(inner) == placement.view(outer).part(32, 64)
    assert len(placement.buffers) == 1


def test_a_tensor_whose_slices_are_parts_lies_inside_too():
    m = GraphMaker(2)
    y = m.conv(m.input(16, 4, 4), 32)
    a, b = m.slice(y, 0, 16), m.slice(y, 16, 32)
    whole = m.concat(m.conv(b, 16), a, b)
    placement = Placement(m.graph(whole), BASE)
    assert placement.view(y) == placement.view(whole).part(16, 48)
    assert placement.view(b) == placement.view(whole).part(32, 48)


def test_a_part_that_ends_inside_a_word_keeps_all_parts_out():
    m = GraphMaker(3)
    x = m.input(16, 4, 4)
    a, b = m.conv(x, 20), m.conv(x, 16)
    whole = m.concat(a, b)
    placement = Placement(m.graph(whole), BASE)
    assert len({id(placement.view(t).buffer) for t in (a, b, whole)}) == 3


def test_graph_inputs_and_second_uses_stay_where_they_are():
    m = GraphMaker(4)
    x = m.input(16, 4, 4)
    y = m.conv(x, 16)
    first, second = m.concat(x, y), m.concat(y, y)
    placement = Placement(m.graph(first, second), BASE)
    assert placement.view(x).buffer is not placement.view(first).buffer
    assert placement.view(y).buffer is placement.view(second).buffer


def test_slices_inside_a_word_get_their_own_buffer():
    m = GraphMaker(5)
    y = m.conv(m.input(16, 4, 4), 32)
    a, b = m.slice(y, 8, 24), m.slice(y, 16, 20)
    placement = Placement(m.graph(a, b), BASE)
    assert placement.view(a).buffer is not placement.view(y).buffer
    assert placement.view(b) == placement.view(y).part(16, 20)


def test_only_inputs_of_few_channels_that_meet_plain_convolutions_are_packed():
    m = GraphMaker(6)
    x, wide, pooled = m.input(3, 8, 8), m.input(5, 8, 8), m.input(3, 8, 8)
    outputs = m.conv(x, 16, 3), m.conv(wide, 16, 3), m.max_pool(pooled, 2)
    graph = m.graph(*outputs)
    placement = Placement(graph, BASE)
    layouts = [placement.view(t).buffer.layout for t in (x, wide, pooled)]
    assert layouts == [Layout.PIXELS4, Layout.BLOCKED, Layout.BLOCKED]
    assert Placement(graph, preset("nano")).view(x).buffer.layout is Layout.BLOCKED
