"""Operators that exist in two domains with one meaning."""

import onnx

from intloom.compiler.importer.model import MICROSOFT

_COMMON = frozenset({"QuantizeLinear", "DequantizeLinear"})
_TYPES = frozenset({onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32})
_AXIS_OPSET = 13
"""Opset from which the standard operators have scales along an axis."""


def to_standard_domain(proto: onnx.ModelProto) -> None:
    """Move QuantizeLinear and DequantizeLinear of 8-bit values from com.microsoft to the standard domain.

    Shape inference only knows the latter. Nodes that the standard operators of the model's opset cannot express stay.
    """
    stored = {t.name: t for t in proto.graph.initializer}
    opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)
    for node in proto.graph.node:
        if node.domain != MICROSOFT or node.op_type not in _COMMON or len(node.input) != 3:
            continue
        scale, zero = (stored.get(name) for name in node.input[1:])
        if scale is None or zero is None or zero.data_type not in _TYPES:
            continue
        if scale.data_type != onnx.TensorProto.FLOAT or (opset < _AXIS_OPSET and list(scale.dims) not in ([], [1])):
            continue
        node.domain = ""
        if opset < _AXIS_OPSET:
            del node.attribute[:]
