"""Chooses the unit of each depthwise convolution: the array, or the vector unit beside the array's other work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from intloom.compiler.ir import Conv, IntGraph, Node, Table
from intloom.compiler.schedule.array_cycles import array_cycles
from intloom.compiler.schedule.convolution import Geometry
from intloom.compiler.schedule.depthwise import depthwise_cut
from intloom.compiler.schedule.depthwise_stage import instruction_cycles
from intloom.compiler.schedule.stage_list import StageList
from intloom.hw.spec.params import HardwareParams

_MOST_ROWS = 4
"""Output rows of an instruction in the estimate: stripes rarely have more."""


def pays_beside_array(node: Conv, stages: StageList) -> bool:
    """Whether the vector unit's cycles that no neighbor on the array hides are fewer than the array's."""
    graph, params = stages.graph, stages.params
    out = graph.tensors[node.output]
    blocks = -(-out.channels // params.rows)
    rows = min(out.height, _MOST_ROWS)
    vector = -(-out.height // rows) * blocks * instruction_cycles(node, rows, out.width, params)
    return vector - _hidden(node, stages) < _on_array(node, graph, params)


def _on_array(node: Conv, graph: IntGraph, params: HardwareParams) -> int:
    out = graph.tensors[node.output]
    kernel = (int(node.weights.shape[2]), int(node.weights.shape[3]))
    geometry = Geometry(kernel, (-node.pads[0], -node.pads[1]), node.strides, node.dilations)
    blocks = -(-out.channels // params.cols)
    extent = (out.height, out.width)
    cut = depthwise_cut(geometry, extent, params, blocks) if params.depthwise else None
    if cut is not None:
        return blocks * cut.cycles(*extent, blocks)
    return blocks * out.height * out.width * max(kernel[0] * kernel[1], params.cols // params.lanes)


def _hidden(node: Conv, stages: StageList) -> int:
    """Cycles of the convolutions that make the operand or read the result: the stage may run at the same time."""
    found = {n.name: n for n in (*_makers(node.inputs[0], stages.graph), *_readers(node.output, stages.graph))}
    tensors, params = stages.graph.tensors, stages.params
    return sum(array_cycles(n, tensors, params, packed=stages.is_packed(n)) for n in found.values())


def _is_ungrouped(node: Node | None) -> TypeGuard[Conv]:
    return isinstance(node, Conv) and node.group == 1


def _makers(tensor: str, graph: IntGraph) -> Iterator[Conv]:
    """The convolution without groups that makes a tensor; a table may follow it."""
    node = graph.producer(tensor)
    if isinstance(node, Table):
        yield from _makers(node.inputs[0], graph)
    elif _is_ungrouped(node):
        yield node


def _readers(tensor: str, graph: IntGraph) -> Iterator[Conv]:
    """The convolutions without groups that read a tensor, also through a table."""
    for node in graph.consumers(tensor):
        if isinstance(node, Table):
            yield from _readers(node.output, graph)
        elif _is_ungrouped(node):
            yield node
