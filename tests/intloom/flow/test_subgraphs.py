"""Subgraphs follow the kernels that onnxruntime chooses for a model with extra outputs; changed subgraphs are kept."""

from dataclasses import replace

import pytest

from intloom.compiler.ir import Add, IntGraph
from intloom.compiler.ir.serialize import to_text
from intloom.flow.subgraphs import subgraphs_between, subgraphs_with_extra_outputs
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import compare, folded

SHAPE = (1, 1, 256, 256)
SCALES = (0.0587264820933342, 0.03125, 0.0625)
"""Some sums of these are close to ties, which uint8 and int8 kernels round differently."""
ZEROS = (1, 0, -2)


@pytest.fixture(scope="module")
def model():
    """int8 sums. Each tensor has one reader, so onnxruntime computes them in uint8 unless they are outputs."""
    m = OnnxMaker(None, "int8")
    values = [m.image(*SHAPE[1:], zero, scale).name for scale, zero in zip(SCALES[:2], ZEROS[:2], strict=True)]
    m.output(m.pair(m.node("Add", values)[0], SHAPE, SCALES[2], ZEROS[2]))
    return m.model()


def whole(graph):
    """The whole graph as one subgraph, as text."""
    (part,) = subgraphs_between(graph, {*graph.inputs, *graph.outputs})
    return to_text(part)


def compared(graph, model):
    """The subgraph that is compared if the graph's inputs and outputs are extra outputs of the model."""
    borders = {*graph.inputs, *graph.outputs}
    (part,) = subgraphs_with_extra_outputs(graph, model, borders, borders)
    return to_text(part)


def test_extra_outputs_change_the_affine_operations(model):
    plain = folded(model).graph
    shown = folded(model, extra_outputs={*plain.inputs, *plain.outputs}).graph
    assert compared(plain, model) == whole(shown) != whole(plain)


def test_a_changed_subgraph_is_kept(model):
    plain = folded(model).graph
    wrong = tuple(
        replace(n, affine=replace(n.affine, c=n.affine.c + 1)) if isinstance(n, Add) else n for n in plain.nodes
    )
    given = IntGraph(plain.name, plain.tensors, wrong, plain.inputs, plain.outputs)
    assert compared(given, model) == whole(given)


def test_both_equal_onnxruntime(model, seed):
    assert not compare(model, seed).different
