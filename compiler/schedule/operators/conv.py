"""Convolutions."""

from __future__ import annotations

from intloom.compiler.ir import Conv, ConvTranspose
from intloom.compiler.schedule.conv_stage import ConvStage
from intloom.compiler.schedule.convolution import Geometry, Weights, packed_kernel, transposed_passes
from intloom.compiler.schedule.depthwise_choice import pays_beside_array
from intloom.compiler.schedule.depthwise_stage import DepthwiseStage, is_expressible
from intloom.compiler.schedule.limits import check_fields, window_fields
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.placement import node_input
from intloom.compiler.schedule.stage_list import StageList
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.isa import Kind


@schedules(Conv, ConvTranspose)
def schedule_conv(stages: StageList, node: Conv) -> None:
    """One ConvStage; the Add adds it if the convolution performs a residual addition."""
    kernel = (node.weights.shape[2], node.weights.shape[3])
    if stages.is_packed(node):
        kernel = (kernel[0], -(-kernel[1] // stages.params.pixels_per_word))
    dilation = {"dilation_h": node.dilations[0], "dilation_w": node.dilations[1]}
    check_fields(node, Kind.CONV, window_fields(kernel, node.strides) | dilation)
    if not stages.is_packed(node) and is_expressible(node, stages.params) and pays_beside_array(node, stages):
        stages.add(DepthwiseStage(*stages.common(node), node=node), node.output)
    elif node not in stages.residuals.values():
        stages.add(conv_stage(stages, node, node.output), node.output)


def conv_stage(
    stages: StageList, node: Conv, output: str, residual: Affine | None = None, other: str | None = None
) -> ConvStage:
    """The stage that writes tensor `output`: the convolution, plus tensor `other` by the affine `residual` if given."""
    placement = stages.placement
    source = placement.view(node_input(node))
    return ConvStage(
        params=stages.params,
        origin=stages.origin(node),
        operands=(source,) if other is None else (source, placement.view(other)),
        out=placement.view(output),
        node=node,
        passes=_passes(stages, node),
        image=stages.image,
        group=node.group,
        residual=residual,
    )


def _passes(stages: StageList, node: Conv) -> list[tuple[Geometry, Weights]]:
    if isinstance(node, ConvTranspose):
        return transposed_passes(node.weights, node.strides, node.dilations, node.pads[:2])
    weights = packed_kernel(node.weights, stages.params) if stages.is_packed(node) else node.weights
    kernel = (weights.shape[2], weights.shape[3])
    return [(Geometry(kernel, (-node.pads[0], -node.pads[1]), node.strides, node.dilations), weights)]
