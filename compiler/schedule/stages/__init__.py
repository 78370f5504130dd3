"""Stages: fuse residuals, schedule every node, drop dead stages, order them.

Every file of this folder is imported and registers the schedules of its operators.
"""

from dataclasses import replace

from intloom.common.discovery import import_submodules
from intloom.compiler.ir import IntGraph
from intloom.compiler.ir.node import operators
from intloom.compiler.schedule.stages.elementwise import find_residuals
from intloom.compiler.schedule.stages.order import in_order
from intloom.compiler.schedule.stages.placement import Placement, node_input
from intloom.compiler.schedule.stages.stage_list import StageList, Stages, check_sizes, check_widths, schedule_of
from intloom.hw.spec.params import HardwareParams

import_submodules(__name__)

# An operator without a schedule is an error at once, not in the first network that has it.
for _kind in operators().values():
    schedule_of(_kind)


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
