"""Limits of a model's size, checked before the ONNX library processes it."""

from collections.abc import Iterable, Iterator, Mapping

import onnx

from intloom.common.errors import ModelError

MOST_NODES = 100_000
"""Nodes of a model with its functions inlined; a large detector has about 1,000."""

_Key = tuple[str, str, str]


def check_limits(proto: onnx.ModelProto) -> None:
    """Check that a model has at most `MOST_NODES` nodes, also where its functions call each other.

    Raises
    ------
    ModelError
        It has more nodes, or a function calls itself.
    """
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    sizes: dict[_Key, int] = {}
    # Depth first, without recursion: a chain of calls may be longer than Python's stack.
    pending = list(functions)
    entered: set[_Key] = set()
    while pending:
        key = pending[-1]
        called = [c for c in _calls(functions[key].node, functions) if c not in sizes]
        if key in sizes or not called:
            sizes.setdefault(key, _size(functions[key].node, functions, sizes))
            pending.pop()
        elif key in entered:
            raise ModelError(f"function {key[0]}::{key[1]} must not call itself: correct the model")
        else:
            entered.add(key)
            pending += called
    if (count := _size(proto.graph.node, functions, sizes)) > MOST_NODES:
        raise ModelError(
            f"the model must have at most {MOST_NODES:,} nodes with its functions inlined, but it has {count:,}: "
            "export a part of it"
        )


def _calls(nodes: Iterable[onnx.NodeProto], functions: Mapping[_Key, onnx.FunctionProto]) -> list[_Key]:
    return [key for n in _all_nodes(nodes) if (key := (n.domain, n.op_type, n.overload)) in functions]


def _size(
    nodes: Iterable[onnx.NodeProto], functions: Mapping[_Key, onnx.FunctionProto], sizes: Mapping[_Key, int]
) -> int:
    if not functions:
        return sum(1 for _ in _all_nodes(nodes))
    return sum(sizes.get((n.domain, n.op_type, n.overload), 1) for n in _all_nodes(nodes))


def _all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, with those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _all_nodes(graph.node)
