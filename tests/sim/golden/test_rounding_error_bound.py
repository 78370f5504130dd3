"""float32 sums, in any order, lie within the rounding-error bound."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.ir import AvgPool, Conv, ConvTranspose, MaxPool, Tensor
from intloom.hw.spec.arith import Affine, RoundingMode, scale_from_float
from intloom.sim.golden.registry import Context, operation
from intloom.sim.golden.rounding_error_bound import at_error_bound

SEEDS = st.integers(0, (1 << 32) - 1)
CHANNELS, PIXELS = 48, 400


def context(channels, height, width):
    return Context(RoundingMode.ORT, {"y": Tensor("y", (1, channels, height, width), 1.0, 0, False)})


def product(noise, scale):
    """One output channel that multiplies each pixel's channels; a tie is never far at this scale."""
    factor = scale_from_float(scale)
    return Conv(
        name="n",
        inputs=("x",),
        output="y",
        weights=noise.integers(-127, 128, (1, 1, CHANNELS, 1, 1)).astype(np.int8),
        bias=noise.integers(-5000, 5000, 1).astype(np.int32),
        mantissa=np.array([factor.mantissa], np.uint32),
        shift=np.array([factor.shift], np.uint8),
        zp_in=int(noise.integers(-128, 128)),
        zp_out=0,
    )


def in_float(node, x, scale_x, scale_w, scale_y, order):
    """The layer as a float runtime computes it, with the terms added one by one in some order."""
    weights = node.weights[0, 0, :, 0, 0].astype(np.float32) * np.float32(scale_w)
    values = (x.reshape(CHANNELS, -1).astype(np.float32) - np.float32(node.zp_in)) * np.float32(scale_x)
    exact_bias = int(node.bias[0]) + node.zp_in * int(node.weights.sum())
    total = np.full(values.shape[1], np.float32(exact_bias) * np.float32(scale_x * scale_w), np.float32)
    for c in order:
        total += values[c] * weights[c]
    return np.clip(np.rint(total / np.float32(scale_y)), -128, 127).astype(np.int8).reshape(1, 1, -1)


@given(SEEDS)
def test_a_float_sum_lies_within_the_bounds(seed):
    noise = np.random.default_rng(seed)
    scale_x, scale_w = (np.float32(s) for s in noise.uniform(0.001, 0.1, 2))
    # Of a result in steps of a quarter, half or whole unit of the sum, every second to eighth is a tie.
    scale_y = np.float32(scale_x * scale_w) * np.float32(2 ** int(noise.integers(9, 13)))
    node = product(noise, float(np.float32(scale_x * scale_w) / scale_y))
    x = noise.integers(-128, 128, (CHANNELS, 1, PIXELS)).astype(np.int8)
    theirs = in_float(node, x, scale_x, scale_w, scale_y, noise.permutation(CHANNELS))
    low, plain, high = (at_error_bound(node, [x], context(1, 1, PIXELS), way) for way in (-1, 0, 1))
    assert np.all((low <= theirs) & (theirs <= high) & (low <= plain) & (plain <= high))
    # Far from ties the bounds are equal.
    assert np.count_nonzero(low != high) < PIXELS // 8


def test_only_sums_at_a_tie_have_two_results():
    """At a scale of 1/1024, sums 511, 512 and 513 lie below, on and above the tie between 0 and 1."""
    node = product(np.random.default_rng(0), 2.0**-10)
    weights = np.zeros_like(node.weights)
    weights[0, 0, :3, 0, 0] = 1, 100, 4
    node = replace(node, weights=weights, bias=np.zeros(1, np.int32), zp_in=0)
    x = np.zeros((CHANNELS, 1, 3), np.int8)
    x[:3, 0] = [[99, 100, 101], [4, 4, 4], [3, 3, 3]]
    low, high = (at_error_bound(node, [x], context(1, 1, 3), way).ravel().tolist() for way in (-1, 1))
    assert (low, high) == ([0, 0, 1], [0, 1, 1])


@pytest.mark.parametrize("way", [-1, 1])
def test_a_transposed_product_has_the_bounds_of_a_plain_one(way):
    noise = np.random.default_rng(3)
    plain = product(noise, 2.0**-9)
    values = {f.name: getattr(plain, f.name) for f in fields(plain)}
    # Its bias has no zero point in it.
    bias = plain.bias + plain.zp_in * plain.weights.sum(dtype=np.int32)
    other = ConvTranspose(**{**values, "bias": bias.astype(np.int32)})
    x = noise.integers(-128, 128, (CHANNELS, 1, PIXELS)).astype(np.int8)
    one = context(1, 1, PIXELS)
    np.testing.assert_array_equal(at_error_bound(plain, [x], one, way), at_error_bound(other, [x], one, way))


def test_averages_have_bounds_and_maxima_are_exact():
    average = AvgPool(
        name="n", inputs=("x",), output="y", kernel=(1, 2), strides=(1, 2), affine=Affine(1, 0, 0, 1), zp_in=0
    )
    x = np.array([[[1, 2, 2, 2, 2, 3, 3, 3]]], np.int8)
    assert [at_error_bound(average, [x], context(1, 1, 4), way).ravel().tolist() for way in (-1, 1)] == [
        [1, 2, 2, 3],
        [2, 2, 3, 3],
    ]
    largest = MaxPool(name="n", inputs=("x",), output="y", kernel=(1, 2), strides=(1, 2))
    one = context(1, 1, 4)
    np.testing.assert_array_equal(at_error_bound(largest, [x], one, 1), operation(largest)(largest, [x], one))
