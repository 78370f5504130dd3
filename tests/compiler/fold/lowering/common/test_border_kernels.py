"""Convolutions are exact without the kernel rows and columns that see only padding."""

import pytest

from tests.compiler.fold.lowering.common.test_large_kernels import convolved
from tests.support.lowered import compared
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize(
    ("size", "kernel", "attributes", "stored"),
    [
        ((1, 12), (3, 3), {"pads": [1, 1, 1, 1]}, (1, 3)),
        ((2, 2), (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, (2, 2)),
        ((3, 9), (7, 7), {"pads": [3, 3, 3, 3]}, (5, 7)),
        ((1, 1), (5, 5), {"pads": [2, 2, 2, 2]}, (1, 1)),
        ((2, 8), (3, 3), {"pads": [4, 4, 4, 4], "dilations": [4, 4]}, (1, 3)),
        ((3, 3), (3, 3), {"pads": [2, 2, 2, 2], "dilations": [3, 3]}, (3, 3)),
        ((4, 4), (3, 3), {"pads": [2, 0, 2, 2]}, (3, 3)),
        ((1, 8), (2, 3), {"pads": [0, 1, 1, 1]}, (1, 3)),
        ((1, 8), (2, 3), {"pads": [1, 1, 0, 1]}, (1, 3)),
    ],
)
@pytest.mark.parametrize("depthwise", [False, True])
def test_padding_taps(size, kernel, attributes, stored, depthwise, rng, seed):
    m = OnnxMaker(rng)
    x = m.image(8, *size, m.zero_point())
    strides = attributes.get("strides", (1, 1))
    rest = {k: v for k, v in attributes.items() if k != "strides"}
    m.output(convolved(m, x, 8, kernel, strides, group=8 if depthwise else 1, **rest))
    (node,) = compared(m, seed).folded.graph.nodes
    assert node.weights.shape[2:] == stored


def test_random_geometries(rng, seed):
    for _ in range(20):
        m = OnnxMaker(rng)
        x = m.image(3, rng.randint(1, 5), rng.randint(1, 5), m.zero_point())
        kernel, dilations = ([rng.randint(1, 4) for _ in range(2)] for _ in range(2))
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        pads = [rng.randint(0, s - 1) for s in spans * 2]
        for axis in (0, 1):
            pads[axis] += max(0, spans[axis] - x.shape[2 + axis] - pads[axis] - pads[axis + 2])
        strides = [rng.randint(1, 3) for _ in range(2)]
        m.output(convolved(m, x, 4, kernel, strides, pads=pads, dilations=dilations))
        compared(m, seed)
