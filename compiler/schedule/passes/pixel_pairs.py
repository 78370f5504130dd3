"""Tensors of few channels with two neighboring pixels in a word, so that convolutions use all rows and columns.

A tensor of at most half a word's channels leaves rows of the array idle in its readers, and columns in its writer. If
only convolutions write and read it, it may as well have twice the channels and half the width: pixels 2p and 2p + 1 of
channel c become channels c and C + c of pixel p. The writer then computes both pixels at once, with a wider kernel at
twice the stride. A reader of even stride reads pairs at half its stride. A reader of stride 1 has two outputs for each
pair: it is a transposed convolution of stride 2 along rows. Products with the added weights are 0, so all results are
the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Add, Conv, ConvTranspose, IntGraph, Node, Tensor
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
    pairing = _Pairing(graph, params)
    for tensor in graph.tensors.values():
        if tensor.width % 2 == 0 and 2 * tensor.channels <= params.rows:
            pairing.try_tensor(tensor)
    return pairing.graph()


class _Pairing:
    """A graph of which some tensors have pairs of pixels."""

    def __init__(self, graph: IntGraph, params: HardwareParams) -> None:
        self._graph = graph
        self._params = params
        self._placement = Placement(graph, params)
        self._nodes: dict[str, Node] = {n.name: n for n in graph.nodes}
        self._tensors = dict(graph.tensors)
        self._producers = {n.output: n.name for n in graph.nodes}

    def graph(self) -> IntGraph:
        """The graph as it is now."""
        return replace(self._graph, nodes=tuple(self._nodes.values()), tensors=self._tensors)

    def try_tensor(self, tensor: Tensor) -> None:
        """Store pairs of pixels in a tensor if all its users allow it and need fewer cycles then."""
        writer = self._nodes.get(self._producers.get(tensor.name, ""))
        readers = [self._nodes[n.name] for n in self._graph.consumers(tensor.name)]
        if writer is None or not readers or tensor.name in self._graph.outputs:
            return
        convs = [n for n in (writer, *readers) if type(n) is Conv and n.group == 1 and n.dilations[1] == 1]
        if len(convs) < 1 + len(readers) or not all(map(_reads_pairs, convs[1:])):
            return
        _, channels, height, width = tensor.shape
        pairs = replace(tensor, name=paired_name(tensor.name), shape=(1, 2 * channels, height, width // 2))
        paired = [self._writing(convs[0], pairs), *(self._reading(n, pairs) for n in convs[1:])]
        tensors = {**self._tensors, pairs.name: pairs}
        added = sum(self._lost_addition(n) for n in convs[1:])
        if self._cycles(paired, tensors) + added >= self._cycles(convs, tensors):
            return
        if not all(self._fits(n) for n in paired):
            return
        del tensors[tensor.name]
        self._tensors = tensors
        self._nodes.update((n.name, n) for n in paired)

    def _lost_addition(self, node: Conv) -> int:
        """Half the cycles of an addition that the vector unit must do, because no transposed convolution does it."""
        users = self._graph.consumers(node.output)
        if node.strides[1] > 1 or not any(isinstance(n, Add) for n in users):
            return 0
        out = self._tensors[node.output]
        return -(-out.channels // self._params.rows) * out.height * out.width * self._params.vector_slices // 2

    def _packed(self, node: Conv) -> bool:
        name = node_input(node)
        return name in self._graph.inputs and self._placement.view(name).buffer.layout is Layout.PIXELS4

    def _fits(self, node: Conv) -> bool:
        packed = self._packed(node)
        # Where memory is tight, a wider kernel may be too large although the original one is not.
        words = weight_tiles(node, self._params, packed=packed) * self._params.tile_words
        small = words <= self._params.weight_words // tuning.PAIR_SHARE
        narrow = kernel_words(node, self._params, packed=packed) <= LARGEST_KERNEL
        return small and narrow and node.strides[1] <= LARGEST_STRIDE

    def _cycles(self, nodes: Sequence[Conv], tensors: Mapping[str, Tensor]) -> int:
        return sum(node_cycles(n, tensors, self._params, packed=self._packed(n)) for n in nodes)

    def _writing(self, node: Conv, pairs: Tensor) -> Conv:
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
        return self._strided(made, 2 * stride, pairs.width)

    def _reading(self, node: Conv, pairs: Tensor) -> Conv:
        return _transposed(node, pairs) if node.strides[1] == 1 else self._halved(node, pairs)

    def _halved(self, node: Conv, pairs: Tensor) -> Conv:
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
        return self._strided(halved, node.strides[1] // 2, self._tensors[node.output].width, pairs.width)

    def _strided(self, node: Conv, stride: int, out_width: int, in_width: int | None = None) -> Conv:
        """The convolution with another stride, and with as much padding at the right as its output needs."""
        width = self._tensors[node_input(node)].width if in_width is None else in_width
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
