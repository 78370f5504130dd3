"""Functions of one tensor that a model writes as several elementwise operators, such as hard-swish with factors.

A pair of QuantizeLinear and DequantizeLinear behind each operator would round as often as the function has operators.
The accelerator computes the function of a byte from a table, whatever operators it has, so only its ends are quantized.
"""

from math import prod

import onnx

_ELEMENTWISE = frozenset(
    {"Add", "Clip", "Div", "Erf", "HardSigmoid", "HardSwish", "LeakyRelu", "Max", "Min", "Mul", "Neg", "Pow", "Relu"}
    | {"Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"}
)
_FEWEST = 3
"""Shorter ones, such as SiLU, are written with pairs by every quantizer, and the files are the usual ones."""


def inner_nodes(graph: onnx.GraphProto) -> list[str]:
    """Names of the nodes of functions of one tensor with at least three operators."""
    scalars = {i.name for i in graph.initializer if prod(i.dims) == 1} | {""}
    ends = {o.name for o in graph.output}
    root: dict[str, str] = {}
    members: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        read = {root.get(name, name) for name in node.input if name not in scalars}
        if node.op_type in _ELEMENTWISE and len(read) == 1 and len(node.output) == 1:
            root[node.output[0]] = source = read.pop()
            members.setdefault(source, []).append(node)
    constants = {i.name for i in graph.initializer}
    return [
        node.name
        for source, nodes in members.items()
        if len(nodes) >= _FEWEST and source not in constants and not any(n.output[0] in ends for n in nodes)
        for node in nodes
    ]
