"""Blank lanes: a product whose sums do not fill words needs an operand that holds its zero point in the other lanes.

The array writes such words, and constants have them. A product of which neither operand comes from the array reads one
through a copy by the array.
"""

from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Conv, IntGraph, MatMul, Node, Tensor
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.ir.ops.matmul import writes_blank_lanes
from intloom.hw.spec.params import HardwareParams


def has_blank_lanes(graph: IntGraph, node: MatMul) -> bool:
    """Whether the lanes beyond the last channel of one of the operands add nothing to the sums."""
    operands = zip(node.inputs, (node.zp_a, node.zp_b), strict=True)
    return any(writes_blank_lanes(graph.producer(name), zero_point) for name, zero_point in operands)


def fill_blank_lanes(graph: IntGraph, params: HardwareParams) -> IntGraph:
    """The graph with the copies."""
    tensors, nodes = dict(graph.tensors), list[Node]()
    for node in graph.nodes:
        if isinstance(node, MatMul) and _needs_copy(graph, node, params):
            moving, stationary = node.inputs
            copy = _copy(tensors[moving], node)
            tensors[copy.output] = replace(tensors[moving], name=copy.output)
            nodes += [copy, replace(node, inputs=(copy.output, stationary))]
        else:
            nodes.append(node)
    return replace(graph, tensors=tensors, nodes=tuple(nodes)) if len(nodes) > len(graph.nodes) else graph


def _needs_copy(graph: IntGraph, node: MatMul, params: HardwareParams) -> bool:
    # An output block of fewer columns than a word has bytes does not fill the word.
    fills_words = graph.tensors[node.inputs[0]].channels % params.rows == 0
    return not fills_words and params.cols >= params.rows and not has_blank_lanes(graph, node)


def _copy(x: Tensor, product: MatMul) -> Conv:
    count, name = x.channels, f"{product.name}/blank"
    weights = np.eye(count, dtype=np.int8).reshape(count, count, 1, 1)
    return moving_conv(name, x, weights, origin=product.origin)
