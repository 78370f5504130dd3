"""onnxruntime as the reference model: without log output, and with exact sums on every processor."""

from collections.abc import Iterable
from functools import cache
from itertools import count

import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

_SILENT = 4
_DISABLED = "optimization.disable_specified_optimizers"
_WHOLE_SUMS = ("session.x64quantprecision", "1")
"""Without it, x86 processors that lack VNNI add products of uint8 and int8 in pairs with saturation to 16 bits."""
_ROUNDED_ONCE = ("DoubleQDQPairsRemover",)
"""This optimizer replaces two successive roundings with different parameters by one with parameters of its own."""
_MERGED_NODES = ("CommonSubexpressionElimination",)
"""This optimizer joins the copies of a node that the integer form makes; their results then have several readers."""
_PLAIN_LAYOUT = ("NhwcTransformer",)
_SUBGRAPHS = ("QDQPropagationTransformer", "QDQFinalCleanupTransformer")
"""onnxruntime 1.31 aborts the process in these optimizers where a subgraph reads a value of a pair by name."""
_BLOCKED = b"block_size"
_FUSIONS = ("QDQSelectorActionTransformer",)
"""onnxruntime 1.31 fuses operators with blocked scales to integer kernels that do not support them."""
_SUBGRAPH_NAMES = (b"then_branch", b"else_branch", b"body")


def open_session(model: bytes, *, optimized: bool = True, threads: int = 0) -> onnxruntime.InferenceSession:
    """Open a session on the CPU, with onnxruntime's default optimizations or none; `threads` 0 means its default.

    Two default optimizations are always off. One merges successive QDQ pairs, which changes results. The other one
    merges equal nodes; onnxruntime has no integer kernel for a node whose unrounded result has other readers.

    On processors with VNNI, neither session entry changes a result. On other x86 processors, onnxruntime converts int8
    weights and their zero points to uint8 for exact sums, but those of stacked matrices, which are converted before.
    This conversion fails for a tensor that two nodes read, so
    the second attempt gives every node its own copy. onnxruntime also fails to load some int8 convolutions that its
    own optimizations produce with this entry or with its NHWC layout; the last attempt disables both. The sums of
    these convolutions are exact without the entry.
    """
    if _MATRIX_PRODUCT.encode() in model and saturates_sums():
        model = _with_unsigned_weights(model)
    disabled: tuple[str, ...] = _ROUNDED_ONCE + _MERGED_NODES
    if _has_subgraphs(model):
        disabled += _SUBGRAPHS
    if _BLOCKED in model:
        disabled += _FUSIONS
    whole = _options(disabled, optimized, threads, True)
    try:
        return _session(model, whole)
    except (NoKernel, Fail):
        pass
    try:
        return _session(_unshared(model), whole)
    except (NoKernel, Fail):
        return _session(model, _options((*disabled, *_PLAIN_LAYOUT), optimized, threads, False))


def plain_session(model: bytes) -> onnxruntime.InferenceSession:
    """Open a session on the CPU with onnxruntime's defaults, as users open it, but without log output."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    avoid_abort(model, options)
    return _session(model, options)


@cache
def saturates_sums() -> bool:
    """Whether onnxruntime by default saturates sums of two products on this processor, as on x86 without VNNI."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [1, _PROBED])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, 1])
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.INT8, [_PROBED, 1], [127] * _PROBED)
    node = onnx.helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "probe", [x], [y], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    (total,) = plain_session(model.SerializeToString()).run(None, {"x": np.full((1, _PROBED), 255, np.uint8)})
    return bool(total.item() != 255 * 127 * _PROBED)


_MATRIX_PRODUCT = "QLinearMatMul"
_PROBED = 64
"""Products of a sum whose saturation is tried."""


def avoid_abort(model: bytes, options: onnxruntime.SessionOptions) -> None:
    """Disable the optimizers that abort the process on some models with subgraphs."""
    if _has_subgraphs(model):
        options.add_session_config_entry(_DISABLED, ";".join(_SUBGRAPHS))


def _has_subgraphs(data: bytes) -> bool:
    if not any(name in data for name in _SUBGRAPH_NAMES):
        return False
    return any(a.HasField("g") for n in onnx.ModelProto.FromString(data).graph.node for a in n.attribute)


def _with_unsigned_weights(data: bytes) -> bytes:
    """Store int8 matrices that multiply uint8 values as uint8; onnxruntime 1.31 does so itself in two dimensions."""
    model = onnx.ModelProto.FromString(data)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)} | constants.keys()
    for node in model.graph.node:
        if node.op_type != _MATRIX_PRODUCT or not {node.input[2], node.input[3], node.input[5]} <= constants.keys():
            continue
        kinds = [constants[node.input[k]].data_type for k in (2, 3, 5)]
        if kinds != [onnx.TensorProto.UINT8, onnx.TensorProto.INT8, onnx.TensorProto.INT8]:
            continue
        for k in (3, 5):
            values = onnx.numpy_helper.to_array(constants[node.input[k]])
            node.input[k] = _unused_name(node.input[k], taken)
            unsigned = (values.astype(np.int16) + 128).astype(np.uint8)
            model.graph.initializer.append(onnx.numpy_helper.from_array(unsigned, node.input[k]))
    serialized: bytes = model.SerializeToString()
    return serialized


def _unshared(data: bytes) -> bytes:
    """Copy the model with a separate int8 initializer and DequantizeLinear for every node that reads one."""
    model = onnx.ModelProto.FromString(data)
    stored = {tensor.name: tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)} | stored.keys()
    pairs = {n.output[0]: n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in stored}
    copies = [new for name, original in pairs.items() for new in _copied_node(model.graph, name, original, taken)]
    # Copies come first: they read initializers only.
    nodes = [*copies, *model.graph.node]
    for name, tensor in stored.items():
        for node, position in _readers(nodes, name)[1:]:
            copy = model.graph.initializer.add()
            copy.CopyFrom(tensor)
            copy.name = node.input[position] = _unused_name(name, taken)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    serialized: bytes = model.SerializeToString()
    return serialized


def _copied_node(graph: onnx.GraphProto, name: str, original: onnx.NodeProto, taken: set[str]) -> list[onnx.NodeProto]:
    """A copy of the node that computes `name` for each reader but the first, which now reads it."""
    copies = []
    for node, position in _readers(graph.node, name)[1:]:
        copy = onnx.NodeProto()
        copy.CopyFrom(original)
        copy.output[0] = node.input[position] = _unused_name(name, taken)
        copy.name = copy.output[0]
        copies.append(copy)
    return copies


def _readers(nodes: Iterable[onnx.NodeProto], name: str) -> list[tuple[onnx.NodeProto, int]]:
    return [(node, position) for node in nodes for position, read in enumerate(node.input) if read == name]


def _unused_name(like: str, taken: set[str]) -> str:
    """A name that no value has; it is added to the names that are taken."""
    name = next(new for n in count(2) if (new := f"{like}_{n}") not in taken)
    taken.add(name)
    return name


def _session(model: bytes, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


@cache
def _options(disabled: tuple[str, ...], optimized: bool, threads: int, whole_sums: bool) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    if whole_sums:
        options.add_session_config_entry(*_WHOLE_SUMS)
    if disabled:
        options.add_session_config_entry(_DISABLED, ";".join(disabled))
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
