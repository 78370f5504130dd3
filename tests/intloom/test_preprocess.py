"""Preprocessing keeps a model's meaning, caches by content, and never passes on what it could not prepare."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from intloom.common.cache.housekeeping import items
from intloom.common.errors import FileFormatError, ModelError, UnsupportedError
from intloom.compiler.refusals import Refusal
from intloom.preprocess import Optimizer, preprocess
from tests.support.given_model import given_model


def with_batch_norm(path, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(4, 3, 3, 3))
    vectors = {n: rng.uniform(0.5, 1.5, 4) for n in ("gamma", "beta", "mean", "var")}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4),
        helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "var"], ["y"], name="bn"),
    ]
    onnx.save(given_model(nodes, {"x": (1, 3, 8, 8)}, {"y": (1, 4, 8, 8)}, {"w": weight, **vectors}), path)
    return path


@pytest.mark.parametrize("optimizer", [Optimizer.ONNXSLIM, Optimizer.ONNXRUNTIME])
def test_batch_normalization_is_folded_and_results_stay(tmp_path, optimizer):
    source = with_batch_norm(tmp_path / "bn.onnx")
    done = preprocess(source, optimizer, tmp_path / "cache")
    assert [n.op_type for n in onnx.load(done.path).graph.node] == ["Conv"]
    x = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
    before, after = (
        ort.InferenceSession(str(p), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for p in (source, done.path)
    )
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-4)


def test_second_time_comes_from_the_cache_and_a_damaged_entry_is_rebuilt(tmp_path):
    source, cache = with_batch_norm(tmp_path / "bn.onnx"), tmp_path / "cache"
    first = preprocess(source, cache=cache)
    second = preprocess(source, cache=cache)
    assert (first.hit, second.hit) == (False, True)
    content = first.path.read_bytes()
    first.path.write_bytes(content[:-1])
    third = preprocess(source, cache=cache)
    assert not third.hit
    assert third.path.read_bytes() == content


def test_key_follows_content_not_path(tmp_path):
    cache = tmp_path / "cache"
    here = preprocess(with_batch_norm(tmp_path / "a.onnx"), cache=cache)
    there = preprocess(with_batch_norm(tmp_path / "b.onnx"), cache=cache)
    other = preprocess(with_batch_norm(tmp_path / "a.onnx", seed=1), cache=cache)
    assert here.key == there.key
    assert there.hit
    assert other.key != here.key


def test_external_data_is_part_of_the_key(tmp_path):
    model = onnx.load(with_batch_norm(tmp_path / "bn.onnx"))
    source = tmp_path / "external.onnx"
    onnx.save(model, source, save_as_external_data=True, location="weights.bin", size_threshold=0)
    cache = tmp_path / "cache"
    first = preprocess(source, cache=cache)
    data = bytearray((tmp_path / "weights.bin").read_bytes())
    data[0] ^= 1
    (tmp_path / "weights.bin").write_bytes(bytes(data))
    assert preprocess(source, cache=cache).key != first.key
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(FileFormatError, match="external data"):
        preprocess(source, cache=cache)


@pytest.mark.parametrize("optimizer", list(Optimizer))
def test_a_broken_model_raises_and_leaves_no_entry(tmp_path, optimizer):
    model = onnx.load(with_batch_norm(tmp_path / "bn.onnx"))
    model.graph.node[0].op_type = "Nonsense"
    onnx.save(model, tmp_path / "bad.onnx")
    cache = tmp_path / "cache"
    with pytest.raises(ModelError, match="cannot be preprocessed"):
        preprocess(tmp_path / "bad.onnx", optimizer, cache)
    assert not items(cache)


def test_a_pipeline_of_scikit_learn_is_refused_by_the_list(tmp_path):
    """ONNX infers no type for what an Imputer gives."""
    nodes = [
        helper.make_node("Imputer", ["x"], ["filled"], domain="ai.onnx.ml", imputed_value_floats=[0.0]),
        helper.make_node("Gather", ["filled", "index"], ["turned"], axis=1),
        helper.make_node("Relu", ["turned"], ["y"]),
    ]
    model = given_model(nodes, {"x": (1, 2)}, {"y": (1, 2)}, {"index": np.array([1, 0])})
    onnx.save(model, tmp_path / "p.onnx")
    with pytest.raises(UnsupportedError, match="without the pipeline") as raised:
        preprocess(tmp_path / "p.onnx", cache=tmp_path / "cache")
    assert raised.value.row == Refusal.OPERATOR.number


def test_a_bias_of_one_row_is_flattened(tmp_path):
    """As CNTK and old converters write it; onnxruntime's quantizer takes one dimension only."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    constants = {"w": np.ones((4, 3)), "b": np.ones((1, 3))}
    onnx.save(given_model(nodes, {"x": (1, 4)}, {"y": (1, 3)}, constants, opset=13), tmp_path / "m.onnx")
    made = onnx.load(preprocess(tmp_path / "m.onnx", cache=tmp_path / "cache").path)
    (node,) = made.graph.node
    assert [list(t.dims) for t in made.graph.initializer if t.name == node.input[2]] == [[3]]
