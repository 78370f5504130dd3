"""Tensors of few channels with two neighboring pixels in a word, so that convolutions use all rows and columns.

A tensor of at most half a word's channels leaves rows of the array idle in its readers, and columns in its writer. If
only convolutions write and read it, it may as well have twice the channels and half the width: pixels 2p and 2p + 1 of
channel c become channels c and C + c of pixel p. The writer then computes both pixels at once, with a wider kernel at
twice the stride; a reader of even stride reads pairs at half its stride. Products with the added weights are 0, so all
results are the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from intloom.compiler.ir import Conv, IntGraph, Node, Tensor
from intloom.compiler.program.paired_pixels import paired_name
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule.array_cycles import array_cycles, kernel_words, weight_tiles
from intloom.compiler.schedule.convolution import Weights
from intloom.compiler.schedule.placement import Placement, node_input
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams

_MOST_STRIDE = BY_KIND[Kind.CONV].field("stride_w").maximum
_LEAST_SHARE = 4
"""Two output blocks' weights, with their constants, fit the weight memory beside other ones."""
_MOST_KERNEL = BY_KIND[Kind.CONV].field("kernel_w").maximum


def pair_pixels(graph: IntGraph, params: HardwareParams) -> IntGraph:
    """The graph with pairs of pixels in every tensor where this saves cycles of the array; nodes keep their names."""
    found = _Pairing(graph, params)
    for tensor in graph.tensors.values():
        if tensor.width % 2 == 0 and 2 * tensor.channels <= params.rows:
            found.try_tensor(tensor)
    return found.graph()


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
        if len(convs) < 1 + len(readers) or any(n.strides[1] % 2 for n in convs[1:]):
            return
        _, channels, height, width = tensor.shape
        pairs = replace(tensor, name=paired_name(tensor.name), shape=(1, 2 * channels, height, width // 2))
        paired = [self._writing(convs[0], pairs), *(self._reading(n, pairs) for n in convs[1:])]
        tensors = {**self._tensors, pairs.name: pairs}
        if self._cycles(paired, tensors) >= self._cycles(convs, tensors):
            return
        if not all(self._fits(n) for n in paired):
            return
        del tensors[tensor.name]
        self._tensors = tensors
        self._nodes.update((n.name, n) for n in paired)

    def _packed(self, node: Conv) -> bool:
        name = node_input(node)
        return name in self._graph.inputs and self._placement.view(name).buffer.layout is Layout.PIXELS4

    def _fits(self, node: Conv) -> bool:
        packed = self._packed(node)
        # Where memory is tight, a wider kernel may be too large although the original one is not.
        words = weight_tiles(node, self._params, packed=packed) * self._params.tile_words
        small = words <= self._params.weight_words // _LEAST_SHARE
        narrow = kernel_words(node, self._params, packed=packed) <= _MOST_KERNEL
        return small and narrow and node.strides[1] <= _MOST_STRIDE

    def _cycles(self, nodes: Sequence[Conv], tensors: Mapping[str, Tensor]) -> int:
        return sum(array_cycles(n, tensors, self._params, packed=self._packed(n)) for n in nodes)

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
        found = replace(node, inputs=(pairs.name,), weights=weights, pads=pads)
        return self._strided(found, node.strides[1] // 2, self._tensors[node.output].width, pairs.width)

    def _strided(self, node: Conv, stride: int, out_width: int, in_width: int | None = None) -> Conv:
        """The convolution with another stride, and with as much padding at the right as its output needs."""
        width = self._tensors[node_input(node)].width if in_width is None else in_width
        top, left, bottom, _ = node.pads
        needed = (out_width - 1) * stride + node.weights.shape[3] - width - left
        return replace(node, strides=(node.strides[0], stride), pads=(top, left, bottom, max(0, needed)))
