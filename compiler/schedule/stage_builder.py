"""From a graph to its stages: fuse residuals, schedule every node, drop dead stages."""

from __future__ import annotations

from intloom.compiler.emit.constants import ConstantImage
from intloom.compiler.ir import IntGraph
from intloom.compiler.schedule.limits import check_sizes, check_widths
from intloom.compiler.schedule.operators.registry import schedule
from intloom.compiler.schedule.placement import Placement, node_input
from intloom.compiler.schedule.residuals import find_residuals
from intloom.compiler.schedule.stage_list import StageList
from intloom.compiler.schedule.stage_order import branch_by_branch
from intloom.hw.spec.params import HardwareParams


def build_stages(
    graph: IntGraph, params: HardwareParams, image: ConstantImage, *, keep_intermediates: bool
) -> StageList:
    """The stages of a graph.

    Raises
    ------
    UnsupportedError
        No instruction can express a node on this hardware.
    """
    check_sizes(graph)
    check_widths(graph, params)
    residuals = {} if keep_intermediates else find_residuals(graph, params)
    stages = StageList(graph, params, image, keep_intermediates, Placement(graph, params), residuals)
    for node in graph.nodes:
        # The allocator takes buffers in the order in which they are first viewed: the first operand before the result.
        if node.inputs:
            stages.placement.view(node_input(node))
        schedule(stages, node)
    stages.drop_dead_stages()
    if not keep_intermediates:
        stages.stages = branch_by_branch(stages.stages)
    return stages
