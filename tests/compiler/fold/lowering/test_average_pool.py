"""Averages over whole images, over windows, and over windows that extend beyond the border."""

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker

_FLOAT_ERROR = 2.0**-13
"""More than the error of onnxruntime's float sum of nine values, in steps of the result."""


def average(m, x, kernel, stride, pads, size, factor=None, **attributes):
    """An average whose scale is that of `x` times `factor`; by default with no average next to a rounding tie."""
    (value,) = m.node("AveragePool", [x.name], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **attributes)
    scale = x.scale * (factor or m.rng.uniform(0.6, 1.2))
    while factor is None and next_to_tie(x.scale, scale, kernel):
        scale = x.scale * m.rng.uniform(0.6, 1.2)
    m.output(m.pair(value, (1, x.shape[1], *size), scale))


def next_to_tie(scale, result_scale, kernel):
    """Whether onnxruntime's rounding of an average of up to `kernel` by `kernel` pixels may depend on their order."""
    ratio = float(np.float32(scale)) / float(np.float32(result_scale))
    sizes = {rows * columns for rows in range(1, kernel + 1) for columns in range(1, kernel + 1)}
    steps = (np.arange(255 * size + 1) * (ratio / size) for size in sizes)
    return any((np.abs(s % 1 - 0.5) < _FLOAT_ERROR).any() for s in steps)


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "size"),
    [
        (3, 1, [1, 1, 1, 1], (9, 9)),
        (3, 2, [1, 1, 1, 1], (5, 5)),
        (3, 2, [0, 0, 2, 2], (5, 5)),
        (2, 2, [1, 0, 0, 1], (5, 5)),
    ],
)
def test_borders_average_fewer_pixels(kernel, stride, pads, size, rng, seed):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 9, 9), 5), kernel, stride, pads, size)
    assert kinds(compared(m, seed)).count("AvgPool") > 1


@pytest.mark.parametrize("include", [0, 1])
def test_partial_windows_at_the_end(include, rng, seed):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 8, 8), 5), 3, 2, [0] * 4, (4, 4), ceil_mode=1, count_include_pad=include)
    compared(m, seed)


def test_padding_may_count(rng, seed):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 9, 9), 5), 3, 1, [1] * 4, (9, 9), count_include_pad=1)
    assert kinds(compared(m, seed)).count("AvgPool") == 1


def test_a_small_image_under_a_large_window(rng, seed):
    """Every window covers another part of the image."""
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 3, 3), 5), 3, 1, [1] * 4, (3, 3))
    compared(m, seed)


def test_many_kinds_of_border_are_refused_by_name(rng):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 12, 12), 5), 7, 1, [3] * 4, (12, 12), 1)
    assignment = next(v for v in fold_model(from_proto(m.model(), name="m")).assignments if v.op == "AveragePool")
    assert assignment.target is Target.HOST
    assert "fewer pixels" in assignment.reason
    assert assignment.remedy


@pytest.mark.parametrize("ratio", [1, 0.5, 0.75, 1 / 3])
def test_whole_images_with_scales_that_make_ties(ratio, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 16)
    (mean,) = m.node("GlobalAveragePool", [x.name])
    m.output(m.pair(mean, (1, 16, 1, 1), x.scale * ratio))
    compared(m, seed)


def test_tie_prone_averages_are_warned_of(rng):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 16)
    (value,) = m.node("AveragePool", [x.name], kernel_shape=[2, 2], strides=[2, 2])
    m.output(m.pair(value, (1, 16, 4, 4), x.scale, 128))
    found = fold_model(from_proto(m.model(), name="m"))
    assert any("ties" in w and "AveragePool" in w for w in found.warnings)


def test_mean_over_height_and_width(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 16)
    (value,) = m.node("ReduceMean", [x.name], axes=[2, 3], keepdims=0)
    m.output(m.pair(value, (1, 16), x.scale * 0.83))
    compared(m, seed)


@pytest.mark.parametrize(("height", "width"), [(33, 33), (56, 56), (30, 134)])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("op", ["GlobalAveragePool", "ReduceMean"])
def test_more_pixels_than_the_vector_unit_adds(op, dtype, height, width, rng, seed):
    """A product of ones with the transposed image, up to 4,020 pixels; the result has the order of channels."""
    m = OnnxMaker(rng, dtype=dtype)
    x = m.conv(m.image(3, height, width), 5)
    (value,) = m.node(op, [x.name], **({"axes": [2, 3]} if op == "ReduceMean" else {}))
    m.output(m.pair(value, (1, 5, 1, 1), x.scale * m.rng.uniform(0.02, 1.2)))
    assert kinds(compared(m, seed))[-2:] == ["Constant", "MatMul"]


def test_clamped_average_of_many_pixels(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 40, 40), 5)
    (value,) = m.node("Relu", m.node("GlobalAveragePool", [x.name]))
    # With another zero point, onnxruntime averages in float before the Relu.
    m.output(m.pair(value, (1, 5, 1, 1), x.scale * 0.1, 0))
    assert "MatMul" in kinds(compared(m, seed))


@pytest.mark.parametrize(
    ("height", "width", "pools"),
    [(80, 80, 2), (112, 112, 2), (67, 83, 2), (1, 4100, 2), (5000, 1, 2), (3, 1500, 2), (190, 180, 5)],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_more_pixels_than_the_array_adds(dtype, height, width, pools, rng, seed):
    """Digits of windows in one or two steps, with padding where windows do not divide the image."""
    m = OnnxMaker(rng, dtype=dtype)
    x = m.conv(m.image(3, height, width), 5)
    (value,) = m.node("GlobalAveragePool", [x.name])
    m.output(m.pair(value, (1, 5, 1, 1), x.scale * m.rng.uniform(0.02, 0.5)))
    assert kinds(compared(m, seed)).count("AvgPool") == pools


@pytest.mark.parametrize("zero", [0, 1, 9, 117, 128, 138, 246, 254, 255])
@pytest.mark.parametrize("size", [(64, 64), (181, 179)])
def test_digits_for_zero_points_at_the_ends(size, zero, rng, seed):
    m = OnnxMaker(rng)
    x = m.image(3, *size, zero=zero)
    m.output(m.pair(*m.node("GlobalAveragePool", [x.name]), (1, 3, 1, 1), x.scale * 0.01, zero))
    compared(m, seed)


def test_too_many_pixels_are_refused_with_their_number(rng):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 500, 500), 2, 1)
    m.output(m.pair(*m.node("GlobalAveragePool", [x.name]), (1, 2, 1, 1), x.scale))
    found = next(v for v in fold_model(from_proto(m.model(), name="m")).assignments if v.op == "GlobalAveragePool")
    assert found.target is Target.HOST
    assert "averages 500 by 500 pixels" in found.reason
