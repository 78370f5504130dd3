"""Transpose: channel shuffles run on the array, other orders on the host."""

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal


def shuffled(m, x, shape, perm, scale=None, zero=None):
    """Reshape, Transpose and Reshape back, each result quantized; `scale` is that of the transposition's."""
    (split,) = m.node("Reshape", [x.name, m.constant(np.array(shape))])
    view = m.pair(split, tuple(shape), x.scale, zero)
    (moved,) = m.node("Transpose", [view.name], perm=list(perm))
    order = tuple(shape[a] for a in perm)
    turned = m.pair(moved, order, x.scale if scale is None else scale, zero)
    (back,) = m.node("Reshape", [turned.name, m.constant(np.array(x.shape))])
    return m.pair(back, x.shape, turned.scale, zero)


@pytest.mark.parametrize(
    ("channels", "shape", "perm"),
    [
        (12, [1, 2, 6, 5, 3], [0, 2, 1, 3, 4]),
        (12, [1, 3, 4, 5, 3], [0, 2, 1, 3, 4]),
        (40, [1, 2, 20, 15], [0, 2, 1, 3]),
        (8, [1, 2, 2, 2, 5, 3], [0, 3, 1, 2, 4, 5]),
        (2, [1, 2, 1, 5, 3], [0, 2, 1, 3, 4]),
    ],
)
def test_channel_shuffles_need_no_host(channels, shape, perm, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 5, 3), channels)
    m.output(m.conv(shuffled(m, x, shape, perm), 4))
    parity = compared(m, seed)
    found = kinds(parity)
    assert not any("ties" in w and "Transpose" in w for w in parity.folded.warnings)
    assert found.count("Conv") == (3 if channels > 2 else 2)


def test_a_shuffle_to_another_scale_has_a_table(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 5, 3), 12)
    m.output(m.conv(shuffled(m, x, [1, 2, 6, 5, 3], [0, 2, 1, 3, 4], x.scale * 1.3, 7), 4))
    assert kinds(compared(m, seed)).count("Conv") == 3


@pytest.mark.parametrize("ratio", [1, 1.3])
@pytest.mark.parametrize(("shape", "perm"), [([1, 12, 5, 3], [0, 1, 3, 2]), ([1, 2, 6, 15], [0, 3, 1, 2])])
def test_values_that_leave_their_pixel_leave_in_another_order(shape, perm, ratio, rng, seed):
    """The order is recorded until a reader needs the model's: here the host, which changes it."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 5, 3), 12)
    m.output(shuffled(m, x, shape, perm, x.scale * ratio, 7))
    found = compared(m, seed).folded
    assert not [a for a in found.assignments if a.target is Target.HOST]
    assert [q.positions is None for q in found.output_quant.values()] == [False]


def test_a_host_part_reads_an_order_that_the_host_makes_later(rng, seed):
    """First the host is to read bytes of the accelerator and change their order; then a convolution needs an image."""
    m = OnnxMaker(rng)
    patches = shuffled(m, m.conv(m.image(3, 4, 4), 8), [1, 8, 2, 2, 2, 2], [0, 1, 3, 5, 2, 4])
    (unsupported,) = m.node("LpNormalization", [patches.name])
    m.output(m.pair(unsupported, patches.shape, 1 / 128))
    m.output(m.conv(patches, 4))
    hosts = {a.op for a in assert_equal(m.model(), seed).folded.assignments if a.target is Target.HOST}
    assert hosts >= {"LpNormalization", "Reshape"}


def of_one_channel(m, x, op):
    """An image with channels last, of one channel, as one with channels first: the same bytes."""
    height, width = x.shape[1:3]
    moved = m.node(op, [x.name], perm=[0, 3, 1, 2]) if op == "Transpose" else None
    (view,) = moved or m.node(op, [x.name, m.constant(np.array([1, 1, height, width]))])
    return m.pair(view, (1, 1, height, width), x.scale, 7)


@pytest.mark.parametrize("op", ["Reshape", "Transpose"])
def test_an_input_is_the_image_that_is_read(op, rng, seed):
    m = OnnxMaker(rng)
    m.output(m.conv(of_one_channel(m, m.image(9, 5, 1, zero=7), op), 4))
    folded = compared(m, seed).folded
    assert not [a for a in folded.assignments if a.target is Target.HOST]
    (name,) = folded.graph.inputs
    assert folded.graph.tensors[name].shape == (1, 1, 9, 5) and folded.input_quant[name].shape == (1, 9, 5, 1)


@pytest.mark.parametrize("first", [True, False])
def test_an_input_that_is_read_in_two_forms_has_that_of_the_first(first, rng, seed):
    m = OnnxMaker(rng)
    x = m.image(9, 5, 1, zero=7)
    forms = [lambda: x, lambda: of_one_channel(m, x, "Reshape")]
    for form in forms if first else reversed(forms):
        m.output(m.conv(form(), 4))
    folded = assert_equal(m.model(), seed).folded
    assert folded.graph.tensors[folded.graph.inputs[0]].shape == ((1, 9, 5, 1) if first else (1, 1, 9, 5))
