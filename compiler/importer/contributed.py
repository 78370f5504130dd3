"""Operators of onnxruntime that the ONNX library does not know: their domain, and the shape of their result."""

from __future__ import annotations

import onnx
from onnx import helper

from intloom.compiler.importer.guarded_inference import guarded_inference
from intloom.compiler.importer.model import MICROSOFT, STANDARD

_IN_STANDARD_DOMAIN = frozenset({"SimplifiedLayerNormalization"})
"""onnxruntime registers them in ONNX's own domain."""
_SAME_SHAPE = frozenset(
    {
        "BiasGelu",
        "FastGelu",
        "Gelu",
        "QuickGelu",
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)
"""Their result has the type and shape of the first input."""


def mark_contributed(proto: onnx.ModelProto) -> None:
    """Move operators that ONNX's own domain lacks to com.microsoft, for ONNX's checks; see `domain_of`."""
    found = [n for n in proto.graph.node if n.op_type in _IN_STANDARD_DOMAIN and n.domain in (STANDARD, "ai.onnx")]
    for node in found:
        node.domain = MICROSOFT
    if found and all(o.domain != MICROSOFT for o in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(MICROSOFT, 1))


def domain_of(node: onnx.NodeProto) -> str:
    """The domain in which onnxruntime has the operator."""
    standard = node.domain == "ai.onnx" or (node.domain == MICROSOFT and node.op_type in _IN_STANDARD_DOMAIN)
    return STANDARD if standard else node.domain


def keeps_shape(node: onnx.NodeProto) -> bool:
    """Whether the only result of a contributed operator has the shape of its first input."""
    return node.domain == MICROSOFT and node.op_type in _SAME_SHAPE and len([o for o in node.output if o]) == 1


def infer_with_contributed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Shape inference in which contributed operators that keep the shape stand for an Identity."""
    kept = {i: node for i, node in enumerate(proto.graph.node) if keeps_shape(node)}
    if not kept:
        return guarded_inference(proto)
    replaced = onnx.ModelProto()
    replaced.CopyFrom(proto)
    for i, node in kept.items():
        replaced.graph.node[i].CopyFrom(helper.make_node("Identity", node.input[:1], node.output[:1]))
    inferred = guarded_inference(replaced)
    for i, node in kept.items():
        inferred.graph.node[i].CopyFrom(node)
    return inferred
