"""Consistency check of a `Model`, run between passes."""

from intloom.common.errors import ModelError
from intloom.compiler.importer.model import Model
from intloom.compiler.importer.order import check_flow


def check_model(model: Model) -> None:
    """Check that every value is produced once and before it is read, and that node names are unique.

    Raises
    ------
    ModelError
        A value or a node name violates this.
    """
    names: set[str] = set()
    for node in model.nodes:
        if node.name in names:
            raise ModelError(f"two nodes have the name {node.name!r}: node names must be unique")
        names.add(node.name)
    given = {*model.inputs, *model.constants}
    check_flow(((n.name, n.reads, n.outputs) for n in model.nodes), given, model.outputs)
