"""Slice, Split and Concat along height and width, also combined with channels."""

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value


def sliced(m, x, starts, ends, axes, steps=None):
    inputs = [x.name, *(m.constant(np.array(v)) for v in (starts, ends, axes))]
    if steps:
        inputs.append(m.constant(np.array(steps)))
    shape = list(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(axes), strict=True):
        shape[axis] = len(range(*slice(start, end, step).indices(shape[axis])))
    return Value(m.node("Slice", inputs)[0], tuple(shape), x.scale)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([2], [7], [2], None), ([1, 0], [9, -1], [2, 3], [2, 3]), ([-3], [1 << 62], [3], None),
        ([1, 2, 0], [3, 9, 4], [1, 2, 3], [1, 1, 2]), ([19], [21], [2], None),
    ],
)  # fmt: skip
def test_slices_pick_pixels(starts, ends, axes, steps, rng, seed):
    m = OnnxMaker(rng)
    x = sliced(m, m.conv(m.image(3, 24, 9), 4), starts, ends, axes, steps)
    m.output(m.pair(x.name, x.shape, x.scale))
    assert "Conv" in kinds(compared(m, seed))[1:]


@pytest.mark.parametrize("bounds", [(0, 8, 2), (1, 8, 3), (5, 8, 2)])
def test_channels_in_steps(bounds, rng, seed):
    m = OnnxMaker(rng)
    first, last, step = bounds
    x = sliced(m, m.conv(m.image(3, 8, 9), 8), [first], [last], [1], [step])
    m.output(m.conv(m.pair(x.name, x.shape, x.scale), 4))
    compared(m, seed)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_an_empty_result_stays_with_the_host(axis, rng):
    m = OnnxMaker(rng)
    x = sliced(m, m.conv(m.image(3, 8, 9), 4), [3], [3], [axis])
    m.output(m.pair(x.name, x.shape, x.scale))
    (found,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Slice")
    assert found.target is Target.HOST


def test_the_focus_of_yolov5(rng, seed):
    """Space to depth: every second pixel four times, as channels."""
    m = OnnxMaker(rng)
    x = m.image(3, 8, 8)
    parts = [sliced(m, x, [a, b], [8, 8], [2, 3], [2, 2]) for a in (0, 1) for b in (0, 1)]
    (joined,) = m.node("Concat", [p.name for p in parts], axis=1)
    m.output(m.conv(m.pair(joined, (1, 12, 4, 4), x.scale, 0), 6))
    compared(m, seed)


@pytest.mark.parametrize("axis", [2, 3])
def test_split_and_concat_along_pixels(axis, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 4)
    names = m.node("Split", [x.name, m.constant(np.array([3, 5]))], [m.fresh("part"), m.fresh("part")], axis=axis)
    shapes = [tuple(n if a == axis else s for a, s in enumerate(x.shape)) for n in (3, 5)]
    one, two = (m.pair(n, s, x.scale * f) for n, s, f in zip(names, shapes, (1.0, 1.5), strict=True))
    (back,) = m.node("Concat", [two.name, one.name], axis=axis)
    m.output(m.pair(back, x.shape, x.scale * 1.2))
    compared(m, seed)


def test_sequences_are_joined(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 1, 8), 4, 1)
    (flat,) = m.node("Reshape", [x.name, m.constant(np.array([1, 4, 8]))])
    one = m.pair(flat, (1, 4, 8), x.scale)
    two = m.unary("Sigmoid", one, 1 / 255)
    (joined,) = m.node("Concat", [one.name, two.name], axis=2)
    m.output(m.pair(joined, (1, 4, 16), x.scale))
    compared(m, seed)


def test_long_crops(rng, seed):
    """Averages of single pixels crop what several convolutions cannot, also before a step."""
    m = OnnxMaker(rng)
    x = sliced(m, m.image(3, 150, 100), [100, 70], [1 << 62, 1 << 62], [2, 3], [3, 1])
    m.output(m.pair(x.name, x.shape, x.scale, 0))
    assert kinds(compared(m, seed)) == ["AvgPool", "Conv"]


def test_circular_padding(rng, seed):
    """A sequence between its own last and first pixels, as around a convolution over time."""
    m = OnnxMaker(rng)
    x = m.image(6, 1, 200, 9)
    last, first = sliced(m, x, [-80], [1 << 62], [3]), sliced(m, x, [0], [80], [3])
    parts = [m.pair(p.name, p.shape, x.scale, 9) if p is not x else x for p in (last, x, first)]
    (joined,) = m.node("Concat", [p.name for p in parts], axis=3)
    whole = m.pair(joined, (1, 6, 1, 360), x.scale, 9)
    weight, scales = m.weights((4, 6, 1, 3), 0)
    (value,) = m.node("Conv", [whole.name, weight, m.bias(scales, x.scale)], dilations=[1, 80])
    m.output(m.pair(value, (1, 4, 1, 200), x.scale * 60))
    assert "Conv" in kinds(compared(m, seed))
