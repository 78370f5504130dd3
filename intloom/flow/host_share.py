"""What the host computes of a model: nodes and multiplications."""

import math
from dataclasses import dataclass

from intloom.compiler.frontend import FoldedModel, Target
from intloom.compiler.importer.model import Model, OnnxNode

_PRODUCTS = ("MatMul", "Gemm")
_CONVOLUTIONS = ("Conv", "ConvTranspose")


@dataclass(frozen=True)
class HostShare:
    """The part of a model that the host computes."""

    nodes: int
    all_nodes: int
    macs: int
    """Multiply-accumulates of convolutions and matrix products, as far as shapes are known."""
    share: float
    """Of the model's multiply-accumulates, 0 to 1."""


def host_share(folded: FoldedModel) -> HostShare:
    """The host's part of a folded model."""
    names = {a.name for a in folded.assignments if a.target in (Target.HOST, Target.UNSUPPORTED)}
    model = folded.model
    nodes = () if model is None else model.nodes
    macs = sum(_macs(model, node) for node in nodes if node.name in names) if model is not None else 0
    accelerated = sum(node.macs(folded.whole.tensors) for node in folded.whole.nodes)
    return HostShare(len(names), len(folded.assignments), macs, macs / (macs + accelerated) if macs else 0.0)


def _macs(model: Model, node: OnnxNode) -> int:
    """Multiply-accumulates of a float node; 0 for other operators and unknown shapes."""
    if node.op not in (*_PRODUCTS, *_CONVOLUTIONS):
        return 0
    first, second, out = (model.shape(name) for name in (*node.inputs[:2], node.outputs[0]))
    if not first or not second or out is None:
        return 0
    if node.op in _PRODUCTS:
        return math.prod(out) * (first[0] if node.op == "Gemm" and node.attributes.get("transA") else first[-1])
    return math.prod(first if node.op == "ConvTranspose" else out) * math.prod(second[1:])
