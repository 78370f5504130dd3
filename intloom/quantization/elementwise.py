"""Functions that a model writes as several operators: of one value, such as hard-swish with factors, or of a row.

A pair of QuantizeLinear and DequantizeLinear behind each operator would round as often as the function has operators.
The accelerator computes the function of a byte from a table, whatever operators it has, and a normalization by one
instruction, so only their ends are quantized.
"""

from math import prod

import onnx

from intloom.common.errors import IntloomError
from intloom.compiler.fold.patterns.normalization import read_chain
from intloom.compiler.importer import from_proto
from intloom.compiler.partition.host import before

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


def normalization_nodes(model: onnx.ModelProto) -> list[str]:
    """Names of the nodes of normalizations that are chains of operators, from the mean to the offset."""
    if not any(node.op_type == "ReduceMean" for node in model.graph.node):
        return []
    # The importer changes what it is given. It refuses models of which the quantizer may still quantize a part.
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    try:
        graph = from_proto(copy, name="float")
    except IntloomError:
        return []
    makers = {value: node for value, node in graph.producers.items() if not node.domain}
    inside: dict[str, None] = {}
    # The last operator of a chain comes before its parts, which would be shorter chains.
    for node in reversed(graph.nodes):
        chain = None if node.name in inside else read_chain(graph, node.outputs[0], makers)
        if chain is None:
            continue
        parts = before(graph, node.outputs, [chain.value])
        inner = {o for part in parts if part is not node for o in part.outputs}
        names = {part.name for part in parts}
        if not inner & set(graph.outputs) and all(user.name in names for o in inner for user in graph.users(o)):
            inside |= dict.fromkeys(names)
    return list(inside)
