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


def sequence(m, channels, length):
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, length)))
    x = m.pair("x", (1, channels, length), 1 / 255, 9)
    return Value(x.name, x.shape, x.scale)


def test_sequences(rng, seed):
    m = OnnxMaker(rng)
    m.output(convolved(m, sequence(m, 2, 200), 6, (40,), (8,), pads=[20, 20]))
    assert kinds(compared(m, seed)) == ["Conv", "Conv"]


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "pads", "group"),
    [
        (3, 1, 16, [16, 16], 1),
        (5, 1, 20, [3, 50], 1),
        (40, 1, 1, [20, 19], 1),
        (17, 1, 3, [0, 9], 1),
        (31, 1, 1, [15, 15], 6),
        (33, 2, 1, [16, 16], 1),
        (46, 3, 1, [0, 0], 1),
        (3, 2, 33, [0, 0], 1),
        (12, 3, 16, [50, 60], 2),
        (5, 5, 1, [0, 0], 1),
        (15, 7, 1, [13, 12], 1),
        (24, 10, 1, [3, 9], 3),
        (9, 70, 1, [0, 0], 1),
    ],
)
def test_long_sequences(kernel, stride, dilation, pads, group, rng, seed):
    """Taps beyond a kernel row of the instruction, with padding of its own and taps of weight 0."""
    m = OnnxMaker(rng)
    x = sequence(m, 6, rng.randint(150, 200))
    m.output(convolved(m, x, 12, (kernel,), (stride,), group, pads=pads, dilations=[dilation]))
    assert kinds(compared(m, seed)) == ["AvgPool", "Conv"] if any(pads) else ["Conv"]


def test_taps_in_the_padding_need_no_dilation(rng, seed):
    m = OnnxMaker(rng)
    m.output(convolved(m, sequence(m, 6, 20), 12, (3,), (1,), pads=[64, 64], dilations=[64]))
    assert kinds(compared(m, seed)) == ["Conv"]


def test_a_kernel_at_one_position(rng, seed):
    """As over all electrodes of a recording: the only row of the result needs no stride."""
    m = OnnxMaker(rng)
    m.output(convolved(m, m.image(3, 96, 20), 8, (96, 3), (1, 1), pads=[0, 1, 0, 1]))
    assert kinds(compared(m, seed)) == ["Conv"] * 3


@pytest.mark.parametrize("pixels", [16383, 16384])
def test_a_sequence_longer_than_an_image_stays_with_the_host(pixels, rng):
    """Its padding counts: a pass of its own writes it."""
    m = OnnxMaker(rng)
    m.output(convolved(m, sequence(m, 1, pixels - 128), 2, (3,), (1,), pads=[64, 64], dilations=[64]))
    assignment = next(a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Conv")
    if pixels == 16383:
        assert assignment.target is Target.ARRAY
    else:
        assert assignment.row == 20
        assert "at most 16383 pixels" in assignment.remedy


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations"),
    [
        ((16, 3), (1, 1), (1, 1)),
        ((3, 3), (5, 5), (1, 1)),
        ((14, 14), (14, 14), (1, 1)),
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
