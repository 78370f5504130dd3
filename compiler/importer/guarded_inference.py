"""Shape inference of ONNX that stops with an error where the library would abort the process.

Slice of onnx 1.23 calls `std::clamp` with the bounds 0 and the size of the dimension. With a negative size, which a
convolution with a kernel larger than its input has, an assertion in C++ ends the process. So inference runs with a
guard node before each Slice, whose inference function checks the sizes that the operator is about to read.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import helper
from onnx.shape_inference import InferenceContext

from intloom.common.errors import ModelError

_DOMAIN, _GUARD = "intloom.importer", "SizeGuard"
_GUARDED = frozenset({"Slice"})
_NODE, _VALUE = "guarded_node", "guarded_value"


def guarded_inference(proto: onnx.ModelProto, *, check_type: bool = True, strict: bool = True) -> onnx.ModelProto:
    """Infer all shapes, with propagation of shape data; `strict` makes the library's own findings an error.

    Raises
    ------
    ModelError
        A value that a guarded operator reads has a negative size.
    """
    if not any(_needs_guard(n) for g in _graphs(proto.graph) for n in g.node):
        return _inferred(proto, check_type, strict)
    _register()
    guarded = onnx.ModelProto()
    guarded.CopyFrom(proto)
    guarded.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    for graph in list(_graphs(guarded.graph)):
        _add_guards(graph)
    result = _inferred(guarded, check_type, strict)
    for graph in list(_graphs(result.graph)):
        _remove_guards(graph)
    del result.opset_import[-1]
    return result


def _inferred(proto: onnx.ModelProto, check_type: bool, strict: bool) -> onnx.ModelProto:
    found: onnx.ModelProto = onnx.shape_inference.infer_shapes(
        proto, check_type=check_type, strict_mode=strict, data_prop=True
    )
    return found


def _needs_guard(node: onnx.NodeProto) -> bool:
    return node.op_type in _GUARDED and node.domain in ("", "ai.onnx") and bool(node.input)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and those of If, Loop and Scan in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _graphs(inner)


def _add_guards(graph: onnx.GraphProto) -> None:
    # From the end, because an insertion shifts the later nodes. Inference visits nodes in the order of the file.
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        if _needs_guard(node):
            name, value = node.name or node.op_type, node.input[0]
            guard = helper.make_node(_GUARD, [value], [""], domain=_DOMAIN, **{_NODE: name, _VALUE: value})
            graph.node.insert(index, guard)


def _remove_guards(graph: onnx.GraphProto) -> None:
    for index in range(len(graph.node) - 1, -1, -1):
        if graph.node[index].domain == _DOMAIN:
            del graph.node[index]


def _register() -> None:
    if onnx.defs.has(_GUARD, domain=_DOMAIN):
        return
    parameter = onnx.defs.OpSchema.FormalParameter
    schema = onnx.defs.OpSchema(
        _GUARD,
        _DOMAIN,
        1,
        inputs=[parameter("value", "T")],
        outputs=[parameter("unused", "tensor(float)")],
        type_constraints=[("T", _all_types(), "Any type.")],
    )
    schema.set_type_and_shape_inference_function(_check_sizes)
    onnx.defs.register_schema(schema)


def _all_types() -> list[str]:
    """The types that ONNX's Slice accepts, in all its versions."""
    schema = onnx.defs.get_schema("Slice")
    return [str(t) for c in schema.type_constraints if c.type_param_str == "T" for t in c.allowed_type_strs]


def _check_sizes(context: InferenceContext) -> None:
    """Inference function of the guard. Its exception ends inference: onnx catches its own errors only."""
    kind = context.get_input_type(0)
    if kind is None:
        return
    for axis, dim in enumerate(kind.tensor_type.shape.dim):
        if dim.dim_value < 0:
            node, value = (context.get_attribute(name).s.decode() for name in (_NODE, _VALUE))
            raise ModelError(
                f"node {node!r}: dimension {axis} of its input {value!r} must not be negative, not {dim.dim_value}: "
                "correct the size of the model's input, or kernel and pads of the nodes before it"
            )
