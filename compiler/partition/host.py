"""Cuts out the parts that run on the host, through onnxruntime: the head before the integer graph and the tail after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..fold.lowering import Lowering
from ..fold.qparams import DEQUANTIZE
from ..importer import Model, OnnxNode, cut
from ..ir import IntGraph


def head_part(low: Lowering, graph: IntGraph) -> Model | None:
    """Float operators between the model's inputs and the values that the graph's inputs quantise."""
    model = low.model
    makers = [model.producers[v] for v in graph.inputs if v in model.producers]
    wanted = [n.inputs[0] for n in makers if n.inputs[0] not in model.inputs]
    if not wanted:
        return None
    nodes = _before(model, wanted, ())
    return cut(model, nodes, model.inputs, dict.fromkeys(wanted))


def tail_part(low: Lowering, leaving: Mapping[str, str]) -> Model | None:
    """Everything that the model's outputs still need once the graph's results are there, dequantised."""
    model = low.model
    given: dict[str, None] = {}
    for stored in leaving:
        floats = [out for n in model.users(stored) if n.op == DEQUANTIZE for out in n.outputs]
        given.update(dict.fromkeys(floats))
        given[stored] = None
    nodes = _before(model, model.outputs, (*given, *low.entries))
    if not nodes:
        return None
    made = {out for n in nodes for out in n.outputs}
    read = [v for n in nodes for v in n.inputs if v and v not in made and v not in model.constants]
    passed = [v for v in model.outputs if v not in made]
    inputs = tuple(dict.fromkeys(v for v in (*read, *passed)))
    return cut(model, nodes, inputs, (v for v in model.outputs if v in made))


def _before(model: Model, values: Iterable[str], given: Iterable[str]) -> tuple[OnnxNode, ...]:
    """The nodes that `values` depend on, as far back as values that are given."""
    stop = set(given)
    wanted: set[str] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        node = model.producers.get(value)
        if value in stop or node is None or node.name in wanted:
            continue
        wanted.add(node.name)
        pending += [v for v in node.inputs if v]
    return tuple(n for n in model.nodes if n.name in wanted)
