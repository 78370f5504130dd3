"""Subgraphs between the tensors that also exist in onnxruntime's model.

Declaring a tensor as a model output can change onnxruntime's choice of kernels around it, and with it the rounding of
ties. A subgraph of the unchanged model is therefore replaced by the one folded from the model with the extra outputs.
A subgraph that was changed since the model was folded is kept, so that a wrong constant in it is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import onnx

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.ir import IntGraph, Node
from intloom.compiler.ir.serialize import to_text


def subgraphs_with_extra_outputs(
    graph: IntGraph, proto: onnx.ModelProto, extra_outputs: Set[str], visible: Set[str]
) -> Iterator[IntGraph]:
    """Subgraphs of `graph`, folded from `proto`, between its `visible` tensors, for a model with extra outputs."""
    model = from_proto(proto, name=graph.name)
    plain, other = (
        {p.outputs[0]: p for p in subgraphs_between(fold_model(model, extra_outputs=values).graph, visible)}
        for values in (frozenset[str](), extra_outputs)
    )
    for part in subgraphs_between(graph, visible):
        name = part.outputs[0]
        known = name in plain and name in other and to_text(part) == to_text(plain[name])
        yield other[name] if known else part


def subgraphs_between(graph: IntGraph, visible: Set[str]) -> Iterator[IntGraph]:
    """Subgraphs from visible tensors to the next visible tensor; each ends in one node."""
    behind: dict[str, tuple[Node, ...]] = {}
    for node in graph.nodes:
        hidden = (n for name in node.inputs if name not in visible for n in behind[name])
        nodes = (*dict.fromkeys(hidden), node)
        behind[node.output] = nodes
        if node.output in visible:
            read = dict.fromkeys(name for n in nodes for name in n.inputs if name in visible)
            tensors = {name: graph.tensors[name] for n in nodes for name in (*n.inputs, n.output)}
            yield IntGraph(node.name, tensors, nodes, tuple(read), (node.output,))
