"""Blocks of pixels that become channels, and back; the largest pixel of each channel."""

import pytest

from intloom.compiler.fold.target import Target
from tests.support.lowered import compared
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize(("op", "mode"), [("DepthToSpace", "DCR"), ("DepthToSpace", "CRD"), ("SpaceToDepth", None)])
@pytest.mark.parametrize("block", [2, 3])
def test_pixel_shuffles(op, mode, block, rescaled, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 2 * block**2 if mode else 5)
    (value,) = m.node(op, [x.name], blocksize=block, **({"mode": mode} if mode else {}))
    shape = (1, 2, 6 * block, 6 * block) if mode else (1, 5 * block**2, 6 // block, 6 // block)
    moved = m.pair(value, shape, x.scale * (1.3 if rescaled else 1))
    m.output(m.conv(moved, 4))
    found = compared(m, seed)
    assert next(a for a in found.folded.assignments if a.op == op).target is Target.ARRAY


@pytest.mark.parametrize("keepdims", [0, 1])
def test_maxima_of_channels(keepdims, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 7, 5), 6)
    (value,) = m.node("ReduceMax", [x.name], axes=[2, -1], keepdims=keepdims)
    m.output(m.pair(value, (1, 6, 1, 1)[: 4 if keepdims else 2], x.scale))
    found = compared(m, seed)
    assert next(a for a in found.folded.assignments if a.op == "ReduceMax").target is Target.VECTOR


def test_other_maxima_stay_with_the_host(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 7, 5), 6)
    (value,) = m.node("ReduceMax", [x.name], axes=[1], keepdims=1)
    m.output(m.pair(value, (1, 1, 7, 5), x.scale))
    with pytest.raises(AssertionError, match="reduces other axes than height and width"):
        compared(m, seed)
