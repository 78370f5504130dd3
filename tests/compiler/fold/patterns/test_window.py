"""Padding that the attributes auto_pad and ceil_mode decide."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from intloom.compiler.fold.patterns.window import Window, _same_pads, read_window
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import Tensor
from intloom.compiler.reference import open_session

_PAIR = st.tuples(st.integers(1, 4), st.integers(1, 4))
_SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))


@given(_SIZES, _PAIR, _PAIR, _PAIR, st.booleans())
def test_same_padding_is_the_least_that_gives_a_result_for_each_stride(sizes, kernel, strides, dilations, upper):
    """Also of a dilated convolution, for which onnxruntime has no such padding; an odd pixel is at one end."""
    plain = Window(kernel, strides, dilations, (0, 0, 0, 0))
    top, left, bottom, right = _same_pads(sizes, plain, upper=upper)
    assert min(top, left, bottom, right) >= 0
    for axis, (first, last) in enumerate([(top, bottom), (left, right)]):
        assert (last - first if upper else first - last) in (0, 1)
        wanted = -(-sizes[axis] // strides[axis])
        assert _results(plain, sizes, axis, first + last) >= wanted
        assert not first + last or _results(plain, sizes, axis, first + last - 1) < wanted


def _results(window: Window, sizes: tuple[int, int], axis: int, padded: int) -> int:
    """Results along an axis with so much padding."""
    return replace(window, pads=(padded, padded, 0, 0)).output(sizes)[axis]


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_windows_past_the_end_are_those_of_onnxruntime(kernel, stride):
    """With ceil_mode, the last window may hang over, but it begins in the image or in the padding before it."""
    for size, first, last in product(range(1, 7), range(kernel), range(kernel)):
        if size + first + last < kernel:
            continue
        attributes = {"kernel_shape": [1, kernel], "strides": [1, stride], "pads": [0, first, 0, last], "ceil_mode": 1}
        made = helper.make_node("MaxPool", ["x"], ["y"], **attributes)
        shapes = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, s)
            for name, s in (("x", (1, 1, 1, size)), ("y", None))
        ]
        graph = helper.make_graph([made], "g", shapes[:1], shapes[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        image = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        (expected,) = open_session(model.SerializeToString()).run(None, {"x": image})
        node = OnnxNode(
            "n", "MaxPool", ("x",), ("y",), {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
        )
        window = read_window(node, Tensor("x", (1, 1, 1, size), 1.0, 0, False))
        # Values rise, so the last pixel in a window is the largest.
        assert expected.ravel().tolist() == [stop - 1 for _, stop in window.inside(1, size)], (size, first, last)
