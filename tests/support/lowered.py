"""Checks a lowering: the integer graph equals onnxruntime, and the instruction simulator equals the golden model."""

import onnx

from intloom.hw.spec.params import HardwareParams, preset
from tests.support.golden import golden_program
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import Parity, assert_equal, folded, graph_inputs, random_feeds

_OPTIONS = preset("nano").replace(vector_multiply=True, vector_average=True)
WITH_SOFTMAX = preset("small").replace(vector_softmax=True, weight_sums=True)


def compared(maker: OnnxMaker, seed: int, params: HardwareParams = _OPTIONS) -> Parity:
    """A model without a host part, on every level below RTL."""
    model: onnx.ModelProto = maker.model()
    found = assert_equal(model, seed, folded(model, softmax=params.vector_softmax, norm=params.vector_norm))
    assert found.folded.final_host_part is None, [v for v in found.folded.assignments if v.target == "host"]
    inputs = graph_inputs(found.folded, random_feeds(model, seed))
    golden_program(found.folded.graph, inputs, params)
    return found


def kinds(found: Parity) -> list[str]:
    """The graph's operations by name."""
    return [type(n).__name__ for n in found.folded.graph.nodes]
