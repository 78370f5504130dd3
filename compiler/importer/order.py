"""Checks of value names and node order, before the ONNX library processes the model."""

from collections import Counter

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
    made = _given(graph)
    for node in graph.node:
        _check_node(node, made)
        # After the node's own check, so that a node cannot read its own output.
        made.update(node.output)
    _check_outputs(graph, made)


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


def _check_node(node: onnx.NodeProto, made: set[str]) -> None:
    label = node.name or node.op_type
    for name in node.input:
        if name and name not in made:
            raise ModelError(
                f"node {label!r} reads {name!r}, which no input, initializer or earlier node produces: "
                "sort the nodes, remove the cycle, or add the missing initializer"
            )
    outputs = [name for name in node.output if name]
    for name in outputs:
        if name in made or outputs.count(name) > 1:
            raise ModelError(f"node {label!r} produces {name!r}, which already exists: value names must be unique")


def _check_outputs(graph: onnx.GraphProto, made: set[str]) -> None:
    names = [v.name for v in graph.output]
    if not names:
        raise ModelError("the model must have an output, but it has none: add one")
    for name in names:
        if not name or name not in made:
            raise ModelError(f"output {name!r} is produced by no node: remove the output or add its node")
        if names.count(name) > 1:
            raise ModelError(f"two outputs have the name {name!r}: output names must be unique")
