"""Convolutions that read selected pixels read the image itself, with a larger kernel and stride.

The Focus layer of YOLOv5 and YOLOX selects every second row and column in four ways and joins the four images along
channels. The array would spend a pass on each selection. A convolution of the joined images is one of the image: pixel
(y, x) of the selection that starts at (r, c) is pixel (y * step + r, x * step + c). Its kernel has `step` times the
rows and columns, and each weight lies at its own pixel; all other weights are 0. An image of up to four channels is
then stored as packed pixels.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from intloom.compiler.ir import Concat, Conv, IntGraph, Node, Tensor
from intloom.compiler.ir.graph import without_dead_nodes
from intloom.compiler.program.memory import PIXEL_CHANNELS
from intloom.compiler.schedule.stages.placement import node_input
from intloom.compiler.schedule.stages.weights import Weights, kernel_words, node_cycles
from intloom.hw.spec.arith import scale_from_float
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams

_CONV = BY_KIND[Kind.CONV]
_ONE = scale_from_float(1.0)


def read_images(graph: IntGraph, params: HardwareParams) -> IntGraph:
    """The graph in which convolutions read the image whose pixels were selected, where this saves cycles."""
    merged = {n.name: made for n in graph.nodes if type(n) is Conv and (made := _merged(n, graph, params)) is not None}
    if not merged:
        return graph
    return without_dead_nodes(replace(graph, nodes=tuple(merged.get(n.name, n) for n in graph.nodes)))


def _selects(node: Node | None, tensors: Mapping[str, Tensor]) -> TypeGuard[Conv]:
    """Whether a depthwise convolution has a single 1 in its kernel, and no pixel lies beyond the last it selects."""
    if type(node) is not Conv or node.table is not None or any(node.pads) or node.dilations != (1, 1):
        return False
    x, out = tensors[node_input(node)], tensors[node.output]
    height, width = node.strides
    if node.weights.shape[1] != 1 or not node.group == len(node.weights) == x.channels:
        return False
    taps = np.argwhere(node.weights[0, 0])
    same = bool(np.all(node.weights == node.weights[:1])) and taps.shape == (1, 2) and node.weights.sum() == x.channels
    plain = bool(np.all(node.mantissa == _ONE.mantissa) and np.all(node.shift == _ONE.shift))
    exact = plain and node.zp_in == node.zp_out and bool(np.all(node.bias == -node.zp_in))
    if not (same and exact) or (x.height, x.width) != (out.height * height, out.width * width):
        return False
    row, column = _start(node)
    return row < height and column < width


def _start(node: Conv) -> tuple[int, int]:
    """The first pixel that a convolution selects."""
    row, column = np.argwhere(node.weights[0, 0])[0]
    return int(row), int(column)


def _selections(node: Conv, graph: IntGraph) -> list[Conv] | None:
    """The selections of one tensor that only this convolution reads, in the order of its channels."""
    read = node_input(node)
    joined = graph.producer(read)
    parts = joined.inputs if isinstance(joined, Concat) else (read,)
    if any(len(graph.consumers(t)) > 1 or t in graph.outputs for t in (read, *parts)):
        return None
    selections = [n for part in parts if _selects(n := graph.producer(part), graph.tensors)]
    same = len({(node_input(s), s.strides) for s in selections}) == 1 and len(selections) == len(parts)
    # Two weights of one pixel might not fit a byte.
    return selections if same and len({_start(s) for s in selections}) == len(selections) else None


def _merged(node: Conv, graph: IntGraph, params: HardwareParams) -> Conv | None:
    """The convolution of the image; None if it does not read selections, or would take more cycles."""
    selections = _selections(node, graph) if node.group == 1 and node.dilations == (1, 1) else None
    if selections is None:
        return None
    image, out = graph.tensors[node_input(selections[0])], graph.tensors[node_input(node)]
    made = _convolution(node, selections, image)
    alone = len(graph.consumers(image.name)) == len(selections)
    packed = alone and image.name in graph.inputs and image.channels <= PIXEL_CHANNELS and params.pixels_per_word > 1
    kernel = made.weights.shape[2], kernel_words(made, params, packed=packed)
    fields = zip(("kernel_h", "kernel_w", "stride_h", "stride_w"), (*kernel, *made.strides), strict=True)
    if any(value > _CONV.field(name).maximum for name, value in fields):
        return None
    # Every selection is written once: `cols / lanes` cycles for each word.
    selecting = len(selections) * out.height * out.width * (params.cols // params.lanes)
    before = node_cycles(node, graph.tensors, params, packed=False) + selecting
    return made if node_cycles(made, graph.tensors, params, packed=packed) < before else None


def _convolution(node: Conv, selections: list[Conv], image: Tensor) -> Conv:
    """The convolution with each weight at its own pixel of the image."""
    (rows, columns), channels = selections[0].strides, image.channels
    outputs, _, height, width = node.weights.shape
    weights: Weights = np.zeros((outputs, channels, height * rows, width * columns), node.weights.dtype)
    for number, selection in enumerate(selections):
        part = node.weights[:, number * channels : (number + 1) * channels]
        row, column = _start(selection)
        weights[..., row::rows, column::columns] += part
    top, left, bottom, right = node.pads
    return replace(
        node,
        inputs=(image.name,),
        weights=weights,
        strides=(node.strides[0] * rows, node.strides[1] * columns),
        pads=(top * rows, left * columns, bottom * rows, right * columns),
    )
