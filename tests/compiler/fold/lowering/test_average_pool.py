"""Averages over whole images, over windows, and over windows that extend beyond the border."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.flow.checking import reference_model
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import folded, random_feeds, run_onnxruntime

RATIOS = [1, 0.5, 0.75, 1 / 3]
"""Scales whose ratios make many averages ties."""

MIDDLE = {"uint8": 128, "int8": 0}


def average(m, x, kernel, stride, pads, size, factor=None, **attributes):
    """An average whose scale is that of `x` times `factor`."""
    (value,) = m.node("AveragePool", [x.name], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **attributes)
    m.output(m.pair(value, (1, x.shape[1], *size), x.scale * (factor or m.rng.uniform(0.6, 1.2))))


def reason(found, op):
    """What the assignment of an operator says."""
    (text,) = {a.reason for a in found.folded.assignments if a.op == op}
    return text


@pytest.mark.parametrize(
    ("image", "kernel", "stride", "pads", "size"),
    [
        (9, 3, 1, [1, 1, 1, 1], 9),
        (9, 3, 2, [1, 1, 1, 1], 5),
        (9, 3, 2, [0, 0, 2, 2], 5),
        (9, 2, 2, [1, 0, 0, 1], 5),
        # Every window covers another part of the image.
        (3, 3, 1, [1, 1, 1, 1], 3),
    ],
)
def test_borders_average_fewer_pixels(image, kernel, stride, pads, size, rng, seed):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, image, image), 5), kernel, stride, pads, (size, size))
    assert kinds(compared(m, seed)).count("AvgPool") > 1


@pytest.mark.parametrize("include", [0, 1])
def test_partial_windows_at_the_end(include, rng, seed):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 8, 8), 5), 3, 2, [0] * 4, (4, 4), ceil_mode=1, count_include_pad=include)
    compared(m, seed)


def test_padding_may_count(rng, seed):
    m = OnnxMaker(rng)
    average(m, m.conv(m.image(3, 9, 9), 5), 3, 1, [1] * 4, (9, 9), count_include_pad=1)
    assert kinds(compared(m, seed)).count("AvgPool") == 1


@pytest.mark.parametrize("ratio", RATIOS)
def test_whole_images_with_scales_that_make_ties(ratio, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 16)
    (mean,) = m.node("GlobalAveragePool", [x.name])
    m.output(m.pair(mean, (1, 16, 1, 1), x.scale * ratio))
    compared(m, seed)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("activation", [None, "Relu"])
def test_windows_with_scales_that_make_ties(ratio, dtype, activation, rng, seed):
    """onnxruntime averages in float here, and its rounding of ties depends on the order of the values."""
    m = OnnxMaker(rng, dtype=dtype)
    x = m.conv(m.image(3, 12, 12), 16)
    kernel = rng.choice((2, 3, 4))
    (value,) = m.node("AveragePool", [x.name], kernel_shape=[kernel] * 2, pads=[1, 0, 0, 1])
    if activation:
        (value,) = m.node(activation, [value])
    m.output(m.pair(value, (1, 16, 14 - kernel, 14 - kernel), x.scale * ratio, MIDDLE[dtype]))
    text = reason(compared(m, seed), "AveragePool")
    if ratio in (1, 0.5):
        assert text.endswith("integers within 1 of the float result")


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("keep", [0, 1])
def test_means_with_scales_that_make_ties(ratio, dtype, keep, rng, seed):
    m = OnnxMaker(rng, dtype=dtype)
    x = m.conv(m.image(3, 8, 8), 16)
    (value,) = m.node("ReduceMean", [x.name], axes=[-1, 2], keepdims=keep)
    m.output(m.pair(value, (1, 16, 1, 1)[: 4 if keep else 2], x.scale * ratio, MIDDLE[dtype]))
    assert reason(compared(m, seed), "ReduceMean") == "integers within 1 of the float result"


def tokens(m):
    """The pixels of an image as rows of a matrix."""
    x = m.conv(m.image(3, 5, 6), 7)
    x = m.pair(*m.node("LeakyRelu", [x.name]), x.shape, x.scale, MIDDLE[m.dtype])
    (value,) = m.node("Reshape", [x.name, m.constant(np.array([1, 7, 30]))])
    (value,) = m.node("Transpose", [m.pair(value, (1, 7, 30), x.scale, MIDDLE[m.dtype]).name], perm=[0, 2, 1])
    return m.pair(value, (1, 30, 7), x.scale, MIDDLE[m.dtype])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("keep", [0, 1])
def test_mean_of_tokens(dtype, keep, rng, seed):
    """As at the end of a vision transformer, before its classifier."""
    m = OnnxMaker(rng, dtype=dtype)
    x = tokens(m)
    (value,) = m.node("ReduceMean", [x.name], axes=[1], keepdims=keep)
    m.output(m.pair(value, (1, 1, 7) if keep else (1, 7), x.scale * rng.uniform(0.6, 1.2)))
    found = compared(m, seed)
    # Some scales make ties, which tables correct after the average.
    assert "AvgPool" in kinds(found)
    assert len(found.folded.regions) == 1


@pytest.mark.parametrize(("size", "axes"), [((5, 6), [2, 3]), ((1, 9), [3]), ((4, 7), [1]), ((40, 35), [2, 3])])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("ratio", [0.37, 4, 16])
def test_sums(size, axes, dtype, ratio, rng, seed):
    """Of pixels, also of more than the vector unit adds, and of channels."""
    m = OnnxMaker(rng, dtype=dtype)
    x = m.conv(m.image(3, *size), 9)
    (value,) = m.node("ReduceSum", [x.name, m.constant(np.array(axes))], keepdims=1)
    m.output(m.pair(value, (), x.scale * ratio, MIDDLE[dtype]))
    assert reason(compared(m, seed), "ReduceSum")


def test_sum_of_tokens(rng, seed):
    m = OnnxMaker(rng)
    (value,) = m.node("ReduceSum", [tokens(m).name, m.constant(np.array([1]))], keepdims=0)
    m.output(m.pair(value, (1, 7), 0.1))
    assert kinds(compared(m, seed))[-1] == "AvgPool"


def test_sums_over_no_axes_stay_with_the_host(rng):
    """Without axes a reduction takes all of them, or none with this attribute."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 5, 6), 7)
    (value,) = m.node("ReduceSum", [x.name], noop_with_empty_axes=1)
    m.output(m.pair(value, x.shape, x.scale))
    (found,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "ReduceSum")
    assert found.target is Target.HOST


