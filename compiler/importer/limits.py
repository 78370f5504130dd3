"""Limits of a model's size, checked before the ONNX library processes it."""

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import onnx

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.importer.control_flow import check_loops
from intloom.compiler.importer.subgraphs import graphs_of
from intloom.compiler.refusals import Refusal

MOST_NODES = 100_000
"""Nodes of a model with its functions inlined; a large detector has about 1,000."""
LARGEST_VALUE = 1 << 28
"""Elements of a value."""
_MOST_INPUTS, _DEEPEST = 4_096, 8
"""Inputs of a node, and levels of branches in branches, for which onnxslim needs at most seconds."""

_Key = tuple[str, str, str]


def check_limits(proto: onnx.ModelProto) -> None:
    """Check that a model has at most `MOST_NODES` nodes, also where its functions call each other, of limited size.

    Raises
    ------
    ModelError
        A function calls itself.
    UnsupportedError
        It has more nodes, a node has too many inputs, branches are nested too deep, or a Loop has too many trips.
    """
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    sizes: dict[_Key, int] = {}
    try:
        for key in TopologicalSorter({k: _calls(f.node, functions) for k, f in functions.items()}).static_order():
            sizes[key] = _size(functions[key].node, functions, sizes)
    except CycleError as error:
        domain, name, _ = error.args[1][0]
        raise ModelError(f"function {domain}::{name} must not call itself: correct the model") from None
    if (count := _size(proto.graph.node, functions, sizes)) > MOST_NODES:
        raise UnsupportedError(
            f"the model must have at most {MOST_NODES:,} nodes with its functions inlined, but it has {count:,}: "
            "export a part of it",
            Refusal.SIZE.number,
        )
    check_loops(proto)


def _calls(nodes: Iterable[onnx.NodeProto], functions: Mapping[_Key, onnx.FunctionProto]) -> list[_Key]:
    return [key for n in _all_nodes(nodes) if (key := (n.domain, n.op_type, n.overload)) in functions]


def _size(
    nodes: Iterable[onnx.NodeProto], functions: Mapping[_Key, onnx.FunctionProto], sizes: Mapping[_Key, int]
) -> int:
    if not functions:
        return sum(1 for _ in _all_nodes(nodes))
    return sum(sizes.get((n.domain, n.op_type, n.overload), 1) for n in _all_nodes(nodes))


def _all_nodes(nodes: Iterable[onnx.NodeProto], depth: int = 0) -> Iterator[onnx.NodeProto]:
    """Nodes, with those of their subgraphs."""
    for node in nodes:
        if len(node.input) > _MOST_INPUTS or depth > _DEEPEST:
            limit = f"{_DEEPEST} levels of branches around it, but it has more"
            if depth <= _DEEPEST:
                limit = f"{_MOST_INPUTS:,} inputs, but it has {len(node.input):,}"
            raise UnsupportedError(
                f"node {node.name or node.op_type!r} must have at most {limit}: export a part of the model",
                Refusal.SIZE.number,
            )
        yield node
        for graph in graphs_of(node):
            yield from _all_nodes(graph.node, depth + 1)
