"""Consistency check of a `Model`, run between passes."""

from intloom.common.errors import ModelError
from intloom.compiler.importer.model import Model


def check_model(model: Model) -> None:
    """Check that every value is produced once and before it is read, and that node names are unique.

    Raises
    ------
    ModelError
        A value or a node name violates this.
    """
    made = set(model.inputs) | set(model.constants)
    names: set[str] = set()
    for node in model.nodes:
        if node.name in names:
            raise ModelError(f"two nodes have the name {node.name!r}: node names must be unique")
        names.add(node.name)
        for value in node.reads:
            if value and value not in made:
                raise ModelError(
                    f"node {node.name!r} reads {value!r} before any node produces it: sort the nodes in data-flow order"
                )
        for value in node.outputs:
            if value and value in made:
                raise ModelError(
                    f"node {node.name!r} produces {value!r}, which already exists: value names must be unique"
                )
            made.add(value)
    for value in model.outputs:
        if value not in made:
            raise ModelError(f"output {value!r} is produced by no node: remove the output or add its node")
