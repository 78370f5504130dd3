"""Masks of attention as exporters write them: the same float results, and one region that is near to float."""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

import intloom
from intloom.compiler.reference import open_session
from intloom.quantization import QuantizeOptions, quantize, static
from intloom.quantization.masks import bound_masks, mask_nodes

TOKENS, WIDTH = 8, 16
LOWEST = np.finfo(np.float32).min
MODEL = """
<ir_version: 8, opset_import: ["": 17]>
attention (float[1,8,16] x, int64[1,8] mask, int64[1,8] rows, float[1,8,8] bias) => (float[1,8,16] y) {
  q = MatMul(x, wq)
  k = MatMul(x, wk)
  v = MatMul(x, wv)
  kt = Transpose<perm=[0, 2, 1]>(k)
  scores = MatMul(q, kt)
  bools = Cast<to=9>(mask)
  list = Reshape(bools, flat)
  kept = GatherND(list, index)
  row_bools = Cast<to=9>(rows)
  by_rows = Reshape(row_bools, column)
  seen = And(ROWS, kept)
  added = Where(seen, zero, lowest)
  sum = Add(scores, MASK)
  weights = Softmax<axis=-1>(sum)
  is_nan = IsNaN(weights)
  numbers = Where(is_nan, zero, weights)
  context = MatMul(numbers, v)
  y = MatMul(context, wo)
}
"""


def attention(rows="all_rows", mask="added", lowest=LOWEST):
    """The mask of PyTorch's exporter: padding, repeated for all rows, combined with another mask or a constant."""
    noise = np.random.default_rng(3)
    constants = {
        "all_rows": np.ones((1, TOKENS, 1), bool),
        "index": np.arange(TOKENS).reshape(1, 1, TOKENS, 1),
        "flat": np.array([TOKENS]),
        "column": np.array([1, TOKENS, 1]),
        "zero": np.array(0, np.float32),
        "lowest": np.array(lowest, np.float32),
        "causal": np.triu(np.full((1, TOKENS, TOKENS), lowest, np.float32), 1),
        **{f"w{n}": noise.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32) for n in "qkvo"},
    }
    model = parser.parse_model(MODEL.replace("ROWS", rows).replace("MASK", mask))
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in constants.items())
    for node in model.graph.node:
        node.name = node.output[0]
    return onnx.shape_inference.infer_shapes(model)


def sample(seed):
    rng = np.random.default_rng(seed)
    mask, rows = (np.arange(TOKENS)[None] < rng.integers(3, TOKENS + 1) for _ in range(2))
    x, bias = rng.normal(0, 1, (1, TOKENS, WIDTH)), rng.normal(0, 1, (1, TOKENS, TOKENS))
    made = {"x": x.astype(np.float32), "bias": bias.astype(np.float32)}
    return made | {"mask": mask.astype(np.int64), "rows": rows.astype(np.int64)}


def result(model, feeds):
    return open_session(model.SerializeToString()).run(None, feeds)[0]


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        ({}, ["Slice", "Max"]),
        ({"lowest": -1e4}, ["Slice", "Max"]),
        ({"lowest": -20.0}, ["Slice", "Max"]),
        # Padded rows have the bound everywhere, so their results are those without a mask: only the others are equal.
        ({"rows": "by_rows"}, ["Max"]),
        ({"mask": "causal"}, []),
        ({"mask": "causal", "lowest": -np.inf}, []),
    ],
)
def test_float_results_stay(form, steps):
    model = attention(**form)
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    assert bound_masks(changed)
    onnx.checker.check_model(changed, full_check=True)
    assert [n.op_type for n in changed.graph.node if n.name.startswith("mask/")] == steps
    assert not [n for n in changed.graph.node if n.op_type == "IsNaN"]
    assert bool(steps) == bool(mask_nodes(changed.graph))
    for seed in range(5):
        feeds = sample(seed)
        kept = feeds["rows"][0] > 0 if form.get("rows") else slice(None)
        np.testing.assert_allclose(result(changed, feeds)[0, kept], result(model, feeds)[0, kept], atol=1e-5)


@pytest.mark.parametrize("mask", ["bias", "scores"])
def test_other_sums_stay(mask):
    """What an input of floats gives, and a sum of activations, is no mask; their NaN is not known to be absent."""
    model = attention(mask=mask)
    before = model.SerializeToString()
    assert not bound_masks(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("reader", ["Exp", "Abs"])
def test_a_constant_that_others_read_stays(reader):
    """Only sums before a Softmax may read another value in its place."""
    model = attention(mask="causal", lowest=-50.0)
    model.graph.node.append(helper.make_node(reader, ["causal"], ["other"], name="other"))
    model.graph.output.append(helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, [1, TOKENS, TOKENS]))
    kept = next(t for t in model.graph.initializer if t.name == "causal").SerializeToString()
    bound_masks(model)
    assert next(t for t in model.graph.initializer if t.name == "causal").SerializeToString() == kept


def test_padding_is_quantized_well_and_in_one_region(tmp_path, monkeypatch):
    onnx.save(attention(lowest=-1e4), tmp_path / "f.onnx")
    samples = [sample(k) for k in range(8)]
    np.savez(tmp_path / "c.npz", **{n: np.concatenate([s[n] for s in samples]) for n in samples[0]})
    done = quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npz")
    program = intloom.compile(tmp_path / "q.onnx", "base")
    assert len(program.bundle.programs) == 1
    session = intloom.Session(program, backend="golden", check=True)
    session.run(None, {n: v for n, v in sample(20).items() if n in session.inputs})
    monkeypatch.setattr(static, "bound_masks", lambda _: False)
    plain = quantize(tmp_path / "f.onnx", tmp_path / "plain.onnx", tmp_path / "c.npz")
    agreed, before = (max(q.agreement.values()) for q in (done, plain))
    assert agreed > 0.95 > 0.7 > before


def test_samples_without_padding_are_warned_of(tmp_path, caplog):
    onnx.save(attention(), tmp_path / "f.onnx")
    full = sample(1) | {"mask": np.ones((1, TOKENS), np.int64)}
    for mask, warnings in ((full["mask"], 1), (sample(1)["mask"], 0)):
        np.savez(tmp_path / "c.npz", **full | {"mask": mask})
        caplog.clear()
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npz", QuantizeOptions(calibration="minmax"))
        assert sum("no calibration sample has padding" in m for m in caplog.messages) == warnings


def test_a_mask_that_doubles_many_times_is_read_once():
    """A walk that follows both operands of each sum would take 2 ** 60 steps."""
    model = attention(lowest=-20.0)
    doubled = ["added", *(f"twice{k}" for k in range(60))]
    sums = [helper.make_node("Add", [a, a], [b], name=b) for a, b in pairwise(doubled)]
    at = next(k for k, n in enumerate(model.graph.node) if n.name == "sum")
    model.graph.node[at].input[1] = doubled[-1]
    for node in reversed(sums):
        model.graph.node.insert(at, node)
    assert bound_masks(onnx.shape_inference.infer_shapes(model))
