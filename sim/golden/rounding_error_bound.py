"""How far a layer's result may stray where a runtime sums up in float32 instead of in integers.

A float32 sum of n terms strays from the exact one by at most `LAMBDA * sqrt(n) * u * (sum of the terms' sizes)`, with
u = 2**-24, unless roundings conspire: in each sum the chance of more is below 2 * exp(-LAMBDA**2 / 2), whatever the
order of the terms (N. Higham and T. Mary, A new approach to probabilistic rounding error analysis, 2019). Rounded to
integers, such a sum gives another result only where the exact one lies that close to a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import AvgPool, Conv, ConvTranspose, Node
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, Affine
from intloom.sim.golden.conv import conv_sums
from intloom.sim.golden.conv_transpose import scattered_sums
from intloom.sim.golden.registry import Context, Image, operation, through

LAMBDA = 6.0
_UNIT = 2.0**-FP32_SIGNIFICAND_BITS
_OTHER_ROUNDINGS = 4
"""Of the dequantised operands, the bias and the division by the result's scale."""
_AVERAGE_STRAYS = 2.0**-10
"""In steps of the result: more than float32 strays over any window, and than an average's two laws lie apart."""
_FINE_SHIFT = 20
"""With as many bits behind the point, a law holds the straying."""


def at_error_bound(node: Node, operands: Sequence[Image], context: Context, direction: int) -> Image:
    """The node's result with every sum as far up (1) or down (-1) as float32 may stray; as it is, if it has no sums."""
    if isinstance(node, Conv):
        return _strayed_product(node, operands[0], context, direction)
    if isinstance(node, AvgPool):
        node = replace(node, affine=_strayed_law(node.affine, direction))
    return operation(node)(node, operands, context)


def _strayed_law(affine: Affine, direction: int) -> Affine:
    """The law of an average, with its constant moved."""
    finer = max(0, _FINE_SHIFT - affine.shift)
    reach = round(direction * _AVERAGE_STRAYS * (1 << (affine.shift + finer)))
    return replace(
        affine, m1=affine.m1 << finer, m2=affine.m2 << finer, c=(affine.c << finer) + reach, shift=affine.shift + finer
    )


def _strayed_product(node: Conv, x: Image, context: Context, direction: int) -> Image:
    factor = np.ldexp(node.mantissa.astype(np.float64), -node.shift.astype(np.int64))[:, None, None]
    sums = _sums(node, x, context) + node.bias[:, None, None]
    terms = int(np.prod(node.weights.shape[2:])) + _OTHER_ROUNDINGS
    reach = LAMBDA * sqrt(terms) * _UNIT * _sizes(node, x, context)
    rounded = np.rint((sums + direction * reach) * factor) + node.zp_out
    return through(node.table, np.clip(rounded, INT8_MIN, INT8_MAX).astype(np.int8))


def _sums(node: Conv, x: Image, context: Context) -> NDArray[np.int64]:
    """The sums of products without the bias."""
    _, channels, height, width = context.tensors[node.output].shape
    if isinstance(node, ConvTranspose):
        return scattered_sums(node, x, (height, width))
    sums = np.empty((channels, height, width), dtype=np.int64)
    for place, rows, part in conv_sums(node, x):
        sums[place, rows] = part
    return sums


def _sizes(node: Conv, x: Image, context: Context) -> NDArray[np.int64]:
    """For each result at least the sum of its terms' absolute values, the bias among them."""
    weights = node.weights.sum(axis=0, dtype=np.int32)
    bias = node.bias.astype(np.int64)
    if not isinstance(node, ConvTranspose):  # whose bias has no zero point in it
        bias = bias + node.zp_in * weights.reshape(len(bias), -1).sum(axis=1, dtype=np.int64)
    # Half the inputs' sizes, rounded up, are within what the exact product takes.
    halves = (np.abs(x.astype(np.int16) - node.zp_in) + 1) >> 1
    sizes = replace(node, weights=np.abs(weights)[None], zp_in=0)
    return 2 * _sums(sizes, halves, context) + np.abs(bias)[:, None, None]
