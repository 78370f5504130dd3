"""Verifies a `Model` between passes."""

from __future__ import annotations

from intloom.common.errors import ModelError
from intloom.compiler.importer.model import Model


def check_model(model: Model) -> None:
    """Every value is made once and before it is read; node names are unique.

    Raises
    ------
    ModelError
        A rule is broken.
    """
    made = set(model.inputs) | set(model.constants)
    names: set[str] = set()
    for node in model.nodes:
        if node.name in names:
            raise ModelError(f"two nodes are called {node.name!r}")
        names.add(node.name)
        for value in node.inputs:
            if value and value not in made:
                raise ModelError(f"node {node.name!r} reads {value!r} before it is made")
        for value in node.outputs:
            if value and value in made:
                raise ModelError(f"node {node.name!r} makes {value!r}, which already exists")
            made.add(value)
    for value in model.outputs:
        if value not in made:
            raise ModelError(f"output {value!r} is made by no node")
