"""Quantization parameters: types, conflicts, axes, blocks; equal to ONNX's reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference.ops.op_quantize_linear import QuantizeLinear_21

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.fold.patterns.qparams import QParams, dequantize, quantize, read_qparams
from intloom.compiler.importer import Constant, Model, OnnxNode, ValueType

INT8_NUMBER, UINT8_NUMBER, INT16_NUMBER = 3, 2, 5


def model_of(
    op: str,
    shape: tuple[int, ...],
    scale: np.ndarray,
    zero: np.ndarray | None = None,
    dtype: str = "",
    **attributes: int,
) -> tuple[Model, OnnxNode]:
    constants = {"s": Constant(scale, "float")}
    if zero is not None:
        constants["z"] = Constant(zero, dtype or zero.dtype.name)
    node = OnnxNode("node", op, ("x", "s", "z") if zero is not None else ("x", "s"), ("y",), attributes)
    kind = "float" if op == "QuantizeLinear" else dtype or "uint8"
    return Model("m", (node,), ("x",), ("y",), constants, {"x": ValueType(kind, shape)}, {"": 21}), node


ONE = np.float32(0.5)


@pytest.mark.parametrize(
    ("zero", "attributes", "dtype"),
    [
        (None, {}, "uint8"),
        (None, {"output_dtype": INT8_NUMBER}, "int8"),
        (np.int8(1), {}, "int8"),
        (np.int8(1), {"output_dtype": INT8_NUMBER}, "int8"),
        (np.uint8(1), {}, "uint8"),
    ],
)
def test_the_stored_type(zero: np.ndarray | None, attributes: dict[str, int], dtype: str) -> None:
    params = read_qparams(
        *model_of("QuantizeLinear", (2,), ONE, None if zero is None else np.asarray(zero), **attributes)
    )
    assert params.dtype == dtype


def test_zero_point_and_output_dtype_must_agree() -> None:
    with pytest.raises(ModelError, match="'node': output_dtype must equal the zero point's type int8, not uint8"):
        read_qparams(*model_of("QuantizeLinear", (2,), ONE, np.array(0, np.int8), output_dtype=UINT8_NUMBER))


def test_floats_are_no_integer_types() -> None:
    with pytest.raises(UnsupportedError, match="must be an integer type, not float8e4m3fn"):
        read_qparams(*model_of("QuantizeLinear", (2,), ONE, output_dtype=17))


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_scales_must_be_positive(scale: float) -> None:
    with pytest.raises(ModelError, match="positive and finite"):
        read_qparams(*model_of("QuantizeLinear", (2,), np.float32(scale)))


@pytest.mark.parametrize(("axis", "wanted"), [(1, 1), (-1, 3), (-3, 1), (0, 0)])
def test_axes_may_be_negative(axis: int, wanted: int) -> None:
    shape = (2, 3, 4, 5)
    params = read_qparams(*model_of("QuantizeLinear", shape, np.ones(shape[wanted], np.float32), axis=axis))
    assert params.axis == wanted


@pytest.mark.parametrize("axis", [4, -5])
def test_axes_out_of_range_are_refused(axis: int) -> None:
    with pytest.raises(ModelError, match="axis must be from -4 to 3"):
        read_qparams(*model_of("QuantizeLinear", (2, 3, 4, 5), np.ones(3, np.float32), axis=axis))


def test_the_number_of_scales_is_checked() -> None:
    with pytest.raises(ModelError, match="must have 3 scales, one per slice, not 2"):
        read_qparams(*model_of("QuantizeLinear", (2, 3), np.ones(2, np.float32), axis=1))


def test_blocks_may_end_early() -> None:
    scale = np.array([[1, 2, 4]], np.float32)
    params = read_qparams(*model_of("QuantizeLinear", (1, 5), scale, axis=1, block_size=2, output_dtype=INT8_NUMBER))
    assert quantize(np.full((1, 5), 8, np.float32), params).tolist() == [[8, 8, 4, 4, 2]]
    with pytest.raises(ModelError, match="blocked scales must have shape"):
        read_qparams(*model_of("QuantizeLinear", (1, 5), scale, axis=1, block_size=3))


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30),
    st.floats(2.0**-10, 8, width=32),
    st.integers(-128, 127),
)
def test_values_equal_onnx_reference(values: list[float], scale: float, zero: int) -> None:
    x, s, z = np.array(values, np.float32), np.array(scale, np.float32), np.array(zero, np.int8)
    params = read_qparams(*model_of("QuantizeLinear", x.shape, s, z))
    np.testing.assert_array_equal(quantize(x, params), QuantizeLinear_21.eval(x, s, z))
    back = dequantize(quantize(x, params), params)
    np.testing.assert_array_equal(quantize(back, params), quantize(x, params))


def test_parameters_are_the_same_where_each_part_is() -> None:
    def made(**changes: object) -> QParams:
        fields = {"scale": np.full(3, 0.5, np.float32), "zero_point": np.arange(3, dtype=np.int32), "dtype": "int8"}
        return QParams(**{**fields, "axis": 1, "block": 0, **changes})  # type: ignore[arg-type]  # by name

    assert made().same(made())
    others: list[dict[str, object]] = [
        {"scale": np.array([0.5, 0.5, 0.25], np.float32)}, {"scale": np.full(2, 0.5, np.float32)},
        {"zero_point": np.array([0, 1, 3], np.int32)}, {"dtype": "uint8"}, {"axis": 0}, {"block": 2},
    ]  # fmt: skip
    for change in others:
        assert not made().same(made(**change)), change
    whole = {"scale": np.float32(0.5).reshape(()), "zero_point": np.int32(4).reshape(())}
    assert made(**whole).same(made(**whole, axis=0)), "one scale has no axis"
