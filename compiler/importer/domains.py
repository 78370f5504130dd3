"""Operators that exist in two domains with one meaning."""

import numpy as np
import onnx
from onnx import numpy_helper

from intloom.compiler.importer.model import MICROSOFT

_COMMON = frozenset({"QuantizeLinear", "DequantizeLinear"})
_TYPES = frozenset({onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32})
_SMALL = {onnx.TensorProto.INT4: np.int8, onnx.TensorProto.UINT4: np.uint8}
_AXIS_OPSET = 13
"""Opset from which the standard operators have scales along an axis."""


def to_standard_domain(proto: onnx.ModelProto) -> None:
    """Move QuantizeLinear and DequantizeLinear of 8-bit values from com.microsoft to the standard domain.

    Shape inference only knows the latter. Constants of 4 bits, which the standard operators have from opset 21 only,
    become bytes. Nodes that the standard operators of the model's opset cannot express stay.
    """
    stored = {t.name: t for t in proto.graph.initializer}
    opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)
    for node in proto.graph.node:
        if node.domain != MICROSOFT or node.op_type not in _COMMON or len(node.input) != 3:
            continue
        if all(name in stored for name in node.input):
            _widen(stored[node.input[0]])
            _widen(stored[node.input[2]])
        scale, zero = (stored.get(name) for name in node.input[1:])
        if scale is None or zero is None or zero.data_type not in _TYPES:
            continue
        if scale.data_type != onnx.TensorProto.FLOAT or (opset < _AXIS_OPSET and list(scale.dims) not in ([], [1])):
            continue
        node.domain = ""
        if opset < _AXIS_OPSET:
            del node.attribute[:]


def _widen(tensor: onnx.TensorProto) -> None:
    """Store values of 4 bits as bytes."""
    if tensor.data_type in _SMALL:
        values = numpy_helper.to_array(tensor).astype(_SMALL[tensor.data_type])
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
