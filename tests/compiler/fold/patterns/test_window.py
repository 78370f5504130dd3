"""Padding that the attribute auto_pad decides."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.fold.patterns.window import Window, _same_pads

_PAIR = st.tuples(st.integers(1, 4), st.integers(1, 4))
_SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))


@given(_SIZES, _PAIR, _PAIR, _PAIR, st.booleans())
def test_same_padding_is_the_least_that_gives_a_result_for_each_stride(sizes, kernel, strides, dilations, upper):
    """Also of a dilated convolution, for which onnxruntime has no such padding; an odd pixel is at one end."""
    plain = Window(kernel, strides, dilations, (0, 0, 0, 0))
    top, left, bottom, right = _same_pads(sizes, plain, upper=upper)
    for axis, (first, last) in enumerate([(top, bottom), (left, right)]):
        assert (last - first if upper else first - last) in (0, 1)
        wanted = -(-sizes[axis] // strides[axis])
        assert _results(plain, sizes, axis, first + last) >= wanted
        assert not first + last or _results(plain, sizes, axis, first + last - 1) < wanted


def _results(window: Window, sizes: tuple[int, int], axis: int, padded: int) -> int:
    """Results along an axis with so much padding."""
    return replace(window, pads=(padded, padded, 0, 0)).output(sizes)[axis]
