"""A tensor of one pixel per channel scales images of any size."""

import pytest

from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize(
    ("size", "enlargements", "crops"),
    [((9, 15), 1, 0), ((16, 3), 2, 0), ((28, 28), 2, 0), ((17, 19), 2, 1), ((160, 4), 3, 0)],
)
def test_one_pixel_repeated(size, enlargements, crops, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, *size), 4)
    gate = m.pair(*m.node("GlobalMaxPool", [x.name]), (1, 4, 1, 1), x.scale)
    m.output(m.pair(*m.node("Mul", [x.name, gate.name]), x.shape, x.scale))
    found = kinds(compared(m, seed))
    assert found.count("Resize") == enlargements
    assert found.count("Conv") == 1 + crops
