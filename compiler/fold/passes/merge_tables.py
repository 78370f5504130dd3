"""Pass `merge_tables`: merge a table into the node that produces its input, if that input has no other reader.

Afterwards no Table is the only reader of the result of a node that can hold a table.
"""

from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Add, AvgPool, Conv, IntGraph, MatMul, Mul, Node, Table


def merge_tables(graph: IntGraph) -> IntGraph:
    """Apply the pass."""
    nodes = list(graph.nodes)
    readers: dict[str, int] = {}
    for name in (*graph.outputs, *(i for n in nodes for i in n.inputs)):
        readers[name] = readers.get(name, 0) + 1
    makers: dict[str, int] = {}
    merged: set[int] = set()
    gone: set[str] = set()
    for index, node in enumerate(nodes):
        at = makers.get(node.inputs[0]) if isinstance(node, Table) and readers[node.inputs[0]] == 1 else None
        joined = None if at is None or not isinstance(node, Table) else join(nodes[at], node)
        if at is None or joined is None:
            makers[node.output] = index
            continue
        gone.add(node.inputs[0])
        nodes[at] = joined  # which may hold a further table
        makers[node.output] = at
        merged.add(index)
    kept = tuple(n for i, n in enumerate(nodes) if i not in merged)
    tensors = {name: t for name, t in graph.tensors.items() if name not in gone}
    return replace(graph, nodes=kept, tensors=tensors)


def join(maker: Node, table: Table) -> Node | None:
    """Compose `maker` and `table` into one node; None if `maker` cannot hold a table."""
    if not isinstance(maker, Conv | MatMul | Add | Mul | AvgPool | Table):
        return None
    second = np.frombuffer(table.table, dtype=np.int8)
    both = second if maker.table is None else second[np.frombuffer(maker.table, dtype=np.uint8)]
    origin = tuple(dict.fromkeys((*maker.origin, *table.origin)))
    return replace(maker, output=table.output, table=both.tobytes(), origin=origin)