@pytest.mark.parametrize("op", ["AveragePool", "ReduceMean"])
@pytest.mark.parametrize("opset", [13, 18])
def test_sequences(op, opset, rng, seed):
    m = OnnxMaker(rng, opset=opset)
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 6, 40)))
    x = m.pair("x", (1, 6, 40), 1 / 255, 0)
    if op == "AveragePool":
        (value,) = m.node(op, [x.name], kernel_shape=[4], strides=[2], pads=[1, 1])
    elif opset < 18:
        (value,) = m.node(op, [x.name], axes=[2])
    else:
        (value,) = m.node(op, [x.name, m.constant(np.array([2], np.int64))])
    m.output(m.pair(value, (1, 6, 20 if op == "AveragePool" else 1), 1 / 255))
    compared(m, seed)


@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize(
    "geometry",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "pads": [0, 0, 2, 1], "strides": [2, 1]},
        {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [2, 2], "auto_pad": "VALID", "strides": [3, 3]},
    ],
)
def test_reference_of_windows_has_the_values_of_the_file(geometry, include, rng, seed):
    """The integer form counts the same pixels as onnxruntime, which computes the file itself in float."""
    m = OnnxMaker(rng)
    x = m.image(3, 9, 8)
    (value,) = m.node("AveragePool", [x.name], count_include_pad=include, **geometry)
    y = m.pair(value, (1, 3, 9, 8), x.scale * rng.uniform(0.6, 1.2))
    m.output(y)
    model = m.model()
    (name,) = (o.name for o in model.graph.output)
    feeds = random_feeds(model, seed)
    form, _ = reference_model(folded(model), model)
    theirs = run_onnxruntime(model.SerializeToString(), feeds, [name], optimized=False)[name]
    ours = run_onnxruntime(form.SerializeToString(), feeds, [name])[name]
    assert "ConvInteger" in {n.op_type for n in form.graph.node}
    assert np.abs(np.rint((theirs - ours) / np.float32(y.scale))).max() <= 1
    assert np.count_nonzero(theirs != ours) <= theirs.size // 20


