"""Checks of value names and node order, before the ONNX library processes the model."""

from collections import Counter
from collections.abc import Iterable

import onnx

from intloom.common.errors import ModelError


def check_order(graph: onnx.GraphProto) -> None:
    """Check that every value is produced once and before it is read, and that every output exists.

    Raises
    ------
    ModelError
        A value is produced twice, read before it is produced (a cycle or a missing initializer), or never produced.
    """
    _check_text(graph)
    names = [v.name for v in graph.output]
    check_flow(((n.name or n.op_type, n.input, n.output) for n in graph.node), _given(graph), names)
    if not names:
        raise ModelError("the model must have an output, but it has none: add one")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ModelError(f"two outputs have the name {twice[0]!r}: output names must be unique")


def check_flow(
    nodes: Iterable[tuple[str, Iterable[str], Iterable[str]]], given: Iterable[str], results: Iterable[str]
) -> None:
    """The same of nodes that are names: of the node, of what it reads and of what it produces; empty ones are none."""
    made = set(given)
    for label, reads, outputs in nodes:
        for name in reads:
            if name and name not in made:
                raise ModelError(
                    f"node {label!r} reads {name!r}, which no input, initializer or earlier node produces: "
                    "sort the nodes, remove the cycle, or add the missing initializer"
                )
        # After the reads, so that a node cannot read its own output.
        for name in filter(None, outputs):
            if name in made:
                raise ModelError(f"node {label!r} produces {name!r}, which already exists: value names must be unique")
            made.add(name)
    for name in results:
        if name not in made:
            raise ModelError(f"output {name!r} is produced by no node: remove the output or add its node")


def _check_text(graph: onnx.GraphProto) -> None:
    """Check that names are text: the protobuf reader returns bytes where a damaged file contains invalid UTF-8."""
    names = [v.name for v in (*graph.input, *graph.output, *graph.value_info, *graph.initializer)]
    for node in graph.node:
        names += [node.op_type, node.domain, node.name, *node.input, *node.output, *(a.name for a in node.attribute)]
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"every name must be valid UTF-8, not {name!r}: export the model again")


def _given(graph: onnx.GraphProto) -> set[str]:
    """Names of inputs and initializers. An initializer with the name of an input is the input's default value."""
    inputs = [v.name for v in graph.input]
    stored = [t.name for t in graph.initializer] + [t.values.name for t in graph.sparse_initializer]
    for kind, names in (("input", inputs), ("initializer", stored)):
        for name, count in Counter(names).items():
            if not name or count > 1:
                raise ModelError(f"every {kind} must have a unique, non-empty name, but {name!r} names {count}")
    return {*inputs, *stored}
