"""Blank lanes: a product whose sums do not fill words needs an operand that holds its zero point in the other lanes.

The array writes such words, and constants have them. A product of which neither operand comes from the array, in its
own region, reads one through a copy by the array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Conv, IntGraph, MatMul, Node, Tensor
from intloom.compiler.ir.ops.matmul import writes_blank_lanes
from intloom.hw.spec.arith import scale_from_float

LARGEST_WORD = 32
"""Channels of a word of the largest hardware."""
_ONE = scale_from_float(1.0)


def copy_by_array(x: Tensor, name: str, origin: tuple[str, ...]) -> Conv:
    """A copy of a tensor, whose lanes beyond its channels hold the zero point."""
    count = x.channels
    return Conv(
        name=name,
        inputs=(x.name,),
        output=name,
        weights=np.eye(count, dtype=np.int8).reshape(count, count, 1, 1),
        bias=np.full(count, -x.zero_point, np.int32),
        mantissa=np.full(count, _ONE.mantissa, np.uint32),
        shift=np.full(count, _ONE.shift, np.uint8),
        zp_in=x.zero_point,
        zp_out=x.zero_point,
        origin=origin,
    )


def fill_blank_lanes(graph: IntGraph, levels: Mapping[str, int]) -> tuple[IntGraph, dict[str, int]]:
    """Add the copies; `levels` are the regions of the tensors, and the copies have those of their products."""
    tensors, found, nodes = dict(graph.tensors), dict(levels), list[Node]()
    for node in graph.nodes:
        if isinstance(node, MatMul) and tensors[node.inputs[0]].channels % LARGEST_WORD:
            makers = [graph.producer(name) for name in node.inputs]
            inside = [m if m is not None and levels[m.output] == levels[node.output] else None for m in makers]
            if not any(writes_blank_lanes(m, z) for m, z in zip(inside, (node.zp_a, node.zp_b), strict=True)):
                moving = tensors[node.inputs[0]]
                copy = copy_by_array(moving, f"{node.output}/moving/blank", node.origin)
                nodes.append(copy)
                tensors[copy.output], found[copy.output] = replace(moving, name=copy.output), levels[node.output]
                node = replace(node, inputs=(copy.output, node.inputs[1]))
        nodes.append(node)
    return replace(graph, tensors=tensors, nodes=tuple(nodes)), found
