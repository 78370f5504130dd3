"""The results of a layer at its rounding-error bound, where a runtime sums in float32 instead of in integers.

The error of a float32 sum of n terms is at most `LAMBDA * sqrt(n) * u * (sum of the terms' absolute values)`, with
u = 2**-24. The probability of a larger error is below 2 * exp(-LAMBDA**2 / 2) for each sum, in any order of the terms
(N. Higham and T. Mary, A new approach to probabilistic rounding error analysis, 2019). Rounded to an integer, such a
sum gives another result only where the exact sum is that close to a rounding tie.
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
"""Of the dequantized operands, the bias and the division by the result's scale."""
_AVERAGE_ERROR = 2.0**-10
"""In steps of the result: larger than the float32 error over any window, and than the difference of the two forms of
an average's affine operation."""
_FINE_SHIFT = 20
"""Fraction bits that represent the error of an average."""


def at_error_bound(node: Node, operands: Sequence[Image], context: Context, direction: int) -> Image:
    """The node's result with every sum moved up (1) or down (-1) by its error bound, if it has sums."""
    if isinstance(node, Conv):
        return _product_at_bound(node, operands[0], context, direction)
    if isinstance(node, AvgPool):
        node = replace(node, affine=_affine_at_bound(node.affine, direction))
    return operation(node)(node, operands, context)


def _affine_at_bound(affine: Affine, direction: int) -> Affine:
    """The affine operation of an average, with its constant moved by the bound."""
    finer = max(0, _FINE_SHIFT - affine.shift)
    bound = round(direction * _AVERAGE_ERROR * (1 << (affine.shift + finer)))
    return replace(
        affine, m1=affine.m1 << finer, m2=affine.m2 << finer, c=(affine.c << finer) + bound, shift=affine.shift + finer
    )


def _product_at_bound(node: Conv, x: Image, context: Context, direction: int) -> Image:
    factor = np.ldexp(node.mantissa.astype(np.float64), -node.shift.astype(np.int64))[:, None, None]
    sums = _sums(node, x, context) + node.bias[:, None, None]
    terms = int(np.prod(node.weights.shape[2:])) + _OTHER_ROUNDINGS
    bound = LAMBDA * sqrt(terms) * _UNIT * _sizes(node, x, context)
    rounded = np.rint((sums + direction * bound) * factor) + node.zp_out
    return through(node.table, np.clip(rounded, INT8_MIN, INT8_MAX).astype(np.int8))


def _sums(node: Conv, x: Image, context: Context) -> NDArray[np.int64]:
    """The sums of products without the bias."""
    _, channels, height, width = context.tensors[node.output].shape
    if isinstance(node, ConvTranspose):
        return scattered_sums(node, x, (height, width))
    sums = np.empty((channels, height, width), dtype=np.int64)
    for channel, rows, part in conv_sums(node, x):
        sums[channel, rows] = part
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
