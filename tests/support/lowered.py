"""Checks a lowering: the integer graph equals onnxruntime, and the instruction simulator equals the golden model."""

import numpy as np
import onnx

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.backend import IsaBackend
from intloom.sim.golden import run_graph
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
    golden = run_graph(found.folded.graph, inputs, match=RoundingMode.ORT)
    program = compile_graph(found.folded.graph, params)
    made = IsaBackend(check=True).run(program, inputs).outputs
    for name, values in golden.items():
        np.testing.assert_array_equal(made[name], values, err_msg=name)
    return found


def kinds(found: Parity) -> list[str]:
    """The graph's operations by name."""
    return [type(n).__name__ for n in found.folded.graph.nodes]
