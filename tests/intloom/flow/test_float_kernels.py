"""Only ties in onnxruntime's float kernels are attributed; any other difference is reported with its layer."""

from dataclasses import replace

import numpy as np
import pytest

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.ir import Conv, IntGraph
from intloom.flow.checking import check_onnxruntime
from intloom.flow.float_kernels import FloatKernelAttribution, LayerComparison, attribute_differences, float_nodes
from intloom.flow.host import HostSide
from intloom.flow.subgraphs import subgraphs_between
from intloom.hw.spec.arith import RoundingMode
from intloom.images import seeded_input
from intloom.models import load_onnx
from intloom.quantization import ActivationType
from intloom.sim.golden import run_graph

SEEDS = 60
"""Which input rounds differently in float is chance; among so many, one does."""


class Case:
    def __init__(self, path):
        self.path = path
        self.folded = fold_model(load_model(path), match=RoundingMode.ORT)
        self.host = HostSide(self.folded)

    def feed(self, seed):
        feeds = {n: seeded_input(shape, seed) for n, shape in self.host.input_shapes().items()}
        return feeds, self.host.before(feeds)

    def differing(self, feeds, inputs):
        outputs = run_graph(self.folded.graph, inputs, match=RoundingMode.ORT)
        return sum(c.mismatches for c in check_onnxruntime(self.folded, self.path, feeds, outputs, RoundingMode.ORT))

    def with_node(self, index, **fields):
        graph = self.folded.graph
        nodes = list(graph.nodes)
        nodes[index] = replace(nodes[index], **fields)
        changed = IntGraph(graph.name, graph.tensors, tuple(nodes), graph.inputs, graph.outputs)
        return replace(self.folded, whole=changed, regions=(changed,))


@pytest.fixture(scope="module")
def in_float(quantized_models):
    """A network whose convolutions onnxruntime computes in float."""
    return Case(quantized_models("mini_yolo", activations=ActivationType.INT8))


@pytest.fixture(scope="module")
def in_integers(quantized_models):
    return Case(quantized_models("mini_yolo"))


def first_convolution(case):
    return next(n for n, node in enumerate(case.folded.graph.nodes) if isinstance(node, Conv))


def test_differing_outputs_are_attributed_to_float_kernels(in_float):
    runs = (in_float.feed(seed) for seed in range(SEEDS))
    feeds, inputs = next((f, i) for f, i in runs if in_float.differing(f, i))
    found = attribute_differences(in_float.folded, in_float.path, feeds, inputs)
    assert found.accepted, found.text
    assert "computes in float" in found.text
    rounded = [v for v in found.layers if v.different]
    assert all(v.in_float and v.ties for v in rounded)


def test_every_layer_is_compared(in_float, in_integers):
    for case in (in_float, in_integers):
        feeds, inputs = case.feed(0)
        graph = case.folded.graph
        found = attribute_differences(case.folded, case.path, feeds, inputs)
        visible = {v.tensor for v in found.layers} | set(graph.inputs)
        assert set(graph.outputs) <= visible
        compared = {n.name for part in subgraphs_between(graph, visible) for n in part.nodes}
        assert compared == {n.name for n in graph.nodes}


def test_onnxruntime_itself_says_what_it_computes_in_float(in_float, in_integers):
    convolutions = {
        o for n in in_float.folded.graph.nodes if isinstance(n, Conv) for o in n.origin if o.endswith("Conv")
    }
    assert convolutions & float_nodes(load_onnx(in_float.path))
    assert not convolutions & float_nodes(load_onnx(in_integers.path))


def test_a_wrong_table_is_not_attributed(in_integers):
    index = first_convolution(in_integers)
    table = bytearray(in_integers.folded.graph.nodes[index].table)
    feeds, inputs = in_integers.feed(0)
    # One entry of 256, one step off.
    common = int(
        np.bincount(
            run_graph(in_integers.folded.graph, inputs, match=RoundingMode.ORT, keep=True)[
                in_integers.folded.graph.nodes[index].output
            ]
            .view(np.uint8)
            .ravel()
        ).argmax()
    )
    at = table.index(common)
    table[at] = (common + 1) & 0xFF
    wrong = in_integers.with_node(index, table=bytes(table))
    found = attribute_differences(wrong, in_integers.path, feeds, inputs)
    assert not found.accepted
    assert in_integers.folded.graph.nodes[index].name in found.text


def test_a_wrong_bias_of_a_float_layer_is_not_attributed(in_float):
    index = first_convolution(in_float)
    bias = in_float.folded.graph.nodes[index].bias.copy()
    bias[0] += 1 << 5
    feeds, inputs = in_float.feed(0)
    found = attribute_differences(in_float.with_node(index, bias=bias), in_float.path, feeds, inputs)
    assert not found.accepted
    assert found.text.startswith("not attributed")


def comparison(**changes):
    given = {"layer": "l", "tensor": "t", "values": 30_000, "different": 3, "in_float": True, "ties": True}
    return LayerComparison(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"different": 4}, False),
        ({"in_float": False}, False),
        ({"in_float": False, "different": 0}, True),
        ({"ties": False}, False),
        ({"values": 100, "different": 1}, True),
        ({"values": 100, "different": 2}, False),
        ({"values": 100, "different": 2, "further": comparison()}, True),
        ({"values": 100, "different": 2, "further": comparison(different=4)}, False),
        ({"values": 100, "different": 2, "ties": False, "further": comparison()}, False),
    ],
)
def test_the_allowance(changes, holds):
    assert comparison(**changes).accepted is holds


def test_equal_layers_attribute_nothing():
    assert not FloatKernelAttribution((comparison(different=0),)).accepted
