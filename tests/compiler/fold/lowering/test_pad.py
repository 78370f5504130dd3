"""Pad with a constant: merged into a convolution, otherwise an average over single pixels; channels are constants."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value


def padded(m, x, pads, value=None, axes=None, **attributes):
    """Add a Pad of height and width; return the float value and its shape."""
    if axes is None:
        top, left, bottom, right = pads
        pads = (0, 0, top, left, 0, 0, bottom, right)
    else:
        top, bottom, left, right = 0, 0, *pads
    inputs = [x.name, m.constant(np.array(pads))]
    inputs.append(m.constant(np.float32(value)) if value is not None else "")
    if axes is not None:
        inputs.append(m.constant(np.array(axes)))
    (made,) = m.node("Pad", inputs, **attributes)
    return Value(made, (1, x.shape[1], x.shape[2] + top + bottom, x.shape[3] + left + right), x.scale)


@pytest.mark.parametrize("zero", [0, 37, 255])
def test_zeros_before_a_convolution_are_its_padding(zero, rng, seed):
    m = OnnxMaker(rng)
    x = padded(m, m.image(3, 9, 7, zero), (1, 2, 0, 3))
    m.output(m.conv(Value(m.pair(x.name, x.shape, x.scale, zero).name, x.shape, x.scale), 4))
    found = compared(m, seed)
    assert kinds(found) == ["Conv"]
    assert found.folded.graph.nodes[0].pads == (2, 3, 1, 4)


def test_a_pad_without_a_qdq_pair(rng, seed):
    m = OnnxMaker(rng)
    m.output(m.conv(padded(m, m.conv(m.image(3, 8, 8), 5), (0, 1, 1, 0)), 4))
    assert kinds(compared(m, seed)) == ["Conv", "Conv"]


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0])
@pytest.mark.parametrize("pads", [(0, 12, 0, 0, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0, 0, 0), (0, 5, 1, 0, 0, 2, 0, 3)])
def test_channels(pads, value, rng, seed):
    """As where a sum of BlazeFace has more channels than its input."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6, 100), 20)
    (made,) = m.node("Pad", [x.name, m.constant(np.array(pads)), m.constant(np.float32(value))])
    shape = tuple(size + a + b for size, a, b in zip(x.shape, pads[:4], pads[4:], strict=True))
    m.output(m.conv(m.pair(made, shape, x.scale * rng.choice((1, 0.7)), 90), 4))
    found = compared(m, seed)
    assert "Concat" in kinds(found)
    assert len(found.folded.regions) == 1


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0, 100.0])
def test_any_constant(value, rng, seed):
    m = OnnxMaker(rng)
    x = padded(m, m.image(3, 6, 6, 100), (2, 0, 1, 3), value)
    m.output(m.pair(x.name, x.shape, 0.004, 90))
    assert "AvgPool" in kinds(compared(m, seed))


def test_a_quantized_constant(rng, seed):
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6, 100)
    value = m.pair(m.constant(np.float32(-1)), (), 0.5, 3)
    (made,) = m.node("Pad", [x.name, m.constant(np.array([0, 0, 1, 2, 0, 0, 0, 1])), value.name])
    m.output(m.conv(m.pair(made, (1, 3, 7, 9), 0.01, 120), 4))
    assert "AvgPool" in kinds(compared(m, seed))


@pytest.mark.parametrize("border", [0.3, -0.2])
def test_with_axes_and_a_clamp(border, rng, seed):
    """The clamp also holds for the border."""
    m = OnnxMaker(rng, opset=19)
    x = padded(m, m.image(2, 6, 6, 100), (2, 1), border, axes=(-1,))
    (value,) = m.node("Relu", [x.name])
    m.output(m.pair(value, x.shape, 0.003, 9))
    compared(m, seed)


def test_a_pad_that_is_read_twice_stays(rng, seed):
    m = OnnxMaker(rng)
    x = padded(m, m.image(3, 6, 6), (1, 1, 1, 1))
    y = m.pair(x.name, x.shape, x.scale, 0)
    m.output(m.conv(y, 4), m.maxpool(y))
    assert "AvgPool" in kinds(compared(m, seed))


def test_negative_borders_cut_off(rng, seed):
    m = OnnxMaker(rng)
    x = padded(m, m.conv(m.image(3, 9, 9), 4), (-2, 1, -1, 0))
    m.output(m.pair(x.name, x.shape, x.scale))
    compared(m, seed)


@pytest.mark.parametrize("given", [0, 7])
def test_stored_integers_padded_by_an_integer(given, rng, seed):
    """Integers are padded by integers: without a value by zero, which is not the zero point."""
    m = OnnxMaker(rng)
    m.image(3, 6, 6, 50)
    stored = m.nodes[-2].output[0]
    scale, zero = m.nodes[-2].input[1:]
    extra = [m.constant(np.uint8(given))] if given else []
    (made,) = m.node("Pad", [stored, m.constant(np.array([0, 0, 1, 2, 0, 0, 1, 0])), *extra])
    (value,) = m.node("DequantizeLinear", [made, scale, zero])
    m.output(m.conv(Value(value, (1, 3, 8, 8), 1 / 255), 4))
    compared(m, seed)


@pytest.mark.parametrize("mode", ["edge", "reflect"])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (2, 0, 1, 3)])
def test_rows_and_columns_repeat(mode, pads, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 5), 4)
    (value,) = m.node("Pad", [x.name, m.constant(np.array([0, 0, *pads[:2], 0, 0, *pads[2:]]))], mode=mode)
    m.output(m.conv(m.pair(value, (1, 4, 6 + pads[0] + pads[2], 5 + pads[1] + pads[3]), x.scale * 1.1), 4))
    compared(m, seed)


@pytest.mark.parametrize(
    ("mode", "pads", "reason"),
    [
        ("wrap", [0, 0, 1, 1, 0, 0, 1, 1], "pads in mode wrap"),
        ("edge", [0, 1, 0, 0, 0, 0, 0, 0], "channels otherwise than with a constant"),
        ("constant", [0, -1, 0, 0, 0, 0, 0, 0], "channels otherwise than with a constant"),
        ("reflect", [0, 0, 6, 0, 0, 0, 0, 0], "reflects more than the image"),
        ("edge", [0, 0, 3, 3, 0, 0, 2, 1], "repeats"),
    ],
)
def test_unsupported_pads_have_a_reason(mode, pads, reason, rng):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 4)
    (value,) = m.node("Pad", [x.name, m.constant(np.array(pads))], mode=mode)
    m.outputs.append(m.pair(value, (), x.scale).name)
    model = m.model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(m.outputs[0], TensorProto.FLOAT, None))
    assignment = next(v for v in fold_model(from_proto(model, name="m")).assignments if v.op == "Pad")
    assert assignment.target is Target.HOST
    assert reason in assignment.reason
    assert assignment.remedy


@pytest.mark.filterwarnings("error")
def test_a_nan_padding_value_is_unsupported(rng):
    m = OnnxMaker(rng)
    x = padded(m, m.image(3, 9, 7), (1, 1, 1, 1), float("nan"))
    m.output(m.pair(x.name, x.shape, x.scale))
    assignment = next(v for v in fold_model(from_proto(m.model(), name="m")).assignments if v.op == "Pad")
    assert assignment.target is Target.HOST
    assert "no constant number" in assignment.reason
