"""Normalizations over something else than one axis stay on the host; what is around them runs on the accelerator."""

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, folded

MS = {"domain": "com.microsoft"}
CHANNELS = 8
IMAGE, MATRIX = (1, CHANNELS, 8, CHANNELS), (1, 8 * CHANNELS, CHANNELS)


def normalized(m, op, constants, *, skip=False, **attributes):
    """A normalization between two convolutions; one with a second input needs matrices."""
    inputs = [m.conv(m.image(4, 8, CHANNELS), CHANNELS).name]
    if skip:
        inputs = [m.node("Reshape", [x, m.constant(MATRIX)])[0] for x in (*inputs, m.image(CHANNELS, 8, CHANNELS).name)]
    inputs += [m.constant(np.linspace(0.5, 1.5, CHANNELS, dtype=np.float32)) for _ in range(constants)]
    (value,) = m.node(op, inputs, **attributes)
    if skip:
        (value,) = m.node("Reshape", [m.pair(value, MATRIX, 0.03, 100).name, m.constant(IMAGE)])
    m.output(m.conv(m.pair(value, IMAGE, 0.03, 100), 4))
    return m.model()


@pytest.mark.parametrize(
    ("op", "opset", "constants", "attributes"),
    [
        ("SkipLayerNormalization", 17, 2, {"skip": True, **MS}),
        ("SkipSimplifiedLayerNormalization", 17, 1, {"skip": True, **MS}),
        ("InstanceNormalization", 17, 2, {}),
        ("GroupNormalization", 21, 2, {"num_groups": 2}),
        ("LpNormalization", 17, 0, {"axis": 1}),
    ],
)
def test_normalizations_stay_on_the_host(op, opset, constants, attributes, rng, seed):
    found = assert_equal(normalized(OnnxMaker(rng, opset=opset), op, constants, **attributes), seed)
    (assignment,) = (a for a in found.folded.assignments if a.op == op)
    assert assignment.target is Target.HOST
    assert assignment.reason.startswith(f"no integers define {op}:")
    assert "BatchNormalization" in assignment.remedy
    assert next(a for a in found.folded.assignments if a.op == "Conv").target is Target.ARRAY


def test_a_response_norm_says_why_its_root_stays_with_the_host(rng):
    """As of ConvNeXtV2."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    (root,) = m.node("ReduceL2", [x.name], axes=[2, 3], keepdims=1)
    m.output(m.binary("Mul", x, m.pair(root, (1, 8, 1, 1), x.scale)))
    (made,) = [a for a in folded(m.model()).assignments if a.op == "ReduceL2"]
    assert (made.row, "sum of squares" in made.reason) == (13, True)
