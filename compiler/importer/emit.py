"""Export of a `Model` to ONNX, for host parts, for evaluation by onnxruntime and for shape inference."""

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from intloom.compiler.importer.model import Attribute, Constant, Model, OnnxNode, Opaque, ValueType

_SMALL_INTEGERS = {"int4", "uint4", "int2", "uint2"}
NEWEST_IR = 10


def to_bytes(model: Model) -> bytes:
    """Serialize the model as a ModelProto."""
    return bytes(to_proto(model).SerializeToString())


def cut(model: Model, nodes: Iterable[OnnxNode], inputs: Iterable[str], outputs: Iterable[str]) -> Model:
    """Extract the subgraph of `nodes` between `inputs` and `outputs`, with the constants that it reads."""
    kept = tuple(nodes)
    inputs, outputs = tuple(inputs), tuple(outputs)
    read = {name for n in kept for name in n.reads} | set(outputs)
    constants = {name: c for name, c in model.constants.items() if name in read and name not in inputs}
    return Model(
        name=model.name,
        nodes=kept,
        inputs=inputs,
        outputs=outputs,
        constants=constants,
        types=model.types,
        opsets=model.opsets,
        source=model.source,
    )


def to_proto(model: Model) -> onnx.ModelProto:
    """Convert the model to a ModelProto; used only inside this package."""
    domains = {n.domain for n in model.nodes} | {""}
    graph = helper.make_graph(
        [_node(n) for n in model.nodes],
        model.name or "model",
        [_value(name, model) for name in model.inputs],
        [_value(name, model) for name in model.outputs],
        [_tensor(name, c) for name, c in model.constants.items()],
        value_info=_inner_values(model),
    )
    imports = [helper.make_opsetid(d, v) for d, v in model.opsets.items() if d in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=NEWEST_IR)


def _inner_values(model: Model) -> list[onnx.ValueInfoProto]:
    """Types of the values of operators in other domains, which ONNX shape inference does not compute."""
    made = (v for n in model.nodes if n.domain for v in n.outputs if v and v not in model.outputs)
    return [_value(v, model) for v in made if model.shape(v) is not None]


def _value(name: str, model: Model) -> onnx.ValueInfoProto:
    known = model.types.get(name, ValueType("", None))
    if not known.dtype:
        return helper.make_empty_tensor_value_info(name)
    return helper.make_tensor_value_info(name, _code(known.dtype), known.shape)


def _code(dtype: str) -> int:
    return int(onnx.TensorProto.DataType.Value(dtype.upper()))


def _tensor(name: str, constant: Constant) -> onnx.TensorProto:
    # NumPy has no such types, so the element type must be given; `make_tensor` packs the values.
    if constant.dtype in _SMALL_INTEGERS:
        return helper.make_tensor(name, _code(constant.dtype), constant.array.shape, constant.array.ravel())
    return numpy_helper.from_array(np.asarray(constant.array), name)


def _node(node: OnnxNode) -> onnx.NodeProto:
    proto = helper.make_node(node.op, node.inputs, node.outputs, name=node.name, domain=node.domain)
    proto.attribute.extend(_attribute(name, value) for name, value in node.attributes.items())
    return proto


def _attribute(name: str, value: Attribute) -> onnx.AttributeProto:
    if isinstance(value, Opaque):
        return onnx.AttributeProto.FromString(value.data)
    if isinstance(value, Constant):
        return helper.make_attribute(name, _tensor(name, value))
    # `make_attribute` cannot infer the type of an empty list.
    if isinstance(value, tuple) and not value:
        return helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS)
    return helper.make_attribute(name, value)
