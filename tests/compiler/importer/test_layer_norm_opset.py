"""onnxruntime's optimizer writes LayerNormalization into ONNX's domain, whatever the opset of the file is."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.importer import from_proto, to_bytes
from intloom.compiler.reference import open_session


@pytest.mark.parametrize("opset", [10, 12, 16])
def test_a_file_of_an_older_opset_loads(opset: int, rng) -> None:
    gamma = np.random.default_rng(rng.getrandbits(32)).normal(size=8).astype(np.float32)
    nodes = [helper.make_node("LayerNormalization", ["x", "gamma"], ["y"], epsilon=1e-3)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, 4, 8)) for n in "xy")
    graph = helper.make_graph(nodes, "norm", [x], [y], [numpy_helper.from_array(gamma, "gamma")])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    model = from_proto(onnx.ModelProto.FromString(file.SerializeToString()), name="norm")
    assert (model.opset, model.nodes[0].domain, model.shape("y")) == (17, "", (1, 4, 8))
    feed = {"x": np.linspace(-3, 5, 32, dtype=np.float32).reshape(1, 4, 8)}
    made, expected = (open_session(data).run(None, feed)[0] for data in (to_bytes(model), file.SerializeToString()))
    np.testing.assert_array_equal(made, expected)
