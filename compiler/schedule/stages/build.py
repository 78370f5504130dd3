"""From a graph to its stages: fuse residuals, schedule every node, drop dead stages, order them branch by branch."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from intloom.compiler.ir import Add, Conv, ConvTranspose, IntGraph
from intloom.compiler.schedule.stages.placement import Buffer, Placement, View, node_input
from intloom.compiler.schedule.stages.stage import Stage
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


def branch_by_branch(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages in depth-first order from the stages that nothing reads.

    Graph order often alternates between branches; then each branch's tensors wait for the other.
    """
    sources = _sources(stages)
    read = {k for needed in sources for k in needed}
    order: dict[int, None] = {}
    for last in (k for k in range(len(stages)) if k not in read):
        # Not recursive: a model may be deeper than Python's recursion limit.
        waiting = [last]
        while waiting:
            missing = next((k for k in sources[waiting[-1]] if k not in order), None)
            if missing is None:
                order[waiting.pop()] = None
            else:
                waiting.append(missing)
    return tuple(stages[k] for k in order)


def _sources(stages: Sequence[Stage]) -> list[list[int]]:
    """For each stage, those that write what it reads, earliest first; those of whole tensors before others.

    Then the stages that make the other operands may run in stripes with it.
    """
    writers: dict[Buffer, list[tuple[int, range]]] = {}
    for index, stage in enumerate(stages):
        for buffer, blocks in stage.written:
            writers.setdefault(buffer, []).append((index, blocks))

    def of(index: int, views: Iterable[View]) -> list[int]:
        return sorted(
            {
                writer
                for view in views
                for writer, blocks in writers.get(view.buffer, ())
                if writer != index and blocks.start < view.block_range.stop and view.block_range.start < blocks.stop
            }
        )

    return [of(k, stage.weight_operands) + of(k, stage.operands) for k, stage in enumerate(stages)]


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
    return stages if keep_intermediates else replace(stages, stages=branch_by_branch(stages.stages))
