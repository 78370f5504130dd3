"""From a graph to its stages: fuse residuals, schedule every node, drop dead stages, order them."""

from dataclasses import replace

from intloom.compiler.ir import Add, Conv, ConvTranspose, IntGraph
from intloom.compiler.schedule.stages.order import in_order
from intloom.compiler.schedule.stages.placement import Placement, node_input
from intloom.compiler.schedule.stages.stage_list import StageList, Stages, check_sizes, check_widths, schedule_of
from intloom.hw.spec.params import HardwareParams


def find_residuals(graph: IntGraph, params: HardwareParams) -> dict[str, Conv]:
    """For each Add, by name, that a convolution can perform, that convolution; the later one if both operands do."""
    producers = {n.output: n for n in graph.nodes}
    position = {n.name: k for k, n in enumerate(graph.nodes)}
    residuals: dict[str, Conv] = {}
    for node in graph.nodes:
        # A fused sum has no table of its own, and the convolution's result never reaches memory, so it cannot be both
        # operands.
        if not isinstance(node, Add) or node.table is not None or node.inputs[0] == node.inputs[1]:
            continue
        convs = [producers[t] for t in node.inputs if t in producers]
        fitting = [c for c in convs if isinstance(c, Conv) and _can_fuse(graph, params, c, node)]
        if fitting:
            # The other operand must be in memory when the convolution runs, so the later one adds.
            residuals[node.name] = max(fitting, key=lambda c: position[c.name])
    return residuals


def _can_fuse(graph: IntGraph, params: HardwareParams, conv: Conv, add: Add) -> bool:
    shapes = {graph.tensors[t].shape for t in (*add.inputs, add.output)}
    alone = graph.consumers(conv.output) == (add,) and conv.output not in graph.outputs
    channels, rows, cols = len(conv.bias), params.rows, params.cols
    # Output blocks must not extend past the last word: the residual operand has no words there.
    whole = -(-channels // cols) * cols <= -(-channels // rows) * rows
    simple = conv.group == 1 and not isinstance(conv, ConvTranspose)
    return alone and whole and simple and len(shapes) == 1


def build_stages(graph: IntGraph, params: HardwareParams, *, keep_intermediates: bool) -> Stages:
    """The stages of a graph.

    Raises
    ------
    UnsupportedError
        No instruction can express a node on this hardware.
    """
    check_sizes(graph)
    check_widths(graph, params)
    residuals = {} if keep_intermediates else find_residuals(graph, params)
    draft = StageList(graph, params, keep_intermediates, Placement(graph, params), residuals)
    for node in graph.nodes:
        # The allocator takes buffers in the order in which they are first viewed: the first operand before the result.
        if node.inputs:
            draft.placement.view(node_input(node))
        schedule_of(type(node))(draft, node)
    stages = draft.finish()
    return stages if keep_intermediates else replace(stages, stages=in_order(stages.stages))
