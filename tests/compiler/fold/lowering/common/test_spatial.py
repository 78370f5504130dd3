"""A tensor of one pixel per channel scales images of any size, and is not enlarged for it."""

import pytest

from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize("size", [(9, 15), (16, 3), (28, 28), (17, 19), (160, 4)])
def test_one_pixel_is_broadcast(size, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, *size), 4)
    gate = m.pair(*m.node("GlobalMaxPool", [x.name]), (1, 4, 1, 1), x.scale)
    m.output(m.pair(*m.node("Mul", [x.name, gate.name]), x.shape, x.scale))
    found = kinds(compared(m, seed))
    assert not found.count("Resize")
    assert found.count("Conv") == 1
