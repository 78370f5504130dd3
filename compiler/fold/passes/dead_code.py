"""Pass `dead_code`: remove nodes and tensors that no output depends on.

Requires nothing. Ensures `live`: every node's result is read or is an output.
"""

from dataclasses import replace

from intloom.compiler.fold.passes.pass_manager import Pass
from intloom.compiler.ir import IntGraph


def remove_dead_code(graph: IntGraph) -> IntGraph:
    """Apply the pass. Unused inputs stay: they belong to the graph's interface."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if node.output in needed:
            needed.update(node.inputs)
            kept.append(node)
    tensors = {name: t for name, t in graph.tensors.items() if name in needed or name in graph.inputs}
    return replace(graph, nodes=tuple(reversed(kept)), tensors=tensors)


PASS = Pass("dead_code", remove_dead_code, ensures=frozenset({"live"}))
