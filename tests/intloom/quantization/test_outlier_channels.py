"""Copies of outlier channels: the same float function, smaller ranges, less noise after quantization."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import intloom
from intloom.compiler.reference import open_session
from intloom.quantization import QuantizeOptions, quantize, static
from intloom.quantization.graph_values import channel_maxima
from intloom.quantization.outlier_channels import copy_outlier_channels
from tests.support.given_model import given_model

WIDTH, TOKENS, OUTLIER = 96, 8, 5


def encoder(*, outlier=60.0, between=(), ends=("y",)):
    """Two layers between normalizations, as a transformer has them; channel 5 of tokens 0 and 1 is large.

    The second layer centers what it writes and every offset is 0, so that all means are 0.
    """
    noise = np.random.default_rng(7)
    table = noise.normal(0, 1, (20, WIDTH))
    table[:2, OUTLIER] = outlier, -outlier
    table -= table.mean(axis=1, keepdims=True)
    second = noise.normal(0, 0.03, (64, WIDTH))
    constants = {
        "table": table,
        "gain": np.ones(WIDTH),
        "offset": np.zeros(WIDTH),
        "flat": np.array([TOKENS, WIDTH], np.int64),
        "tokens": np.array([1, TOKENS, WIDTH], np.int64),
        "first": noise.normal(0, 0.2, (WIDTH, 64)),
        "bias": noise.normal(0, 0.1, 64),
        "second": second - second.mean(axis=1, keepdims=True),
        "half": np.full(1, 0.5),
    }
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["words"], name="words"),
        helper.make_node("LayerNormalization", ["words", "gain", "offset"], ["n"], name="n", axis=-1),
        helper.make_node("Reshape", ["n", "flat"], ["rows"], name="rows"),
        helper.make_node("Gemm", ["rows", "first", "bias"], ["a"], name="a"),
        helper.make_node("Relu", ["a"], ["b"], name="b"),
        helper.make_node("Gemm", ["b", "second"], ["c"], name="c"),
        helper.make_node("Reshape", ["c", "tokens"], ["d"], name="d"),
        helper.make_node("Add", ["d", "n"], ["sum"], name="sum"),
        *between,
        helper.make_node("LayerNormalization", ["sum", "gain", "offset"], ["y"], name="y", axis=-1),
    ]
    outputs = dict.fromkeys(ends, (1, TOKENS, WIDTH))
    return given_model(nodes, {"ids": (1, TOKENS)}, outputs, constants, types={"ids": TensorProto.INT64})


def tokens(count, seed):
    """Sentences that begin with tokens 0 and 1, which have the outlier."""
    ids = np.random.default_rng(seed).integers(2, 20, (count, 1, TOKENS))
    ids[:, 0, :2] = 0, 1
    return [{"ids": i} for i in ids]


def results(model, samples):
    session = open_session(model.SerializeToString())
    return np.concatenate([session.run(None, s)[0] for s in samples])


def test_float_results_are_equal_and_ranges_smaller():
    model, samples = encoder(), tokens(16, 1)
    copied = onnx.ModelProto.FromString(model.SerializeToString())
    assert copy_outlier_channels(copied, samples)
    onnx.checker.check_model(copied, full_check=True)
    # 96 / 24 = 4 copies at most: one channel with three copies of a half.
    before, after = (channel_maxima(m, ["n", "sum"], samples) for m in (model, copied))
    for name in ("n", "sum"):
        assert after[name].shape == (WIDTH + 3,)
        assert after[name][OUTLIER] == pytest.approx(before[name][OUTLIER] / 2, rel=0.02)
        np.testing.assert_allclose(after[name][WIDTH:], after[name][OUTLIER], rtol=1e-5)
    unseen = tokens(16, 2)
    np.testing.assert_allclose(results(copied, unseen), results(model, unseen), atol=0.02)


@pytest.mark.parametrize("reason", ["no outlier", "an operator between", "a sum is read"])
def test_other_models_stay(reason):
    product = helper.make_node("Mul", ["sum", "half"], ["other"], name="other")
    model = {
        "no outlier": lambda: encoder(outlier=2.0),
        "an operator between": lambda: encoder(between=[product], ends=("y", "other")),
        "a sum is read": lambda: encoder(ends=("y", "sum")),
    }[reason]()
    before = model.SerializeToString()
    assert not copy_outlier_channels(model, tokens(16, 1))
    assert model.SerializeToString() == before


def test_quantized_results_are_nearer_to_float(tmp_path, monkeypatch):
    onnx.save(encoder(), tmp_path / "f.onnx")
    np.savez(tmp_path / "c.npz", ids=np.concatenate([s["ids"] for s in tokens(16, 1)]))
    options = QuantizeOptions(calibration="minmax")
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npz", options)
    monkeypatch.setattr(static, "copy_outlier_channels", lambda *_: False)
    quantize(tmp_path / "f.onnx", tmp_path / "plain.onnx", tmp_path / "c.npz", options)
    unseen = tokens(16, 2)
    real = results(onnx.load(tmp_path / "f.onnx"), unseen)
    noise, plain = (
        np.square(results(onnx.load(tmp_path / f), unseen)[:, 2:] - real[:, 2:]).mean()
        for f in ("q.onnx", "plain.onnx")
    )
    assert noise < 0.6 * plain
    session = intloom.Session(tmp_path / "q.onnx", preset="base", backend="golden")
    made = np.concatenate([session.run(None, s)[0] for s in unseen])
    assert np.square(made[:, 2:] - real[:, 2:]).mean() < 0.6 * plain
