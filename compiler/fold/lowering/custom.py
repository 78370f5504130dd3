"""Custom operations between QuantizeLinear and DequantizeLinear."""

from collections.abc import Mapping
from dataclasses import replace

from intloom.compiler.custom import AttributeValue, CustomOp, find
from intloom.compiler.fold.graph_builder import GraphBuilder, as_image
from intloom.compiler.fold.passes.custom_shapes import simple_attributes
from intloom.compiler.fold.patterns.qparams import is_dequantize, read_qparams
from intloom.compiler.fold.target import Finding, Target
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import Custom, Tensor
from intloom.compiler.refusals import Refusal


def lower_custom(builder: GraphBuilder, node: OnnxNode) -> None:
    """Lower one custom operation, with its registered lowering if it has one.

    Raises
    ------
    UnsupportedPattern
        An operand is not a tensor of the graph, or no DequantizeLinear reads the result.
    """
    operation = find(node.domain, node.op)
    if operation is None or len(node.outputs) != 1:
        raise Refusal.CUSTOM(
            f"{node.domain}::{node.op} is not registered, or has several results", "register it, with one result"
        )
    operands = []
    for stored in node.inputs:
        if stored not in builder.views:
            raise Refusal.NOT_QUANTIZED(
                f"{stored!r} is not a quantized value of the graph", "put a QuantizeLinear before custom operations"
            )
        operands.append(builder.tensors[builder.views[stored][0]])
    attributes = simple_attributes(node)
    result = _result(builder, node, operation, attributes)
    custom = Custom(
        name=node.name,
        inputs=tuple(t.name for t in operands),
        output=result.name,
        origin=node.origins,
        domain=node.domain,
        op=node.op,
        attributes=attributes,
    )
    _emit(builder, operation, custom, operands, result)
    note = (
        "lowered by its registered lowering"
        if operation.lower
        else "runs in the golden model only: register a lowering to compile it"
    )
    builder.findings[node.name] = Finding(Target.VECTOR, note)


def _result(
    builder: GraphBuilder, node: OnnxNode, operation: CustomOp, attributes: Mapping[str, AttributeValue]
) -> Tensor:
    stored = node.outputs[0]
    reader = next((n for n in builder.model.users(stored) if is_dequantize(n)), None)
    if reader is None:
        raise Refusal.NOT_QUANTIZED(
            f"no DequantizeLinear reads {stored!r}", "add one, which defines scale and zero point"
        )
    shapes = [builder.views[name][1] for name in node.inputs]
    shape = operation.shape(shapes, attributes)
    builder.views[stored] = (stored, shape)
    return builder.tensor(stored, as_image(shape), read_qparams(builder.model, reader))


def _emit(builder: GraphBuilder, operation: CustomOp, custom: Custom, operands: list[Tensor], result: Tensor) -> None:
    """Add the node itself, or the nodes that its lowering returns."""
    if operation.lower is None:
        builder.emit(custom, result)
        return
    nodes = tuple(operation.lower(custom, operands, result))
    if not nodes or nodes[-1].output != result.name:
        raise Refusal.CUSTOM(
            f"the lowering of {custom.domain}::{custom.op} does not produce {result.name!r} last",
            "correct the lowering",
        )
    for made in nodes[:-1]:
        builder.emit(replace(made, origin=custom.origin), replace(result, name=made.output))
    builder.emit(replace(nodes[-1], origin=custom.origin), result)
