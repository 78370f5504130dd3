"""Cycles that the array takes for a convolution, from its shapes: for choices that are made before there are stages."""

from __future__ import annotations

from collections.abc import Mapping

from intloom.compiler.ir import Conv, ConvTranspose, Tensor
from intloom.hw.spec.params import HardwareParams


def kernel_words(node: Conv, params: HardwareParams, *, packed: bool) -> int:
    """Words of the input that a row of the kernel needs; `packed` says that the input is stored as packed pixels."""
    width: int = node.weights.shape[3]
    return -(-width // params.pixels_per_word) if packed else width


def weight_tiles(node: Conv, params: HardwareParams, *, packed: bool) -> int:
    """Weight tiles of an output block of a convolution without groups."""
    inputs, height = int(node.weights.shape[1]), int(node.weights.shape[2])
    return height * kernel_words(node, params, packed=packed) * (1 if packed else -(-inputs // params.rows))


def array_cycles(node: Conv, tensors: Mapping[str, Tensor], params: HardwareParams, *, packed: bool) -> int:
    """Cycles of a convolution without groups; a weight tile takes at least as many as it has columns."""
    pixels = tensors[node.output].height * tensors[node.output].width
    tiles = weight_tiles(node, params, packed=packed)
    if isinstance(node, ConvTranspose):
        # Every phase of the stride has its share of the pixels and of the kernel.
        tiles = -(-tiles // (node.strides[0] * node.strides[1]))
    strips = -(-pixels // params.strip)
    blocks: int = -(-len(node.weights) // params.cols)
    return blocks * max(tiles * max(pixels, strips * params.cols), pixels * (params.cols // params.lanes))
