"""Concat: each operand gets the scale of the result, and what clamps the result clamps each of them."""

import pytest

from tests.support.lowered import compared
from tests.support.onnx_maker import OnnxMaker, Value


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("other", [1.0, 0.7])
@pytest.mark.parametrize("clamp", ["", "Relu"])
def test_operands_of_one_scale_or_two(clamp, other, axis, rng, seed):
    m = OnnxMaker(rng)
    image = m.image(3, 6, 6)
    first, second = m.conv(image, 8), m.conv(image, 8)
    scale = first.scale * other
    (moved,) = (m.pair(v.name, v.shape, first.scale, 90) for v in (second,))
    (value,) = m.node("Concat", [m.pair(first.name, first.shape, first.scale, 90).name, moved.name], axis=axis)
    if clamp:
        (value,) = m.node(clamp, [value])
    shape = tuple(2 * n if i == axis else n for i, n in enumerate(first.shape))
    m.output(m.conv(Value(m.pair(value, shape, scale, 90).name, shape, scale), 4))
    assert len(compared(m, seed).folded.regions) == 1
