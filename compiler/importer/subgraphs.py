"""Subgraphs of If, Loop and Scan: which outer values they read, and branches whose condition is constant."""

from collections.abc import Iterator

import onnx
from onnx import numpy_helper


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The subgraphs of a node."""
    return [g for a in node.attribute for g in (*a.graphs, *([a.g] if a.HasField("g") else []))]


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and those of If, Loop and Scan in it."""
    yield graph
    for node in graph.node:
        for inner in graphs_of(node):
            yield from all_graphs(inner)


def captured_values(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Values of outer graphs that a subgraph reads, in the order of the first use."""
    inner = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    captured: dict[str, None] = {}
    for node in graph.node:
        read = [*node.input, *(v for g in graphs_of(node) for v in captured_values(g))]
        captured |= dict.fromkeys(v for v in read if v and v not in inner)
        inner.update(node.output)
    # A branch may return an outer value without a node.
    return (*captured, *(v.name for v in graph.output if v.name not in inner and v.name not in captured))


def inline_branches(graph: onnx.GraphProto) -> None:
    """Replace every If whose condition is a constant by the nodes of the branch that it takes."""
    while (taken := _constant_if(graph)) is not None:
        index, node, branch = taken
        del graph.node[index]
        for offset, made in enumerate(_inlined(graph, node, branch)):
            graph.node.insert(index + offset, made)


def _constant_if(graph: onnx.GraphProto) -> tuple[int, onnx.NodeProto, onnx.GraphProto] | None:
    """The first If with a constant condition: its position, the node, and the branch that it takes."""
    # An initializer that is also an input is only a default value.
    inputs = {v.name for v in graph.input}
    constants = {t.name: t for t in graph.initializer if t.name not in inputs}
    for index, node in enumerate(graph.node):
        if node.op_type == "Constant" and not node.domain:
            constants.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
        if node.op_type != "If" or node.domain or len(node.input) != 1 or node.input[0] not in constants:
            continue
        condition = constants[node.input[0]]
        if condition.data_type != onnx.TensorProto.BOOL:
            continue
        name = "then_branch" if numpy_helper.to_array(condition).all() else "else_branch"
        branch = next((a.g for a in node.attribute if a.name == name), None)
        if branch is not None and not branch.sparse_initializer and len(branch.output) == len(node.output):
            return index, node, branch
    return None


def _inlined(graph: onnx.GraphProto, node: onnx.NodeProto, branch: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes of the branch with names that are unique in the outer graph, and an Identity for each result."""
    taken = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    taken |= {name for n in graph.node for name in n.output} | set(node.output)
    inner = dict.fromkeys((*(t.name for t in branch.initializer), *(o for n in branch.node for o in n.output if o)))
    new: dict[str, str] = {}
    for name in inner:
        new[name] = _unique(f"{node.output[0]}/{name}", taken)
        taken.add(new[name])
    for tensor in branch.initializer:
        copy = graph.initializer.add()
        copy.CopyFrom(tensor)
        copy.name = new[tensor.name]
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in branch.node]
    for made in nodes:
        _rename(made, new)
    for value, result in zip(branch.output, node.output, strict=True):
        source = new.get(value.name, value.name)
        nodes.append(onnx.helper.make_node("Identity", [source], [result], name=f"{node.name}/{result}"))
    return nodes


def _unique(name: str, taken: set[str]) -> str:
    unique, copy = name, 1
    while unique in taken:
        copy += 1
        unique = f"{name}#{copy}"
    return unique


def _rename(node: onnx.NodeProto, new: dict[str, str]) -> None:
    """Rename the values of a node, also where its subgraphs capture them."""
    for names in (node.input, node.output):
        for position, name in enumerate(names):
            names[position] = new.get(name, name)
    for graph in graphs_of(node):
        own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        own |= {o for n in graph.node for o in n.output}
        outer = {a: b for a, b in new.items() if a not in own}
        for inner in graph.node:
            _rename(inner, outer)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)
