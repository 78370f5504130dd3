"""Operators of onnxruntime that the ONNX library does not know: their domain, and type and shape of their results.

onnxruntime infers the shapes of its own operators when it opens a session. Shape inference of ONNX therefore runs with
a stand-in node for each of them, whose inference function opens a session with this one operator.
"""

from functools import lru_cache
from math import prod

import onnx
import onnxruntime
from onnx import helper
from onnx.shape_inference import InferenceContext

from intloom.compiler.importer.guarded_inference import DOMAIN, add_schema, guarded_inference
from intloom.compiler.importer.model import MICROSOFT, STANDARD

_IN_STANDARD_DOMAIN = frozenset({"SimplifiedLayerNormalization"})
"""onnxruntime registers them in ONNX's own domain."""
_STAND_IN, _NODE = "Contributed", "node"
_OPSETS = [helper.make_opsetid(STANDARD, 21), helper.make_opsetid(MICROSOFT, 1)]
_SILENT = 4
_LARGEST_SHAPE = 64
"""Elements of a constant that may state a shape, an axis or a size."""
_LARGEST_GRAPH = 1 << 16
"""Bytes of a node; larger ones hold tensors or subgraphs, which no operator of the domain needs for its shape."""


def mark_contributed(proto: onnx.ModelProto) -> None:
    """Move operators that ONNX's own domain lacks to com.microsoft, for ONNX's checks; see `domain_of`."""
    contributed = [
        n for n in proto.graph.node if n.op_type in _IN_STANDARD_DOMAIN and n.domain in (STANDARD, "ai.onnx")
    ]
    for node in contributed:
        node.domain = MICROSOFT
    if contributed and all(o.domain != MICROSOFT for o in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(MICROSOFT, 1))


def domain_of(node: onnx.NodeProto) -> str:
    """The domain in which onnxruntime has the operator."""
    standard = node.domain == "ai.onnx" or (node.domain == MICROSOFT and node.op_type in _IN_STANDARD_DOMAIN)
    return STANDARD if standard else node.domain


def infer_with_contributed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Shape inference, including the operators of com.microsoft."""
    kept = {i: node for i, node in enumerate(proto.graph.node) if node.domain == MICROSOFT}
    if not kept:
        return guarded_inference(proto)
    add_schema(_STAND_IN, _infer_node)
    replaced = onnx.ModelProto()
    replaced.CopyFrom(proto)
    replaced.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    for i, node in kept.items():
        alone = onnx.NodeProto()
        alone.CopyFrom(node)
        alone.domain = domain_of(node)
        attributes = {_NODE: alone.SerializeToString(deterministic=True)}
        stand_in = helper.make_node(_STAND_IN, node.input, node.output, domain=DOMAIN, **attributes)
        replaced.graph.node[i].CopyFrom(stand_in)
    inferred = guarded_inference(replaced)
    del inferred.opset_import[-1]
    for i, node in kept.items():
        inferred.graph.node[i].CopyFrom(node)
    return inferred


def _infer_node(context: InferenceContext) -> None:
    """Inference function of the stand-in."""
    data = context.get_attribute(_NODE).s
    node = onnx.NodeProto.FromString(data)
    inputs, sized = [], True
    for index, name in enumerate(node.input):
        kind = context.get_input_type(index) if name else None
        if name and not _is_tensor(kind):
            return
        sized = sized and (kind is None or kind.tensor_type.HasField("shape"))
        inputs.append(_input(context, index, name, kind) if name else b"")
    if len(data) <= _LARGEST_GRAPH:
        for index, result in enumerate(_result_types(data, tuple(inputs))):
            kind = onnx.TypeProto.FromString(result)
            if not sized:
                # Not even the rank is known. The type is: ONNX's QLinearMatMul requires it.
                kind.tensor_type.ClearField("shape")
            context.set_output_type(index, kind)


def _is_tensor(kind: onnx.TypeProto | None) -> bool:
    return kind is not None and kind.tensor_type.elem_type != 0


def _input(context: InferenceContext, index: int, name: str, kind: onnx.TypeProto) -> bytes:
    """The input as a graph of its own: a constant that may state a shape, or a value with a type."""
    graph = onnx.GraphProto()
    small = prod(d.dim_value for d in kind.tensor_type.shape.dim) <= _LARGEST_SHAPE
    constant = context.get_input_data(index) if small else None
    if constant is not None:
        tensor = graph.initializer.add()
        tensor.CopyFrom(constant)
        tensor.name = name
    else:
        graph.input.append(helper.make_value_info(name, kind))
    return bytes(graph.SerializeToString(deterministic=True))


@lru_cache(maxsize=4096)
def _result_types(data: bytes, inputs: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Types of a node's results by onnxruntime; empty where it does not support the node."""
    graph = onnx.GraphProto(name="node", node=[onnx.NodeProto.FromString(data)])
    node = graph.node[0]
    # An operator may read a value twice.
    for stored in dict.fromkeys(inputs):
        graph.MergeFromString(stored)
    graph.output.extend(helper.make_empty_tensor_value_info(name) for name in node.output if name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = helper.make_model(graph, opset_imports=_OPSETS, ir_version=10).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001  # onnxruntime's exceptions have no common base class
        return ()
    types = {value.name: _type(value) for value in session.get_outputs()}
    return tuple(types.get(name, b"") for name in node.output)


def _type(value: onnxruntime.NodeArg) -> bytes:
    """The type of an output of a session, serialized; empty if it is no tensor of known element type."""
    name = value.type.removeprefix("tensor(").removesuffix(")").upper()
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  # the enum is no mapping
        return b""
    sizes = [size if isinstance(size, int) else None for size in value.shape]
    code = onnx.TensorProto.DataType.Value(name)
    return bytes(helper.make_tensor_type_proto(code, sizes).SerializeToString(deterministic=True))
