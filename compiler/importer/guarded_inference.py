"""Shape inference of ONNX that stops with an error where the library would abort the process.

onnx 1.23 trusts some numbers of the file. Slice calls `std::clamp` with the bounds 0 and the size of the dimension,
and GatherND takes the last size of its indices as an offset: a negative size, which a convolution with a kernel larger
than its input has, ends the process. Operators on shapes store an entry for each element of a value with one dimension,
whatever its size. So inference runs with a guard node before each such operator, whose inference function checks the
sizes that the operator is about to read. Axes are cut to 32 bits and used as an index; they are checked before, like
the number of parts of a Split.
"""

from collections.abc import Callable
from math import prod

import onnx
from onnx import helper
from onnx.shape_inference import InferenceContext

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.importer.limits import LARGEST_VALUE
from intloom.compiler.importer.subgraphs import all_graphs
from intloom.compiler.refusals import Refusal

DOMAIN, _GUARD = "intloom.importer", "SizeGuard"
_GUARDED = frozenset({"Add", "Cast", "Concat", "Gather", "GatherND", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze"})
"""Operators with propagation of shape data, and those that use a size without a check."""
_LONGEST_SHAPE_DATA = 1 << 21
"""Inference needs up to 300 bytes for each element of a chain of values."""
_NODE, _VALUES = "guarded_node", "guarded_values"
_LARGEST_AXIS = (1 << 31) - 1
_INDICES = ("axis", "batch_dims")


def guarded_inference(proto: onnx.ModelProto, *, check_type: bool = True, strict: bool = True) -> onnx.ModelProto:
    """Infer all shapes, with propagation of shape data; `strict` makes the library's own findings an error.

    Raises
    ------
    ModelError
        A value has a negative size, or an attribute is out of range.
    UnsupportedError
        A value has too many elements.
    """
    for graph in all_graphs(proto.graph):
        _check_attributes(graph)
    inferred = _with_guards(proto, check_type, strict)
    for value in inferred.graph.value_info:
        _check_value(value)
    return inferred


def _with_guards(proto: onnx.ModelProto, check_type: bool, strict: bool) -> onnx.ModelProto:
    """Infer all shapes, with a guard before each operator that needs one."""
    if not any(_needs_guard(n) for g in all_graphs(proto.graph) for n in g.node):
        return _inferred(proto, check_type, strict)
    add_schema(_GUARD, _check_sizes)
    guarded = onnx.ModelProto()
    guarded.CopyFrom(proto)
    guarded.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    for graph in list(all_graphs(guarded.graph)):
        _add_guards(graph)
    result = _inferred(guarded, check_type, strict)
    for graph in list(all_graphs(result.graph)):
        _remove_guards(graph)
    del result.opset_import[-1]
    return result


def _inferred(proto: onnx.ModelProto, check_type: bool, strict: bool) -> onnx.ModelProto:
    inferred: onnx.ModelProto = onnx.shape_inference.infer_shapes(
        proto, check_type=check_type, strict_mode=strict, data_prop=True
    )
    return inferred


def _needs_guard(node: onnx.NodeProto) -> bool:
    return node.op_type in _GUARDED and node.domain in ("", "ai.onnx") and bool(node.input)


def _add_guards(graph: onnx.GraphProto) -> None:
    # From the end, because an insertion shifts the later nodes. Inference visits nodes in the order of the file.
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        if _needs_guard(node):
            values = [v for v in node.input if v]
            names = {_NODE: node.name or node.op_type, _VALUES: values}
            guard = helper.make_node(_GUARD, values, [""], domain=DOMAIN, **names)
            graph.node.insert(index, guard)


def _remove_guards(graph: onnx.GraphProto) -> None:
    for index in range(len(graph.node) - 1, -1, -1):
        if graph.node[index].domain == DOMAIN and graph.node[index].op_type == _GUARD:
            del graph.node[index]


def add_schema(name: str, infer: Callable[[InferenceContext], None]) -> None:
    """Define an operator of `DOMAIN` for any number of tensors and results, unless it exists."""
    if onnx.defs.has(name, domain=DOMAIN):
        return
    parameter, option = onnx.defs.OpSchema.FormalParameter, onnx.defs.OpSchema.FormalParameterOption
    several = {"param_option": option.Variadic, "is_homogeneous": False}
    schema = onnx.defs.OpSchema(
        name,
        DOMAIN,
        1,
        inputs=[parameter("values", "T", **several)],
        outputs=[parameter("results", "T", **several)],
        type_constraints=[("T", _all_types(), "Any type.")],
    )
    schema.set_type_and_shape_inference_function(infer)
    onnx.defs.register_schema(schema)


def _all_types() -> list[str]:
    """The types of tensors: those that Cast and Slice accept."""
    constraints = [c for name in ("Cast", "Slice") for c in onnx.defs.get_schema(name).type_constraints]
    return sorted({str(t) for c in constraints for t in c.allowed_type_strs if "tensor" in t})


def _check_attributes(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        for attribute in node.attribute:
            least = 0 if attribute.name == "batch_dims" else -_LARGEST_AXIS
            if attribute.name in _INDICES and not least <= attribute.i <= _LARGEST_AXIS:
                raise ModelError(
                    f"node {node.name or node.op_type!r}: {attribute.name} must be an axis of its input, not "
                    f"{attribute.i}: correct the attribute"
                )
            if attribute.name == "num_outputs" and node.op_type == "Split" and attribute.i != len(node.output):
                raise ModelError(
                    f"node {node.name or node.op_type!r}: num_outputs must be its number of outputs, "
                    f"{len(node.output)}, not {attribute.i}: correct the attribute"
                )


def _check_value(value: onnx.ValueInfoProto) -> None:
    """Check that no inferred size is negative, and that the value fits in memory: inference checks neither."""
    sizes = [d.dim_value for d in value.type.tensor_type.shape.dim if d.HasField("dim_value")]
    for axis, size in enumerate(sizes):
        if size < 0:
            raise ModelError(f"dimension {axis} of {value.name!r} must not be negative, not {size}: correct the model")
    if prod(sizes) > LARGEST_VALUE:
        raise UnsupportedError(
            f"{value.name!r} must have at most {LARGEST_VALUE:,} values, not {prod(sizes):,}: reduce it",
            Refusal.SIZE.number,
        )


def _check_sizes(context: InferenceContext) -> None:
    """Inference function of the guard. Its exception ends inference: onnx catches its own errors only."""
    for index in range(context.get_num_inputs()):
        kind = context.get_input_type(index)
        sizes = () if kind is None else kind.tensor_type.shape.dim
        for axis, dim in enumerate(sizes):
            node, value = context.get_attribute(_NODE).s, context.get_attribute(_VALUES).strings[index]
            found = f"node {node.decode()!r}: dimension {axis} of its input {value.decode()!r} must"
            remedy = f"not {dim.dim_value}: correct the size of the model's input, or the node before it"
            if dim.dim_value < 0:
                raise ModelError(f"{found} not be negative, {remedy}")
            if len(sizes) == 1 and dim.dim_value > _LONGEST_SHAPE_DATA:
                message = f"{found} be at most {_LONGEST_SHAPE_DATA} as the only one, {remedy}"
                raise UnsupportedError(message, Refusal.SIZE.number)
