"""The ONNX backend interface; ONNX's own node tests of quantized operators run through it."""

import importlib
import random

import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node as node_cases

import intloom
from intloom import backend
from intloom.common.errors import IntloomError, ModelError, UnsupportedError, UsageError
from tests.support.given_model import given_model
from tests.support.onnx_maker import OnnxMaker
from tests.support.onnx_nodes import QUANTIZED, data_sets
from tests.support.parity import random_feeds

# Only these modules: making all of ONNX's cases takes twenty seconds.
for module in QUANTIZED:
    importlib.import_module(f"onnx.backend.test.case.node.{module}")
CASES = {c.name: c for c in node_cases._NodeTestCases if any(q in c.name for q in QUANTIZED)}
SMALL = (
    "int4", "int2", "float4e2m1", "convinteger_with_padding", "dequantizelinear_e4m3fn", "e5m2",
    "e4m3fn_float16", "e4m3fn_zero_point",
)  # fmt: skip
"""Types that onnxruntime takes inside of a model, not as its inputs; and a ConvInteger that it cannot run."""


@pytest.mark.parametrize("name", sorted(CASES))
def test_onnx_node(name: str) -> None:
    for model, inputs, expected in data_sets(CASES[name]):
        if name.endswith(SMALL):
            with pytest.raises(IntloomError, match="onnxruntime cannot"):
                backend.prepare(model).run(inputs)
            continue
        made = backend.prepare(model).run(inputs)
        assert len(made) == len(expected)
        for got, wanted in zip(made, expected, strict=True):
            wanted = onnx.numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else wanted
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


def test_a_model_runs_in_the_accelerators_arithmetic(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    m.output(m.conv(m.image(3, 8, 8), 5))
    model = m.model()
    feeds = random_feeds(model, seed)
    (expected,) = intloom.Session(model).run(None, feeds)
    np.testing.assert_array_equal(backend.run_model(model, list(feeds.values()))[0], expected)


def test_run_node_and_devices() -> None:
    node = onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    (y,) = backend.run_node(node, [np.array([0.5, 1.5, -3], np.float32), np.float32(1), np.int8(3)])
    assert y.tolist() == [3, 5, 0]
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")


def test_a_model_without_opset_and_wrong_counts_are_refused_by_name():
    with pytest.raises(ModelError, match="opset"):
        backend.prepare(onnx.ModelProto())
    with pytest.raises(UsageError, match="Add has 2 inputs, not 1"):
        backend.run_node(onnx.helper.make_node("Add", ["a", "b"], ["c"]), [np.zeros(3)])


@pytest.mark.parametrize("name", ["test_sequence_insert_at_back", "test_split_to_sequence_1"])
def test_sequences_are_refused(name: str) -> None:
    for module in ("sequenceinsert", "splittosequence"):
        importlib.import_module(f"onnx.backend.test.case.node.{module}")
    (case,) = (c for c in node_cases._NodeTestCases if c.name == name)
    with pytest.raises((UnsupportedError, ModelError), match="must be a tensor|no type|type information"):
        backend.prepare(case.model).run(list(case.data_sets[0][0]))


def test_an_input_of_the_wrong_shape_or_missing_is_refused_by_name():
    node = onnx.helper.make_node("Max", ["x"], ["y"])
    model = given_model([node], {"x": [3]}, {"y": [3]}, opset=21, types=dict.fromkeys("xy", onnx.TensorProto.INT8))
    with pytest.raises(UsageError, match=r"input 'x' must have shape \[3\], not \[4\]"):
        backend.run_model(model, [np.zeros(4, np.int8)])
    with pytest.raises(UsageError, match="input 'x' of the model is missing"):
        backend.run_model(model, {"z": np.zeros(3, np.int8)})
