"""The rules of names and order that everything later relies on, checked before the ONNX library sees the model."""

from __future__ import annotations

from collections import Counter

import onnx

from intloom.common.errors import ModelError


def check_order(graph: onnx.GraphProto) -> None:
    """Every value is made once, before it is used; every output exists.

    Raises
    ------
    ModelError
        A name is made twice, read before it is made (a cycle or a missing initializer), or asked for and never made.
    """
    _check_text(graph)
    made = _given(graph)
    for node in graph.node:
        _check_node(node, made)
        made.update(node.output)
    _check_outputs(graph, made)


def _check_text(graph: onnx.GraphProto) -> None:
    """Names must be text: the protobuf reader gives bytes where a damaged file holds no valid UTF-8."""
    names = [v.name for v in (*graph.input, *graph.output, *graph.value_info, *graph.initializer)]
    for node in graph.node:
        names += [node.op_type, node.domain, node.name, *node.input, *node.output, *(a.name for a in node.attribute)]
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"every name must be valid UTF-8, not {name!r}")


def _given(graph: onnx.GraphProto) -> set[str]:
    """Names of inputs and initializers; an initializer may share its name with an input, whose default it then is."""
    inputs = [v.name for v in graph.input]
    stored = [t.name for t in graph.initializer] + [t.values.name for t in graph.sparse_initializer]
    for kind, names in (("input", inputs), ("initializer", stored)):
        for name, count in Counter(names).items():
            if not name or count > 1:
                raise ModelError(f"every {kind} must have a name of its own, not {name!r} for {count}")
    return {*inputs, *stored}


def _check_node(node: onnx.NodeProto, made: set[str]) -> None:
    label = node.name or node.op_type
    for name in node.input:
        if name and name not in made:
            raise ModelError(
                f"node {label!r} reads {name!r}, which no input, initializer or earlier node makes: "
                "the nodes form a cycle, are out of order, or an initializer is missing"
            )
    outputs = [name for name in node.output if name]
    for name in outputs:
        if name in made or outputs.count(name) > 1:
            raise ModelError(f"node {label!r} makes {name!r}, which already exists: value names must be unique")


def _check_outputs(graph: onnx.GraphProto, made: set[str]) -> None:
    names = [v.name for v in graph.output]
    if not names:
        raise ModelError("the model must have an output, but it has none")
    for name in names:
        if not name or name not in made:
            raise ModelError(f"output {name!r} is made by no node")
        if names.count(name) > 1:
            raise ModelError(f"two outputs are called {name!r}")
