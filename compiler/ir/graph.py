"""The integer graph: tensors by name, nodes in topological order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from intloom.compiler.ir.node import Node
from intloom.compiler.ir.tensor import Tensor


@dataclass(frozen=True, eq=False)
class IntGraph:
    """An immutable graph of integer operations; `intloom.compiler.ir.verify` checks every rule that it must obey."""

    name: str
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def producer(self, tensor: str) -> Node | None:
        """The node that writes `tensor`, or None for a graph input."""
        return self._producers.get(tensor)

    def consumers(self, tensor: str) -> tuple[Node, ...]:
        """The nodes that read `tensor`, in order."""
        return tuple(self._consumers.get(tensor, ()))

    @cached_property
    def _producers(self) -> Mapping[str, Node]:
        return {n.output: n for n in self.nodes}

    @cached_property
    def _consumers(self) -> Mapping[str, Sequence[Node]]:
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                readers.setdefault(name, []).append(node)
        return readers


def without_dead_nodes(graph: IntGraph) -> IntGraph:
    """The graph without nodes and tensors that no output depends on. Unused inputs belong to its interface and stay."""
    needed = {*graph.inputs, *graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if node.output in needed:
            needed.update(node.inputs)
            kept.append(node)
    tensors = {name: t for name, t in graph.tensors.items() if name in needed}
    if len(kept) == len(graph.nodes) and len(tensors) == len(graph.tensors):
        return graph
    return replace(graph, nodes=tuple(reversed(kept)), tensors=tensors)
