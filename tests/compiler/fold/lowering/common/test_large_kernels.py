"""Convolutions with kernels and strides beyond the instruction are exact, as convolutions over blocks of pixels."""

import pytest
from onnx import TensorProto, helper

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value


def convolved(m, x, channels, kernel, strides, group=1, **attributes):
    """A convolution of any kernel, whose size shape inference finds."""
    weight, scales = m.weights((channels, x.shape[1] // group, *kernel), 0)
    (value,) = m.node("Conv", [x.name, weight, m.bias(scales, x.scale)], strides=strides, group=group, **attributes)
    count = x.shape[1] // group
    for k in kernel:
        count *= k
    return m.pair(value, (), x.scale * 74 * float(scales.mean()) * 74 * count**0.5 / 50)


@pytest.mark.parametrize(
    ("channels", "kernel", "strides", "attributes", "blocks"),
    [
        (3, (16, 16), (16, 16), {}, 1),
        (3, (16, 16), (8, 8), {"pads": [4, 4, 4, 4]}, 1),
        (3, (32, 32), (32, 32), {}, 2),
        (3, (7, 18), (6, 6), {"pads": [3, 8, 3, 9]}, 1),
        (1, (20, 3), (4, 1), {"auto_pad": "SAME_UPPER"}, 1),
        (5, (2, 2), (8, 6), {}, 1),
        (6, (17, 5), (2, 3), {"group": 2, "pads": [0, 1, 16, 0]}, 1),
        (4, (9, 9), (9, 9), {"group": 4}, 1),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_patches(channels, kernel, strides, attributes, blocks, dtype, rng, seed):
    m = OnnxMaker(rng, dtype=dtype)
    x = m.image(channels, rng.randint(32, 50), rng.randint(32, 50), m.zero_point())
    m.output(convolved(m, x, 4 * attributes.get("group", 1), kernel, strides, **attributes))
    assert kinds(compared(m, seed)) == ["Conv"] * (blocks + 1)


def test_sequences(rng, seed):
    m = OnnxMaker(rng)
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 200)))
    x = m.pair("x", (1, 2, 200), 1 / 255, 9)
    m.output(convolved(m, Value(x.name, x.shape, x.scale), 6, (40,), (8,), pads=[20, 20]))
    assert kinds(compared(m, seed)) == ["Conv", "Conv"]


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations"),
    [
        ((16, 3), (1, 1), (1, 1)),
        ((3, 3), (5, 5), (1, 1)),
        ((3, 3), (8, 8), (2, 2)),
        ((1, 1), (66, 66), (1, 1)),
        ((1, 1), (1 << 62, 1 << 62), (1, 1)),
    ],
)
def test_strides_that_do_not_fit_stay_with_the_host(kernel, strides, dilations, rng):
    m = OnnxMaker(rng)
    x = m.image(3, 40, 40)
    m.output(convolved(m, x, 4, kernel, strides, dilations=dilations))
    assignment = next(a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Conv")
    assert assignment.target is Target.HOST
    assert f"stride {strides[0]}" in assignment.reason
    assert assignment.remedy
