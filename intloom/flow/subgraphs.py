"""A graph in parts between the tensors that onnxruntime has too, with the laws that it follows when it gives them out.

A tensor that is given out may change onnxruntime's choice of kernels around it, which shows next to ties. So a part
whose laws are those of the model as it is stands for the same part of the model that gives its tensors out; any other
part is left as it is.
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
    """Parts of `graph`, folded from `proto`, from and to its `visible` tensors, while onnxruntime shows values."""
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
    """The graph in parts from visible tensors to the next such tensor; each ends in one node."""
    behind: dict[str, tuple[Node, ...]] = {}
    for node in graph.nodes:
        hidden = (n for name in node.inputs if name not in visible for n in behind[name])
        nodes = (*dict.fromkeys(hidden), node)
        behind[node.output] = nodes
        if node.output in visible:
            read = dict.fromkeys(name for n in nodes for name in n.inputs if name in visible)
            tensors = {name: graph.tensors[name] for n in nodes for name in (*n.inputs, n.output)}
            yield IntGraph(node.name, tensors, nodes, tuple(read), (node.output,))
