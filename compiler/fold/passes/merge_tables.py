"""Pass `merge_tables`: merge a table into the node that produces its input, if that input has no other reader.

Afterwards no Table is the only reader of the result of a node that can hold a table.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Add, AvgPool, Conv, IntGraph, MatMul, Mul, Node, Table

Holder = Conv | MatMul | Add | Mul | AvgPool | Table
"""Nodes that can hold a table."""


def merge_tables(graph: IntGraph) -> IntGraph:
    """Apply the pass."""
    readers = Counter((*graph.outputs, *(v for n in graph.nodes for v in n.inputs)))
    nodes, tensors = dict[str, Node](), dict(graph.tensors)
    makers: dict[str, str] = {}
    """For tensors, the name of the node."""
    for node in graph.nodes:
        nodes[node.name] = node
        makers[node.output] = node.name
        if not isinstance(node, Table) or readers[node.inputs[0]] > 1:
            continue
        maker = nodes.get(makers.get(node.inputs[0], ""))
        if isinstance(maker, Holder):
            del nodes[node.name], tensors[node.inputs[0]]
            # Which may hold a further table.
            nodes[maker.name], makers[node.output] = _composed(maker, node), maker.name
    return graph if len(nodes) == len(graph.nodes) else replace(graph, nodes=tuple(nodes.values()), tensors=tensors)


def _composed(maker: Holder, table: Table) -> Node:
    """Both as one node."""
    second = np.frombuffer(table.table, dtype=np.int8)
    both = second if maker.table is None else second[np.frombuffer(maker.table, dtype=np.uint8)]
    origin = tuple(dict.fromkeys((*maker.origin, *table.origin)))
    return replace(maker, output=table.output, table=both.tobytes(), origin=origin)
