"""Tensors that are given out change onnxruntime's kernels: a part is judged by that model's laws, or by its own."""

from dataclasses import replace

import pytest

from intloom.compiler.ir import Add, IntGraph
from intloom.compiler.ir.serialize import to_text
from intloom.flow.subgraphs import subgraphs_between, subgraphs_with_extra_outputs
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import compare, folded

SHAPE = (1, 1, 256, 256)
SCALES = (0.0587264820933342, 0.03125, 0.0625)
"""Of their sums some lie next to ties, and fall to the one side with uint8, to the other with int8."""
ZEROS = (1, 0, -2)


@pytest.fixture(scope="module")
def model():
    """int8 sums. Each tensor has one reader, so onnxruntime makes them uint8 unless it gives them out."""
    m = OnnxMaker(None, "int8")
    values = [m.image(*SHAPE[1:], zero, scale).name for scale, zero in zip(SCALES[:2], ZEROS[:2], strict=True)]
    m.output(m.pair(m.node("Add", values)[0], SHAPE, SCALES[2], ZEROS[2]))
    return m.model()


def whole(graph):
    """A graph between its borders, as the one part that it then is."""
    (part,) = subgraphs_between(graph, {*graph.inputs, *graph.outputs})
    return to_text(part)


def judged(graph, model):
    """The part as it is judged when its borders are shown."""
    borders = {*graph.inputs, *graph.outputs}
    (part,) = subgraphs_with_extra_outputs(graph, model, borders, borders)
    return to_text(part)


def test_what_is_shown_has_other_laws(model):
    plain = folded(model).graph
    shown = folded(model, extra_outputs={*plain.inputs, *plain.outputs}).graph
    assert judged(plain, model) == whole(shown) != whole(plain)


def test_a_part_with_laws_of_its_own_is_judged_by_these(model):
    plain = folded(model).graph
    wrong = tuple(
        replace(n, affine=replace(n.affine, c=n.affine.c + 1)) if isinstance(n, Add) else n for n in plain.nodes
    )
    given = IntGraph(plain.name, plain.tensors, wrong, plain.inputs, plain.outputs)
    assert judged(given, model) == whole(given)


def test_both_equal_onnxruntime(model, seed):
    assert not compare(model, seed).different
