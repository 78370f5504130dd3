"""Residual fusion: a convolution whose only consumer is an Add without a table performs the addition itself."""

from __future__ import annotations

from intloom.compiler.ir import Add, Conv, ConvTranspose, IntGraph
from intloom.hw.spec.params import HardwareParams


def find_residuals(graph: IntGraph, params: HardwareParams) -> dict[str, Conv]:
    """For each Add, by name, that a convolution can perform, that convolution; the later one if both operands do."""
    producers = {n.output: n for n in graph.nodes}
    position = {n.name: k for k, n in enumerate(graph.nodes)}
    found: dict[str, Conv] = {}
    for node in graph.nodes:
        # A fused sum has no table of its own, and the convolution's result never reaches memory, so it cannot be both
        # operands.
        if not isinstance(node, Add) or node.table is not None or node.inputs[0] == node.inputs[1]:
            continue
        convs = [producers[t] for t in node.inputs if t in producers]
        fitting = [c for c in convs if isinstance(c, Conv) and _can_fuse(graph, params, c, node)]
        if fitting:
            # The other operand must be in memory when the convolution runs, so the later one adds.
            found[node.name] = max(fitting, key=lambda c: position[c.name])
    return found


def _can_fuse(graph: IntGraph, params: HardwareParams, conv: Conv, add: Add) -> bool:
    shapes = {graph.tensors[t].shape for t in (*add.inputs, add.output)}
    alone = graph.consumers(conv.output) == (add,) and conv.output not in graph.outputs
    channels, rows, cols = len(conv.bias), params.rows, params.cols
    # Output blocks must not extend past the last word: the residual operand has no words there.
    whole = -(-channels // cols) * cols <= -(-channels // rows) * rows
    simple = conv.group == 1 and not isinstance(conv, ConvTranspose)
    return alone and whole and simple and len(shapes) == 1
