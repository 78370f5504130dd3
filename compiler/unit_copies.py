"""Quantization units whose float operators have no readers outside the unit."""

from collections.abc import Set
from dataclasses import replace

from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit, find_quantization_units
from intloom.compiler.importer import Model, OnnxNode


def separate_units(model: Model, accelerated: Set[str]) -> tuple[Model, frozenset[str]]:
    """Give each unit on the accelerator its own float operators, if others read their results.

    `accelerated` are names of nodes of the file. The operators of the model stay for the other readers; the second
    result has their names.
    """
    shared: set[str] = set()
    nodes: list[OnnxNode] = []
    units = {unit.quantize.name: unit for unit in find_quantization_units(model)}
    for node in model.nodes:
        unit = units.get(node.name)
        if unit is None or not accelerated & set(node.origins) or not _has_other_readers(model, unit):
            nodes.append(node)
            continue
        copies = _copies(unit)
        nodes += copies
        shared |= {n.name for n in unit.operators}
    return (model.with_nodes(nodes), frozenset(shared)) if shared else (model, frozenset())


def _has_other_readers(model: Model, unit: QuantizationUnit) -> bool:
    inside = {n.name for n in unit.nodes}
    made = [value for n in unit.operators for value in n.outputs if value]
    return any(v in model.outputs or any(n.name not in inside for n in model.users(v)) for v in made)


def _copies(unit: QuantizationUnit) -> list[OnnxNode]:
    """The unit's operators and QuantizeLinear, with other names for all values but the result."""
    tag = f"for/{unit.output}"
    new = {value: f"{value}/{tag}" for n in unit.operators for value in n.outputs if value}
    operators = [replace(n.renamed(new), name=f"{n.name}/{tag}", origin=n.origins) for n in unit.operators]
    return [*operators, unit.quantize.renamed(new)]
