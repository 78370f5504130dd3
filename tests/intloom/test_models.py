"""The user's ONNX files: what is none is refused, and their hash follows all of their content."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from intloom.common.errors import FileFormatError, ModelError
from intloom.models import content_hash, is_quantized, load_onnx, operators
from tests.support.given_model import given_model

WEIGHTS = np.array([1.0, 2.0], np.float32)


def _save(path, *, external=False):
    # Raw bytes: numbers of other kinds stay inside the file.
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = given_model([node], {"x": WEIGHTS.shape}, {"y": WEIGHTS.shape}, {"w": WEIGHTS})
    onnx.save_model(model, path, save_as_external_data=external, location="w.bin", size_threshold=0)
    return path


def test_a_model_comes_with_its_external_data(tmp_path):
    model = load_onnx(_save(tmp_path / "m.onnx", external=True))
    assert numpy_helper.to_array(model.graph.initializer[0]).tolist() == [1.0, 2.0]


def test_missing_external_data_is_refused(tmp_path):
    path = _save(tmp_path / "m.onnx", external=True)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(FileFormatError, match=r"external data of .*m\.onnx cannot be read"):
        load_onnx(path)
    with pytest.raises(ModelError, match=r"external data w\.bin of .*m\.onnx cannot be read"):
        content_hash(path)


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"just text"])
def test_what_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="must be an ONNX model"):
        load_onnx(path)


def test_the_hash_follows_external_data(tmp_path):
    path = _save(tmp_path / "m.onnx", external=True)
    before = content_hash(path)
    assert content_hash(path) == before
    (tmp_path / "w.bin").write_bytes((WEIGHTS + 1).tobytes())
    assert content_hash(path) != before


@pytest.mark.parametrize(
    ("operators", "quantized"),
    [
        (["Conv", "Relu"], False),
        (["QuantizeLinear", "DequantizeLinear"], True),
        (["Conv", "DequantizeLinear"], True),
        (["QLinearConv"], True),
        (["ConvInteger", "Cast"], True),
        (["QGemm"], True),
        ([], False),
    ],
)
def test_quantized_operators_of_both_forms_are_recognized(operators, quantized):
    assert is_quantized(operators) is quantized


def test_operators_inside_functions_count():
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"])
    function = helper.make_function("mine", "Round", ["x", "s"], ["y"], [node], [helper.make_opsetid("", 21)])
    call = helper.make_node("Round", ["x", "s"], ["y"], domain="mine")
    model = helper.make_model(helper.make_graph([call], "g", [], []), functions=[function])
    assert list(operators(model)) == ["Round", "QuantizeLinear"]
    assert is_quantized(operators(model))
