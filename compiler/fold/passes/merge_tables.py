"""Pass `merge_tables`: merge a table into the node that produces its input, if that input has no other reader.

From the joined products of several matrices, the table moves into each product: no copy of the joined tensor is made.

Afterwards no Table is the only reader of the result of a node that can hold a table, or of a Concat whose parts are
products that nothing else reads.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Add, AvgPool, Concat, Conv, IntGraph, MatMul, Mul, Node, Table

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
        maker = makers.get(node.inputs[0]) if isinstance(node, Table) and readers[node.inputs[0]] == 1 else None
        if maker is None or not isinstance(node, Table):
            continue
        alone = [nodes[makers[v]] for v in nodes[maker].inputs if v in makers and readers[v] == 1]
        merged = _merged(nodes[maker], node, alone)
        if merged:
            del nodes[node.name], tensors[node.inputs[0]]
        for made in merged:
            nodes[made.name] = made  # which may hold a further table
            makers[made.output] = made.name
            if made.output != node.output:
                tensors[made.output] = replace(tensors[node.output], name=made.output, shape=tensors[made.output].shape)
    return replace(graph, nodes=tuple(nodes.values()), tensors=tensors)


def _merged(maker: Node, table: Table, alone: Sequence[Node]) -> list[Node]:
    """The nodes that stand for `maker` and its table; `alone` make what only `maker` reads. Empty if there are none."""
    products = [n for n in alone if isinstance(n, MatMul)]
    if isinstance(maker, Concat) and len(products) == len(maker.inputs):
        return [*(_composed(p, table, p.output) for p in products), replace(maker, output=table.output)]
    return [_composed(maker, table, table.output)] if isinstance(maker, Holder) else []


def _composed(maker: Holder, table: Table, output: str) -> Node:
    """`maker` and `table` as one node."""
    second = np.frombuffer(table.table, dtype=np.int8)
    both = second if maker.table is None else second[np.frombuffer(maker.table, dtype=np.uint8)]
    origin = tuple(dict.fromkeys((*maker.origin, *table.origin)))
    return replace(maker, output=output, table=both.tobytes(), origin=origin)
