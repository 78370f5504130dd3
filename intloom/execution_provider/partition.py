"""Choice of the nodes that the provider takes, from the compiler's assignments."""

from collections.abc import Sequence

import onnx

from intloom.common.errors import UsageError
from intloom.compiler.frontend import Target, fold_model
from intloom.compiler.importer import load_model

_COMPUTING = (Target.ARRAY, Target.VECTOR, Target.TABLE)


def parts_of(model: onnx.ModelProto) -> list[list[int]]:
    """The nodes that run on the accelerator, by position in the model: one list for each part.

    A part has no path through a node of the host, so onnxruntime can replace it by one node. Nodes are those that
    `intloom inspect` assigns to the array, the vector unit or tables, with their QuantizeLinear, DequantizeLinear and
    data movement.

    Raises
    ------
    UsageError, ModelError, UnsupportedError
        The compiler does not accept the model.
    """
    _check_sizes(model)
    named = onnx.ModelProto()
    named.CopyFrom(model)
    for position, node in enumerate(named.graph.node):
        node.name = str(position)
    targets = {int(a.name): a.target for a in fold_model(load_model(named)).assignments}
    nodes = named.graph.node
    computing = {i for i, target in targets.items() if target in _COMPUTING}
    moving = {i for i, target in targets.items() if target is Target.PLACEMENT}
    taken = computing | _joined(nodes, computing, moving)
    taken -= _left_to_host(nodes, taken, taken - computing)
    levels = _levels(nodes, taken)
    _raise(nodes, taken, taken - computing, levels)
    return [[i for i in sorted(taken) if levels[i] == k] for k in sorted({levels[i] for i in taken})]


def _check_sizes(model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        if not all(d.HasField("dim_value") for d in value.type.tensor_type.shape.dim):
            raise UsageError(
                f"input {value.name!r} has an open dimension, but programs are compiled for fixed sizes: set it with "
                "SessionOptions.add_free_dimension_override_by_name"
            )


def _joined(nodes: Sequence[onnx.NodeProto], computing: set[int], moving: set[int]) -> set[int]:
    """Nodes of `moving` that are connected with nodes of `computing` through each other."""
    touching: dict[str, set[int]] = {}
    for i in computing | moving:
        for value in (*nodes[i].input, *nodes[i].output):
            if value:
                touching.setdefault(value, set()).add(i)
    joined: set[int] = set()
    pending = list(computing)
    while pending:
        node = nodes[pending.pop()]
        for value in (*node.input, *node.output):
            new = (touching.get(value, set()) & moving) - joined
            joined |= new
            pending += new
    return joined


def _left_to_host(nodes: Sequence[onnx.NodeProto], taken: set[int], moving: set[int]) -> set[int]:
    """Pairs on the border: a DequantizeLinear that only the host reads, a QuantizeLinear of what the host computes.

    onnxruntime joins them with its own nodes, as in the host parts of `intloom.Session`: for example DequantizeLinear,
    Softmax and QuantizeLinear become an integer Softmax, which has other results than the three nodes.
    """
    read = {v for i in taken for v in nodes[i].input}
    made = {v for n in nodes for v in n.output} - {v for i in taken for v in nodes[i].output}
    after = {i for i in moving if read.isdisjoint(nodes[i].output)}
    return after | {i for i in moving if nodes[i].op_type == "QuantizeLinear" and nodes[i].input[0] in made}


def _levels(nodes: Sequence[onnx.NodeProto], taken: set[int]) -> dict[int, int]:
    """For each node, the largest number of changes from a taken to another node on a path to it."""
    levels: dict[int, int] = {}
    makers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        before = [makers[v] for v in node.input if v in makers]
        levels[i] = max((levels[b] + (b in taken and i not in taken) for b in before), default=0)
        makers.update(dict.fromkeys(node.output, i))
    return levels


def _raise(nodes: Sequence[onnx.NodeProto], taken: set[int], moving: set[int], levels: dict[int, int]) -> None:
    """Move nodes to the level of their first reader: the DequantizeLinear of weights belongs to the part that reads it.

    A reader on the host has a higher level than what it reads, so a node moves at most to the level below it.
    """
    readers: dict[str, list[int]] = {}
    for i in reversed(range(len(nodes))):
        reading = [r for v in nodes[i].output for r in readers.get(v, ())]
        if i in moving and reading:
            levels[i] = max(levels[i], min(levels[r] - (r not in taken) for r in reading))
        for value in nodes[i].input:
            readers.setdefault(value, []).append(i)
