"""The rules of names and order that everything later relies on, checked before the ONNX library sees the model."""

from __future__ import annotations

import onnx
from hw.spec.errors import ModelError


def check_order(graph: onnx.GraphProto) -> None:
    """Every value is made once, before it is used; every output exists.

    Raises
    ------
    ModelError
        A name is made twice, read before it is made (a cycle or a missing initialiser), or asked for and never made.
    """
    made: set[str] = set()
    stored = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    if len(stored) != len(graph.initializer) + len(graph.sparse_initializer):
        raise ModelError("two initialisers have the same name")
    for value in graph.input:
        if value.name in made:
            raise ModelError(f"two inputs are called {value.name!r}")
        made.add(value.name)
    made |= stored
    for node in graph.node:
        label = node.name or node.op_type
        for name in node.input:
            if name and name not in made:
                raise ModelError(
                    f"node {label!r} reads {name!r}, which no input, initialiser or earlier node makes: "
                    "the nodes form a cycle, are out of order, or an initialiser is missing"
                )
        for name in node.output:
            if name and name in made:
                raise ModelError(f"node {label!r} makes {name!r}, which already exists: value names must be unique")
            made.add(name)
    seen: set[str] = set()
    for value in graph.output:
        if value.name not in made or not value.name:
            raise ModelError(f"output {value.name!r} is made by no node")
        if value.name in seen:
            raise ModelError(f"two outputs are called {value.name!r}")
        seen.add(value.name)
