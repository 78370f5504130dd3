"""The border between host and accelerator: quantizing and dequantizing exactly as the model's own operators do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from intloom.common.errors import ModelError
from intloom.compiler.frontend import TensorQuantization
from intloom.flow.host import as_unsigned, dequantize_array, quantize_array, run_with_outputs, stored_array
from tests.support.given_model import given_model

SCALES = st.one_of(st.floats(2**-13, 10.0, width=32), st.sampled_from([0.5, 0.25, 1.0, 2.0]))


def reference(kind, array, quant):
    """What ONNX's own reference makes of it."""
    integer = TensorProto.UINT8 if quant.unsigned else TensorProto.INT8
    sides = (TensorProto.FLOAT, integer) if kind == "QuantizeLinear" else (integer, TensorProto.FLOAT)
    node = helper.make_node(kind, ["x", "s", "z"], ["y"])
    constants = {"s": np.float32(quant.scale), "z": (np.uint8 if quant.unsigned else np.int8)(quant.zero_point)}
    types = dict(zip("xy", sides, strict=True))
    model = given_model([node], {"x": None}, {"y": None}, constants, opset=21, types=types)
    return ReferenceEvaluator(model).run(None, {"x": array})[0]


def make_quant(scale, zero_point, unsigned, size):
    return TensorQuantization(
        name="q", stored="q", source="x", shape=(1, size), scale=scale,
        zero_point=zero_point if unsigned else zero_point - 128, unsigned=unsigned,
    )  # fmt: skip


@settings(max_examples=40)
@given(SCALES, st.integers(0, 255), st.booleans(), st.lists(st.floats(-500, 500, width=32), min_size=1, max_size=40))
def test_quantizing_equals_the_reference_ties_included(scale, zero_point, unsigned, values):
    ties = (np.arange(-20, 20, dtype=np.float32) + np.float32(0.5)) * np.float32(scale)
    array = np.concatenate([np.array(values, np.float32), ties])[None]
    quant = make_quant(scale, zero_point, unsigned, array.size)
    inside = quantize_array(array, quant, (1, array.size, 1, 1))
    assert inside.dtype == np.int8
    np.testing.assert_array_equal(stored_array(inside, quant), reference("QuantizeLinear", array, quant))


@settings(max_examples=40)
@given(SCALES, st.integers(0, 255), st.booleans())
def test_dequantizing_equals_the_reference_on_all_bytes(scale, zero_point, unsigned):
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 256, 1, 1)
    quant = make_quant(scale, zero_point, unsigned, 256)
    expected = reference("DequantizeLinear", stored_array(every, quant), quant)
    np.testing.assert_array_equal(dequantize_array(every, quant), expected)


@pytest.mark.parametrize("unsigned", [True, False])
def test_the_models_own_integers_pass_through(unsigned):
    dtype = np.uint8 if unsigned else np.int8
    own = np.arange(256).astype(np.uint8).view(dtype)[None]
    quant = make_quant(0.1, 7, unsigned, 256)
    np.testing.assert_array_equal(stored_array(quantize_array(own, quant, (1, 256, 1, 1)), quant), own)


def test_a_value_without_dimensions_stays_an_array():
    """onnxruntime takes no scalars of numpy."""
    made = as_unsigned(np.array(-5, np.int8), True)
    assert isinstance(made, np.ndarray) and (made.dtype, made) == (np.uint8, 123)


def test_a_model_that_fails_while_it_runs_is_named_so():
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    model = given_model([node], {"x": ["x_size"]}, {"y": ["y_size"]}, {"shape": np.array([3])})
    with pytest.raises(ModelError, match=r"^onnxruntime cannot run the model: .*Reshape"):
        run_with_outputs(model, ["y"], {"x": np.zeros(4, np.float32)})