@pytest.mark.parametrize(
    ("height", "width", "pools"),
    [
        (1, 300, 0),
        (33, 33, 2),
        (56, 56, 2),
        (30, 134, 2),
        (1, 2000, 2),
        (67, 83, 5),
        (1, 4100, 5),
        (5000, 1, 5),
        (3, 1500, 5),
        (190, 180, 5),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_digits_of_windows(dtype, height, width, pools, rng, seed):
    """More pixels than the vector unit adds: no, one or two steps, padded where windows do not divide the image."""
    m, op = OnnxMaker(rng, dtype=dtype), rng.choice(["GlobalAveragePool", "ReduceMean"])
    x = m.conv(m.image(3, height, width), 5)
    (value,) = m.node(op, [x.name], **({"axes": [2, 3]} if op == "ReduceMean" else {}))
    m.output(m.pair(value, (1, 5, 1, 1), x.scale * m.rng.uniform(0.02, 1.2)))
    operations = kinds(compared(m, seed))
    assert operations.count("AvgPool") == pools
    assert operations[-2:] == ["Constant", "MatMul"]


@pytest.mark.parametrize("zero", [0, 1, 9, 117, 128, 138, 246, 254, 255])
@pytest.mark.parametrize("size", [(64, 64), (181, 179)])
def test_digits_for_zero_points_at_the_ends(size, zero, rng, seed):
    m = OnnxMaker(rng)
    x = m.image(3, *size, zero=zero)
    m.output(m.pair(*m.node("GlobalAveragePool", [x.name]), (1, 3, 1, 1), x.scale * 0.01, zero))
    compared(m, seed)


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "image", "include"),
    [
        ((33, 33), (1, 1), (0, 0, 0, 0), (36, 35), 0),
        ((33, 35), (3, 2), (5, 0, 0, 9), (40, 41), 1),
        ((33, 33), (7, 7), (6, 6, 6, 6), (40, 40), 0),
        ((40, 40), (40, 40), (0, 0, 0, 0), (80, 80), 0),
        ((40, 48), (8, 16), (8, 0, 0, 16), (88, 80), 1),
        ((96, 96), (96, 64), (0, 0, 0, 0), (192, 192), 0),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_windows_of_more_pixels_than_the_vector_unit_adds(dtype, kernel, strides, pads, image, include, rng, seed):
    """A product with a weight for every pixel, or for every block of a larger image."""
    m = OnnxMaker(rng, dtype=dtype)
    x = m.conv(m.image(3, *image), 5)
    (value,) = m.node(
        "AveragePool", [x.name], kernel_shape=kernel, strides=strides, pads=pads, count_include_pad=include
    )
    size = [(image[a] + pads[a] + pads[2 + a] - kernel[a]) // strides[a] + 1 for a in (0, 1)]
    m.output(m.pair(value, (1, 5, *size), x.scale * m.rng.uniform(0.05, 0.6)))
    found = compared(m, seed)
    assert "MatMul" in kinds(found)
    assert reason(found, "AveragePool")
    assert {a.target for a in found.folded.assignments if a.op == "AveragePool"} == {Target.ARRAY}


@pytest.mark.parametrize(("op", "size"), [("GlobalAveragePool", 1), ("AveragePool", 3)])
def test_clamped_averages_of_many_pixels(op, size, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 40, 40), 5)
    (value,) = m.node("Relu", m.node(op, [x.name], **({"kernel_shape": [38, 38]} if size > 1 else {})))
    m.output(m.pair(value, (1, 5, size, size), x.scale * 0.1))
    assert "MatMul" in kinds(compared(m, seed))


@pytest.mark.parametrize(
    ("op", "image", "attributes", "size", "why"),
    [
        ("AveragePool", 12, {"kernel_shape": [7, 7], "pads": [3] * 4}, (12, 12), "fewer pixels"),
        (
            "AveragePool",
            90,
            {"kernel_shape": [33, 33], "strides": [33, 33]},
            (2, 2),
            "33 by 33 has pixels 0 to 32 of 90",
        ),
        ("AveragePool", 800, {"kernel_shape": [64, 64], "strides": [64, 64]}, (12, 12), "an image of 800 by 800"),
        ("GlobalAveragePool", 500, {}, (1, 1), "an image of 500 by 500"),
        ("ReduceMean", 6, {"axes": [1, 2]}, (1, 6), "axes (1, 2) of (1, 2, 6, 6)"),
    ],
)
def test_what_stays_with_the_host_is_named_with_its_numbers(op, image, attributes, size, why, rng):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, image, image), 2, 1)
    (value,) = m.node(op, [x.name], **attributes)
    m.output(m.pair(value, (1, 1 if op == "ReduceMean" else 2, *size), x.scale))
    (found,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == op)
    assert found.target is Target.HOST
    assert why in found.reason
    assert found.remedy
