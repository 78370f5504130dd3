"""Checks every rule that an integer graph must obey."""

from intloom.compiler.ir.graph import IntGraph
from intloom.compiler.ir.node import Node, operators, require
from intloom.compiler.ir.tensor import Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN
from intloom.hw.spec.formats import TABLE_BYTES


def verify(graph: IntGraph) -> None:
    """Check names, order, shapes and constants.

    Raises
    ------
    ModelError
        A rule is broken; the message names node, rule and value.
    """
    made = set(graph.inputs)
    require(len(made) == len(graph.inputs), "graph", "inputs must be unique", graph.inputs)
    require(len(set(graph.outputs)) == len(graph.outputs), "graph", "outputs must be unique", graph.outputs)
    names: set[str] = set()
    for node in graph.nodes:
        require(node.name not in names, node.name, "names of nodes must be unique", node.name)
        names.add(node.name)
        for value in node.inputs:
            require(value in made, node.name, "it must read tensors made before it", value)
        require(node.output not in made, node.name, "a tensor must be made once", node.output)
        # After the reads, so that a cycle is an error too.
        made.add(node.output)
        require(node.output in graph.tensors, node.name, "its result must be described", node.output)
        _check_node(node, graph)
    for name in graph.outputs:
        require(name in made, "graph", "outputs must be made", name)
    require(made == set(graph.tensors), "graph", "tensors must be inputs or results", sorted(made ^ set(graph.tensors)))
    for name, tensor in graph.tensors.items():
        _check_tensor(name, tensor)


def _check_tensor(name: str, tensor: Tensor) -> None:
    require(tensor.name == name, name, "a tensor must be filed under its name", tensor.name)
    require(tensor.shape[0] == 1 and min(tensor.shape) > 0, name, "shape must be (1, C, H, W)", tensor.shape)
    require(INT8_MIN <= tensor.zero_point <= INT8_MAX, name, "zero point must be an int8", tensor.zero_point)
    require(tensor.scale > 0, name, "scale must be positive", tensor.scale)


def _check_node(node: Node, graph: IntGraph) -> None:
    known = operators()
    # The exact class, not a base: a subclass that is not registered has no golden model and no schedule.
    node.require(type(node) in known.values(), f"its kind must be one of {list(known)}", type(node).__name__)
    operands = [graph.tensors[v] for v in node.inputs]
    count = node.OPERANDS
    node.require(count in (None, len(operands)), f"it must have {count} operands", len(operands))
    table = getattr(node, "table", None)
    node.require(table is None or len(table) == TABLE_BYTES, "its table must have 256 bytes", table and len(table))
    described = graph.tensors[node.output].shape
    shape = node.result_shape(operands, described)
    node.require(described == shape, f"its result must be {shape}", described)
