"""Pass `absorb_pads`: merge explicit padding with the zero point into the padding of the convolutions that read it.

Runs before `merge_tables`, since a padding node with a table is not recognized. Afterwards no padding node is read only
by convolutions that pad with the same byte, but for long kernels and strides over a sequence, which read no padding.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from intloom.compiler.fold.arithmetic.affine_fit import IDENTITY
from intloom.compiler.ir import AvgPool, Conv, IntGraph, Node, Tensor
from intloom.compiler.limits import LARGEST_KERNEL, LARGEST_STRIDE


def absorb_pads(graph: IntGraph) -> IntGraph:
    """Apply the pass."""
    gone = {n.output: n for n in graph.nodes if _is_padding(n) and _absorbable(graph, n)}
    if not gone:
        return graph
    nodes = tuple(_absorb(n, gone, graph.tensors) for n in graph.nodes if n.output not in gone)
    tensors = {name: t for name, t in graph.tensors.items() if name not in gone}
    return replace(graph, nodes=nodes, tensors=tensors)


def _is_padding(node: Node) -> bool:
    return (
        isinstance(node, AvgPool)
        and min(node.pads) >= 0
        and (node.kernel, node.strides, node.affine, node.table)
        == (
            (1, 1),
            (1, 1),
            IDENTITY,
            None,
        )
    )


def _absorbable(graph: IntGraph, node: Node) -> bool:
    readers = graph.consumers(node.output)
    return (
        bool(readers)
        and node.output not in graph.outputs
        and isinstance(node, AvgPool)
        and all(_pads(r) and r.zp_in == node.zp_in for r in readers)
    )


def _pads(node: Node) -> TypeGuard[Conv]:
    if type(node) is not Conv or max(node.strides) > LARGEST_STRIDE:
        return False
    return max(*node.weights.shape[2:], *node.dilations) <= LARGEST_KERNEL


def _absorb(node: Node, gone: Mapping[str, Node], tensors: Mapping[str, Tensor]) -> Node:
    padding = gone.get(node.inputs[0]) if isinstance(node, Conv) else None
    if not isinstance(padding, AvgPool) or not isinstance(node, Conv):
        return node
    top, left, bottom, right = (a + b for a, b in zip(node.pads, padding.pads, strict=True))
    origin = tuple(dict.fromkeys((*padding.origin, *node.origin)))
    # Of several paddings in a row, the convolution reads the input of the first.
    merged = replace(node, inputs=padding.inputs, pads=(top, left, bottom, right), origin=origin)
    return _absorb(merged, gone, tensors)
