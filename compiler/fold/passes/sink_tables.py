"""Pass `sink_tables`: move a table from the joined products of several matrices into each product.

No copy of the joined tensor is then made.

Afterwards no Table is the only reader of a Concat whose parts are products that nothing else reads.
"""

from collections import Counter
from dataclasses import replace

from intloom.compiler.fold.passes.merge_tables import join
from intloom.compiler.ir import Concat, IntGraph, MatMul, Node, Table


def sink_tables(graph: IntGraph) -> IntGraph:
    """Apply the pass."""
    readers = Counter((*graph.outputs, *(v for n in graph.nodes for v in n.inputs)))
    makers = {n.output: n for n in graph.nodes}
    tensors = dict(graph.tensors)
    changed: dict[str, Node | None] = {}
    """By its name, what becomes of a node."""
    for table in graph.nodes:
        joined = makers.get(table.inputs[0]) if isinstance(table, Table) else None
        if not isinstance(table, Table) or not isinstance(joined, Concat) or readers[joined.output] > 1:
            continue
        parts = [makers.get(v) for v in joined.inputs]
        if not all(isinstance(p, MatMul) and readers[p.output] == 1 for p in parts):
            continue
        for part in parts:
            made = None if part is None else join(part, replace(table, output=part.output))
            if part is not None and made is not None:
                changed[part.name] = made
                tensors[part.output] = replace(
                    tensors[table.output], name=part.output, shape=tensors[part.output].shape
                )
        changed[joined.name] = replace(joined, output=table.output)
        changed[table.name] = None
        del tensors[joined.output]
    nodes = (changed.get(n.name, n) for n in graph.nodes)
    return replace(graph, nodes=tuple(n for n in nodes if n is not None), tensors=tensors)
