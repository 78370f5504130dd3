"""ONNX's own node tests run against the backend; `onnx_exclusions` lists those that do not, with a reason each."""

import importlib
import re

import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node as node_cases

from intloom import backend
from intloom.common.errors import IntloomError, ModelError, UnsupportedError, UsageError
from tests.intloom.onnx_exclusions import EXCLUDED, INCLUDED, MODULES

# Only these modules: making all of ONNX's cases takes twenty seconds.
for module in MODULES:
    importlib.import_module(f"onnx.backend.test.case.node.{module}")
CASES = {c.name: c for c in node_cases._NodeTestCases if any(re.match(p, c.name) for p in INCLUDED)}
RUN = sorted(set(CASES) - set(EXCLUDED))


def check(name: str) -> None:
    case = CASES[name]
    rep = backend.prepare(case.model)
    for inputs, expected in case.data_sets:
        made = rep.run(list(inputs))
        assert len(made) == len(expected)
        for got, wanted in zip(made, expected, strict=True):
            wanted = onnx.numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else wanted
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("name", RUN)
def test_onnx_node(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", sorted(EXCLUDED))
def test_excluded_nodes_still_fail(name: str) -> None:
    """An exclusion that is no longer needed must go."""
    with pytest.raises((IntloomError, AssertionError)):
        check(name)


def test_every_quantized_operator_is_run() -> None:
    words = ("quantizelinear", "qlinear", "convinteger", "matmulinteger")
    quantized = [n for n in CASES if any(w in n for w in words)]
    assert len(quantized) >= 42
    assert not set(quantized) & set(EXCLUDED)


def test_run_node_and_devices() -> None:
    node = onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    (y,) = backend.run_node(node, [np.array([0.5, 1.5, -3], np.float32), np.float32(1), np.int8(3)])
    assert y.tolist() == [3, 5, 0]
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")


def test_unknown_devices_are_not_supported():
    assert not backend.supports_device("CUDA")
    assert not backend.supports_device("toaster")


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
    with pytest.raises(UnsupportedError, match="must be a tensor"):
        backend.prepare(case.model).run(list(case.data_sets[0][0]))


def test_an_input_of_the_wrong_shape_or_missing_is_refused_by_name():
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT8, [3]) for n in ("x", "y")]
    node = onnx.helper.make_node("Max", ["x"], ["y"])
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=[onnx.helper.make_opsetid("", 21)]
    )
    with pytest.raises(UsageError, match=r"input 'x' must have shape \[3\], not \[4\]"):
        backend.run_model(model, [np.zeros(4, np.int8)])
    with pytest.raises(UsageError, match="input 'x' of the model is missing"):
        backend.run_model(model, {"z": np.zeros(3, np.int8)})
