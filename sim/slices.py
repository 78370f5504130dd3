"""Parts of a network as graphs of their own, fed with golden inputs: any layer or block runs alone."""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.ir import IntGraph, Node
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.result import Arrays


def node_names(node: Node) -> tuple[str, ...]:
    """The names of a node: its own, those of its ONNX nodes, and these with dots for slashes."""
    raw = (node.name, *node.origin)
    return (*raw, *(name.strip("/").replace("/", ".") for name in raw))


def select(graph: IntGraph, pattern: str) -> tuple[Node, ...]:
    """The nodes that `pattern`, such as `model.4.*`, names; raises `UsageError` when there is none."""
    nodes = tuple(n for n in graph.nodes if any(fnmatch.fnmatchcase(name, pattern) for name in node_names(n)))
    if not nodes:
        some = ", ".join(n.name for n in graph.nodes[:8])
        raise UsageError(
            f"layers must match a node of {graph.name!r}, but {pattern!r} matches none: it has {some}, ..."
        )
    return nodes


def extract(graph: IntGraph, nodes: Iterable[Node], name: str) -> IntGraph:
    """The nodes as a graph: its inputs and outputs are the tensors that cross its border."""
    kept = set(nodes)
    chosen = tuple(n for n in graph.nodes if n in kept)
    made = {n.output for n in chosen}
    # A dictionary and not a set: the order of the inputs must be the same in every run.
    read = dict.fromkeys(t for n in chosen for t in n.inputs)
    # A tensor that the slice reads itself may also be read outside, so it is an output as well.
    outside = {t for n in graph.nodes if n not in kept for t in n.inputs} | set(graph.outputs)
    outputs = tuple(n.output for n in chosen if n.output in outside)
    used = made | set(read)
    tensors = {t: v for t, v in graph.tensors.items() if t in used}
    return IntGraph(name, tensors, chosen, tuple(t for t in read if t not in made), outputs)


@dataclass(frozen=True)
class GraphSlice:
    """A part of a network with its golden inputs and outputs."""

    name: str
    graph: IntGraph
    inputs: Arrays
    expected: Arrays


def golden_tensors(graph: IntGraph, inputs: Arrays, match: RoundingMode) -> Mapping[str, NDArray[np.int8]]:
    """Every tensor of the graph by the golden model."""
    from intloom.sim.golden import run_graph

    return run_graph(graph, inputs, match=match, keep=True)


def make_slice(
    graph: IntGraph, nodes: Iterable[Node], name: str, tensors: Mapping[str, NDArray[np.int8]]
) -> GraphSlice:
    """A slice of `graph` with its inputs and outputs taken from the golden `tensors`."""
    part = extract(graph, nodes, name)
    return GraphSlice(name, part, {t: tensors[t] for t in part.inputs}, {t: tensors[t] for t in part.outputs})


def blocks(graph: IntGraph) -> dict[str, tuple[Node, ...]]:
    """The nodes grouped by block, in order: `model.4` for all of `/model.4/...`; a node of no block is one."""
    blocks: dict[str, list[Node]] = {}
    for node in graph.nodes:
        blocks.setdefault(_block(node), []).append(node)
    return {name: tuple(nodes) for name, nodes in blocks.items()}


def _block(node: Node) -> str:
    for name in node.origin:
        parts = name.strip("/").split("/")
        if len(parts) > 1:
            return parts[0]
    return node.name


def is_trivial(part: IntGraph) -> bool:
    """Whether the slice has nothing to compute or passes an input through, so that it has no program."""
    return not part.outputs or bool(set(part.outputs) & set(part.inputs))
