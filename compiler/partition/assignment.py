"""Assignment of every node of the model to a target, with the reason and the remedy."""

from collections.abc import Set
from dataclasses import dataclass
from functools import cache

from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE, is_dequantize, is_quantize
from intloom.compiler.fold.patterns.unsupported import RECURRENT, recurrent
from intloom.compiler.fold.target import Finding, Target
from intloom.compiler.importer import MICROSOFT, Model, OnnxNode
from intloom.compiler.importer.model import TFLITE
from intloom.compiler.partition.host import before
from intloom.compiler.refusals import Refusal


@dataclass(frozen=True)
class Assignment:
    """The target of one node of the file, with the reason and what to change."""

    name: str
    op: str
    target: Target
    reason: str = ""
    remedy: str = ""
    row: int = 0
    """Number of the row in the list of refusals, for nodes that the accelerator does not run."""


FLOAT_RESULT = "its result is float: no QuantizeLinear follows"
_MOVED = "it moves bytes between the order of the file and that of the accelerator"
CONSEQUENCES = ("the host computes", FLOAT_RESULT, _MOVED)
"""Beginnings of reasons that follow from the assignment of another node, or that need no change."""


def _of_microsoft(model: Model, node: OnnxNode) -> tuple[str, str, Refusal]:
    """Reason, remedy and row for a pair of com.microsoft that has no form in the standard domain."""
    kind = model.dtype(node.input(2)) or model.dtype(node.input(0))
    if kind in ("int16", "uint16", "int4", "uint4"):
        return f"its values are stored as {kind}", "quantize activations to uint8 or int8", Refusal.TYPE
    return f"{node.domain}::{node.op} has no standard form here", "give it constant scale and zero point", Refusal.TYPE


def _outside(model: Model, node: OnnxNode, needed: Set[str], left: Set[str]) -> Finding:
    """The finding about a node outside all quantization units; `left` are nodes that the passes kept."""
    if node.domain == MICROSOFT and node.op in (QUANTIZE, DEQUANTIZE):
        return Finding(Target.HOST, *_of_microsoft(model, node))
    if node.op == "Constant":
        return Finding(Target.PLACEMENT, "a constant")
    if is_quantize(node) or is_dequantize(node):
        return Finding(Target.PLACEMENT, "on the boundary: fused with the nodes that read it")
    if node.name not in needed:
        return Finding(Target.PLACEMENT, "no output depends on it")
    if node.name not in left:
        return Finding(Target.PLACEMENT, "computed at compile time: its result is constant")
    if node.op in RECURRENT:
        error = recurrent(node.op)
        return Finding(Target.HOST, error.reason, error.remedy, Refusal.RECURRENT)
    if model.tflite is not None and not node.domain:
        return Finding(Target.HOST, _MOVED, "no change is needed", Refusal.ORDER)
    remedy = "add a QuantizeLinear, DequantizeLinear pair after it"
    return Finding(Target.HOST, FLOAT_RESULT, remedy, Refusal.NOT_QUANTIZED)


def assign_nodes(model: Model, builder: GraphBuilder) -> tuple[Assignment, ...]:
    """Assign every node of the file to a target, in file order."""
    by_origin: dict[str, list[Finding]] = {}
    for node in builder.model.nodes:
        if node.name in builder.findings:
            for origin in node.origins:
                by_origin.setdefault(origin, []).append(builder.findings[node.name])
    needed = {n.name for n in before(model, model.outputs, ())}
    left = {origin for node in builder.model.nodes for origin in node.origins}
    rows = []
    for node in model.nodes:
        assignment = by_origin.get(node.name)
        if assignment:
            finding = min(assignment, key=lambda f: list(Target).index(f.target))
        else:
            finding = _outside(model, node, needed, left)
        if finding.target is Target.HOST and node.domain == TFLITE:
            refusal = Refusal[node.text("row", "")]
            finding = Finding(
                Target.HOST, f"{node.text('reason', '')}: LiteRT runs it", node.text("remedy", ""), refusal
            )
        elif finding.target is Target.HOST and (node.domain, node.op) not in host_operators():
            reason = f"onnxruntime does not implement {node.domain}::{node.op} either"
            remedy = "register it as a custom operation (compiler.custom), or replace it"
            finding = Finding(Target.UNSUPPORTED, reason, remedy, Refusal.OPERATOR)
        row = finding.refusal.number if finding.refusal else 0
        rows.append(Assignment(node.name, node.op, finding.target, finding.reason, finding.remedy, row))
    return tuple(rows)


@cache
def host_operators() -> frozenset[tuple[str, str]]:
    """Domains and names of all operators that onnxruntime implements."""
    return frozenset((schema.domain, schema.name) for schema in get_all_operator_schema())
