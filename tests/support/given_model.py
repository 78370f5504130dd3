"""ONNX models of given nodes, with what an exporter writes around them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shapes = Mapping[str, Sequence[int | str] | None]


def given_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Shapes,
    outputs: Shapes,
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    types: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """Inputs and outputs are of float32 where `types` has nothing else; constants of float64 become float32."""
    ends = [
        [helper.make_tensor_value_info(n, (types or {}).get(n, TensorProto.FLOAT), s) for n, s in shapes.items()]
        for shapes in (inputs, outputs)
    ]
    arrays = {name: np.asarray(value) for name, value in (constants or {}).items()}
    narrow = {name: a.astype(np.float32) if a.dtype == np.float64 else a for name, a in arrays.items()}
    graph = helper.make_graph(nodes, "given", *ends, [numpy_helper.from_array(a, n) for n, a in narrow.items()])
    domains = sorted({node.domain for node in nodes} - {""})
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
