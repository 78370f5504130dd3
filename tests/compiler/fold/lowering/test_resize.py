"""A linear Resize of quantized images runs on the accelerator where onnxruntime rounds as integers do."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from intloom.common.errors import UnsupportedError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value


def interpolated(m, factors, transform, scale, after, zero=37, **attributes):
    x = m.image(3, 6, 5, zero, scale=scale)
    scales = m.constant(np.array([1, 1, *factors], np.float32))
    modes = {"mode": "linear", "coordinate_transformation_mode": transform, **attributes}
    (value,) = m.node("Resize", [x.name, "", scales], **modes)
    return m.pair(value, (1, 3, 6 * factors[0], 5 * factors[1]), after, zero)


@pytest.mark.parametrize("transform", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
@pytest.mark.parametrize(
    ("factors", "scale", "after"),
    [
        ((3, 3), 0.0173, 0.0173),
        ((3, 1), 0.11, 0.11),
        ((2, 2), 1 / 64, 1 / 64),
        ((4, 2), 1 / 128, 1 / 64),
        ((4, 1), 0.25, 0.25),
    ],
)
def test_linear_enlargement(transform, factors, scale, after, rng, seed):
    m = OnnxMaker(rng)
    m.output(interpolated(m, factors, transform, scale, after))
    assert kinds(compared(m, seed))[-1] == "ConvTranspose"


@pytest.mark.parametrize("transform", ["half_pixel", "align_corners", "asymmetric"])
def test_one_pixel_is_repeated_in_mode_linear(transform, rng, seed):
    """As after the average of a DeepLab head."""
    m = OnnxMaker(rng)
    (mean,) = m.node("GlobalAveragePool", [m.conv(m.image(3, 4, 6), 5).name])
    sizes = m.constant(np.array([1, 5, 4, 6]))
    modes = {"mode": "linear", "coordinate_transformation_mode": transform}
    (value,) = m.node("Resize", [m.pair(mean, (1, 5, 1, 1), 0.013).name, "", "", sizes], **modes)
    m.output(m.conv(m.pair(value, (1, 5, 4, 6), 0.017), 4))
    assert "Resize" in kinds(compared(m, seed))


@pytest.mark.parametrize("transform", [None, "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("nearest", [None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_enlargement_is_lowered_where_it_repeats_pixels(transform, nearest, rng, seed):
    """By any rounding, and by the standard's where the node names none."""
    named = {"coordinate_transformation_mode": transform, "nearest_mode": nearest}
    modes = {name: mode for name, mode in named.items() if mode}
    for factors in ((2, 2), (3, 3), (4, 1)):
        m = OnnxMaker(rng)
        x = m.image(3, 6, 5)
        scales = np.array([1, 1, *factors], np.float32)
        (value,) = m.node("Resize", [x.name, "", m.constant(scales)], **modes)
        m.output(m.pair(value, (1, 3, 6 * factors[0], 5 * factors[1]), x.scale))
        image = np.arange(30, dtype=np.float32).reshape(1, 1, 6, 5)
        resized = ReferenceEvaluator(helper.make_node("Resize", ["x", "", "s"], ["y"], **modes)).run(
            None, {"x": image, "s": scales}
        )[0]
        repeats = np.array_equal(resized, image.repeat(factors[0], axis=2).repeat(factors[1], axis=3))
        if repeats:
            compared(m, seed)
        else:
            with pytest.raises(UnsupportedError, match="does not repeat each pixel"):
                compared(m, seed)


def test_before_a_clamp_and_a_convolution(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 5), 8)
    (value,) = m.node("Resize", [x.name, "", m.constant(np.array([1, 1, 3, 3], np.float32))], mode="linear")
    (value,) = m.node("Clip", [value, m.constant(np.float32(0.1)), m.constant(np.float32(1.0))])
    stored = m.pair(value, (1, 8, 18, 15), x.scale, 0)
    m.output(m.conv(Value(stored.name, stored.shape, stored.scale), 4))
    compared(m, seed)


@pytest.mark.parametrize(
    ("factors", "transform", "scale", "after", "reason"),
    [
        ((2, 2), "half_pixel", 0.1, 0.1, "rounds results between two codes irregularly"),
        ((4, 3), "half_pixel", 0.25, 0.25, "rounds results between two codes irregularly"),
        ((2, 3), "half_pixel", 0.1, 0.1, "rounds results between two codes irregularly"),
        ((3, 2), "half_pixel", 0.1, 0.1, "rounds results between two codes irregularly"),
        ((3, 3), "half_pixel", 0.1, 0.2, "rounds results between two codes irregularly"),
        ((3, 3), "align_corners", 0.1, 0.1, "with align_corners"),
        ((5, 5), "half_pixel", 0.1, 0.1, "by (5, 5)"),
    ],
)
def test_what_is_not_exact_runs_on_the_host_with_the_reason(factors, transform, scale, after, reason, rng):
    m = OnnxMaker(rng)
    m.output(m.conv(interpolated(m, factors, transform, scale, after), 4))
    (found,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Resize")
    assert (found.target, found.row) == (Target.HOST, 21)
    assert reason in found.reason


@pytest.mark.parametrize("scales", [(2.1, 2), (2, 2.1)])
def test_scales_between_whole_factors_select_other_pixels(scales, rng):
    """6 x 5 pixels become 12 x 10, as with factors of 2."""
    m = OnnxMaker(rng)
    x = m.image(3, 6, 5)
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    (value,) = m.node("Resize", [x.name, "", m.constant(np.array([1, 1, *scales], np.float32))], **modes)
    m.output(m.conv(m.pair(value, (1, 3, 12, 10), x.scale), 4))
    (found,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Resize")
    assert (found.target, found.row) == (Target.HOST, 21)
    assert "its scales are" in found.reason
