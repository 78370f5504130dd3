"""Tensors of few channels with two neighboring pixels in a word, so that convolutions use all rows and columns.

A tensor of at most half a word's channels leaves rows of the array idle in its readers, and columns in its writer. If
only convolutions write and read it, it may as well have twice the channels and half the width: pixels 2p and 2p + 1 of
channel c become channels c and C + c of pixel p. The writer then computes both pixels at once, with a wider kernel at
twice the stride. A reader of even stride reads pairs at half its stride. A reader of stride 1 has two outputs for each
pair: it is a transposed convolution of stride 2 along rows. Products with the added weights are 0, so all results are
the same bytes.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Add, Conv, ConvTranspose, IntGraph, Tensor
from intloom.compiler.ir.ops.conv_transpose import transposed
from intloom.compiler.limits import LARGEST_KERNEL, LARGEST_STRIDE
from intloom.compiler.program.memory import paired_name
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.stages.placement import Placement, node_input
from intloom.compiler.schedule.stages.weights import Weights, kernel_words, node_cycles, weight_tiles
from intloom.hw.spec.params import HardwareParams


def pair_pixels(graph: IntGraph, params: HardwareParams) -> IntGraph:
    """The graph with pairs of pixels in every tensor where this saves cycles of the array; nodes keep their names."""
    placement = Placement(graph, params)
    packed = frozenset(name for name in graph.inputs if placement.view(name).buffer.layout is Layout.PIXELS4)
    for tensor in graph.tensors.values():
        if tensor.width % 2 == 0 and 2 * tensor.channels <= params.rows:
            graph = _with_pairs(graph, tensor, packed, params)
    return graph


def _with_pairs(graph: IntGraph, tensor: Tensor, packed: Set[str], params: HardwareParams) -> IntGraph:
    """The graph with pairs of pixels in a tensor if all its users allow it and need fewer cycles then.

    Images with names in `packed` are stored as packed pixels.
    """
    writer, readers = graph.producer(tensor.name), graph.consumers(tensor.name)
    if writer is None or not readers or tensor.name in graph.outputs:
        return graph
    convs = [n for n in (writer, *readers) if type(n) is Conv and n.group == 1 and n.dilations[1] == 1]
    if len(convs) < 1 + len(readers) or not all(map(_reads_pairs, convs[1:])):
        return graph
    _, channels, height, width = tensor.shape
    pairs = replace(tensor, name=paired_name(tensor.name), shape=(1, 2 * channels, height, width // 2))
    tensors = {**graph.tensors, pairs.name: pairs}
    paired = [_writing(convs[0], pairs, tensors), *(_reading(n, pairs, tensors) for n in convs[1:])]

    def cycles(nodes: Sequence[Conv]) -> int:
        return sum(node_cycles(n, tensors, params, packed=node_input(n) in packed) for n in nodes)

    added = sum(_lost_addition(n, graph, params) for n in convs[1:])
    if cycles(paired) + added >= cycles(convs):
        return graph
    if not all(_fits(n, params, packed=node_input(n) in packed) for n in paired):
        return graph
    del tensors[tensor.name]
    replaced = {n.name: n for n in paired}
    return replace(graph, nodes=tuple(replaced.get(n.name, n) for n in graph.nodes), tensors=tensors)


def _lost_addition(node: Conv, graph: IntGraph, params: HardwareParams) -> int:
    """Half the cycles of an addition that the vector unit must do, because no transposed convolution does it."""
    if node.strides[1] > 1 or not any(isinstance(n, Add) for n in graph.consumers(node.output)):
        return 0
    out = graph.tensors[node.output]
    return -(-out.channels // params.rows) * out.height * out.width * params.vector_slices // 2


def _fits(node: Conv, params: HardwareParams, *, packed: bool) -> bool:
    # Where memory is tight, a wider kernel may be too large although the original one is not.
    words = weight_tiles(node, params, packed=packed) * params.tile_words
    small = words <= params.weight_words // tuning.PAIR_SHARE
    return small and kernel_words(node, params, packed=packed) <= LARGEST_KERNEL and node.strides[1] <= LARGEST_STRIDE


def _writing(node: Conv, pairs: Tensor, tensors: Mapping[str, Tensor]) -> Conv:
    """A convolution that computes two neighboring pixels at once."""
    stride, width = node.strides[1], node.weights.shape[3]
    channels, inputs, height, _ = node.weights.shape
    weights: Weights = np.zeros((2 * channels, inputs, height, width + stride), node.weights.dtype)
    weights[:channels, ..., :width] = node.weights
    weights[channels:, ..., stride:] = node.weights
    made = replace(
        node,
        output=pairs.name,
        weights=weights,
        bias=np.tile(node.bias, 2),
        mantissa=np.tile(node.mantissa, 2),
        shift=np.tile(node.shift, 2),
    )
    return _strided(made, 2 * stride, tensors)


def _reading(node: Conv, pairs: Tensor, tensors: Mapping[str, Tensor]) -> Conv:
    return _transposed(node, pairs) if node.strides[1] == 1 else _halved(node, pairs, tensors)


def _halved(node: Conv, pairs: Tensor, tensors: Mapping[str, Tensor]) -> Conv:
    """A convolution of even stride that reads pairs; its window may start at the second pixel of a pair."""
    left = node.pads[1]
    odd, (channels, inputs, height, width) = left % 2, node.weights.shape
    kernel = -(-(width + odd) // 2)
    # Pixels [channel, input channel, row, pair, pixel of the pair]; pixels outside the kernel have weight 0.
    spread: Weights = np.zeros((channels, inputs, height, kernel * 2), node.weights.dtype)
    spread[..., odd : odd + width] = node.weights
    split = spread.reshape(channels, inputs, height, kernel, 2).transpose(0, 4, 1, 2, 3)
    weights = np.ascontiguousarray(split).reshape(channels, 2 * inputs, height, kernel)
    pads = (node.pads[0], (left + odd) // 2, node.pads[2], node.pads[3])
    halved = replace(node, inputs=(pairs.name,), weights=weights, pads=pads)
    return _strided(halved, node.strides[1] // 2, tensors)


def _strided(node: Conv, stride: int, tensors: Mapping[str, Tensor]) -> Conv:
    """The convolution with another stride, and with as much padding at the right as its output needs."""
    width, out_width = tensors[node_input(node)].width, tensors[node.output].width
    top, left, bottom, _ = node.pads
    needed = (out_width - 1) * stride + node.weights.shape[3] - width - left
    return replace(node, strides=(node.strides[0], stride), pads=(top, left, bottom, max(0, needed)))


def _reads_pairs(node: Conv) -> bool:
    """Whether a convolution can read pairs: a transposed one cannot have more padding than its kernel reaches."""
    reach = [(k - 1) * d for k, d in zip(node.weights.shape[2:], node.dilations, strict=True)]
    within = all(pad <= reach[axis % 2] for axis, pad in enumerate(node.pads))
    return node.strides[1] % 2 == 0 or (node.strides == (1, 1) and within)


def _transposed(node: Conv, pairs: Tensor) -> ConvTranspose:
    """A convolution of stride 1 as a transposed one of pairs: each pixel of a pair has its own part of the kernel."""
    channels, inputs, height, width = node.weights.shape
    weights: Weights = np.zeros((channels, 2 * inputs, height, width + 1), node.weights.dtype)
    for number in (0, 1):
        weights[:, number * inputs : (number + 1) * inputs, :, number : number + width] = node.weights[:, :, ::-1, ::-1]
    reach = [(k - 1) * d for k, d in zip(node.weights.shape[2:], node.dilations, strict=True)]
    top, left, bottom, right = (reach[axis % 2] - pad for axis, pad in enumerate(node.pads))
    # A transposed convolution has no zero point in its bias; sums wrap at 32 bits.
    bias = node.bias + node.zp_in * node.weights.sum(axis=(1, 2, 3), dtype=np.int64)
    window = {"pads": (top, left, bottom, right), "strides": (1, 2)}
    return transposed(node, inputs=(pairs.name,), weights=weights, bias=bias.astype(np.int32), **window)
