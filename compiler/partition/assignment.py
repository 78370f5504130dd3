"""Assignment of every node of the model to a target, with the reason and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.qparams import is_dequantize, is_quantize
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model
from intloom.compiler.partition.host import before


@dataclass(frozen=True)
class Assignment:
    """The target of one node of the file, with the reason and what to change."""

    name: str
    op: str
    target: Target
    reason: str = ""
    remedy: str = ""


def assign_nodes(model: Model, builder: GraphBuilder) -> tuple[Assignment, ...]:
    """Assign every node of the file to a target, in file order."""
    by_origin: dict[str, list[tuple[Target, str, str]]] = {}
    for node in builder.model.nodes:
        target, reason = builder.targets.get(node.name, (None, ""))
        if target is not None:
            for origin in node.origins:
                by_origin.setdefault(origin, []).append((target, reason, builder.remedies.get(node.name, "")))
    needed = {n.name for n in before(model, model.outputs, ())}
    rows = []
    for node in model.nodes:
        found = by_origin.get(node.name)
        if found:
            target, reason, remedy = min(found, key=lambda f: _WEIGHT[f[0]])
        elif node.op == "Constant":
            target, reason, remedy = Target.PLACEMENT, "a constant", ""
        elif is_quantize(node) or is_dequantize(node):
            target, reason, remedy = Target.PLACEMENT, "on the boundary: fused with the nodes that read it", ""
        elif node.name not in needed:
            target, reason, remedy = Target.PLACEMENT, "no output depends on it", ""
        else:
            target, reason = Target.HOST, "its result is float: no QuantizeLinear follows"
            remedy = "add a QuantizeLinear, DequantizeLinear pair after it"
        if target is Target.HOST and (node.domain, node.op) not in host_operators():
            target, reason = (
                Target.UNSUPPORTED,
                f"onnxruntime does not implement {node.domain}::{node.op} either",
            )
            remedy = "register it as a custom operation (compiler.custom), or replace it"
        rows.append(Assignment(node.name, node.op, target, reason, remedy))
    return tuple(rows)


_WEIGHT = {
    v: i
    for i, v in enumerate(
        (Target.ARRAY, Target.VECTOR, Target.TABLE, Target.PLACEMENT, Target.HOST, Target.UNSUPPORTED)
    )
}


@cache
def host_operators() -> frozenset[tuple[str, str]]:
    """Domains and names of all operators that onnxruntime implements."""
    return frozenset((schema.domain, schema.name) for schema in get_all_operator_schema())
