"""A verdict for every node of the model: where it runs, why, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from intloom.compiler.fold.lowering import Lowering, Verdict
from intloom.compiler.fold.qparams import DEQUANTIZE, QUANTIZE
from intloom.compiler.importer import Model
from intloom.compiler.partition.host import before


@dataclass(frozen=True)
class NodeVerdict:
    """One node's fate."""

    name: str
    op: str
    verdict: Verdict
    reason: str = ""
    remedy: str = ""


def judge(model: Model, low: Lowering) -> tuple[NodeVerdict, ...]:
    """The verdict on every node of the file, in its order."""
    by_origin: dict[str, list[tuple[Verdict, str, str]]] = {}
    for node in low.model.nodes:
        verdict, reason = low.verdicts.get(node.name, (None, ""))
        if verdict is not None:
            for origin in node.origins:
                by_origin.setdefault(origin, []).append((verdict, reason, low.remedies.get(node.name, "")))
    needed = {n.name for n in before(model, model.outputs, ())}
    rows = []
    for node in model.nodes:
        found = by_origin.get(node.name)
        if found:
            verdict, reason, remedy = min(found, key=lambda f: _WEIGHT[f[0]])
        elif node.op == "Constant":
            verdict, reason, remedy = Verdict.PLACEMENT, "a constant", ""
        elif node.op in (QUANTIZE, DEQUANTIZE):
            verdict, reason, remedy = Verdict.PLACEMENT, "at a border: absorbed by what it feeds", ""
        elif node.name not in needed:
            verdict, reason, remedy = Verdict.PLACEMENT, "no output needs it", ""
        else:
            verdict, reason = Verdict.HOST, "its result stays float"
            remedy = "put a QuantizeLinear, DequantizeLinear pair behind it"
        if verdict is Verdict.HOST and (node.domain, node.op) not in host_operators():
            verdict, reason = Verdict.UNSUPPORTED, f"onnxruntime does not know {node.domain}::{node.op} either"
            remedy = "register it as a custom operation (compiler.custom), or replace it"
        rows.append(NodeVerdict(node.name, node.op, verdict, reason, remedy))
    return tuple(rows)


_WEIGHT = {
    v: i
    for i, v in enumerate(
        (Verdict.ARRAY, Verdict.VECTOR, Verdict.TABLE, Verdict.PLACEMENT, Verdict.HOST, Verdict.UNSUPPORTED)
    )
}


@cache
def host_operators() -> frozenset[tuple[str, str]]:
    """Domains and names of all operators that onnxruntime has."""
    return frozenset((schema.domain, schema.name) for schema in get_all_operator_schema())
