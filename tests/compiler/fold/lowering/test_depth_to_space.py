"""Blocks of pixels that become channels, and back."""

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
