"""Better ranges, bias correction and equalization, on a network trained on generated shapes and on small cases."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from intloom.common.errors import UsageError
from intloom.compiler.reference import open_session
from intloom.quantization import Form, QuantizeOptions, quantize, ranges
from intloom.quantization.bias_correction import correct_biases
from intloom.quantization.equalization import equalize
from intloom.quantization.graph_values import channel_means, thinned
from intloom.quantization.ranges import best_range, best_range_of_rows, best_ranges, normalized, relu, rounded, silu
from tests.support.given_model import given_model
from tests.support.shapes_network import pictures, trained

PAGE = (Path(__file__).parents[3] / "docs/accuracy.md").read_text(encoding="utf-8")
OVEREXPOSED = 30
"""Factor of one calibration picture, as from a faulty camera."""


def scores(model, images):
    session = open_session(model.read_bytes())
    return np.array([session.run(None, {"images": image[None]})[0].ravel() for image in images])


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    onnx.save(trained(), folder / "float.onnx")
    calibration, _ = pictures(5, 32)
    np.save(folder / "good.npy", calibration)
    calibration[0] *= OVEREXPOSED
    np.save(folder / "outlier.npy", calibration)
    return folder


def accuracy(network, data, **options):
    images, labels = pictures(99, 600)
    model = network / "float.onnx"
    if options:
        model = network / "quantized.onnx"
        chosen = QuantizeOptions(samples=32, head="whole", **options)
        quantize(network / "float.onnx", model, network / f"{data}.npy", chosen)
    return float((scores(model, images).argmax(axis=1) == labels).mean())


def test_the_default_keeps_accuracy_where_the_widest_ranges_lose_it(network):
    whole = accuracy(network, "good")
    found = {d: [accuracy(network, d, calibration=c) for c in ("minmax", "mse", "auto")] for d in ("good", "outlier")}
    for data, shares in found.items():
        print(f"{data}: float {100 * whole:.1f} %", *(f"{100 * share:.1f} %" for share in shares))
    assert whole > 0.93
    assert min(found["good"]) > whole - 0.01
    assert accuracy(network, "good", calibration="mse", correct_bias=True) > whole - 0.01
    minmax, mse, default = found["outlier"]
    assert default > minmax + 0.01 and mse > minmax + 0.01
    assert default > whole - 0.03
    table = [line for line in PAGE.splitlines() if line.count(" % |") == 4]
    stated = [[float(n) for n in re.findall(r"([\d.]+) %", line)] for line in table]
    for row, values in zip(stated, found.values(), strict=True):
        # Sums of numpy depend on the processor in the last digit, and so may the label of a picture or two.
        assert row == pytest.approx([100 * whole, *(100 * v for v in values)], abs=0.5)


def test_the_range_of_silu_stops_where_its_result_is_flat():
    values = np.random.default_rng(0).normal(0, 8, 4000)
    low, high = best_range([thinned(values, 4000)], silu)
    assert high == pytest.approx(values.max(), rel=0.25)
    assert values.min() < low and -9 < low < -3

    def error(*ends):
        codes, levels = rounded(values, *ends)
        return np.square(silu(levels[codes]) - silu(values)).mean()

    assert error(low, high) < 0.5 * error(values.min(), values.max())


@given(st.floats(-9, 0), st.floats(0, 9))
def test_a_rounded_zero_point_moves_a_range_by_at_most_half_a_step(low, high):
    """0 is a value, and values of the range are moved by at most half a step, but for half a step at its ends."""
    assume(high - low > 0.01)
    codes, levels = rounded(np.linspace(low, high, 1000), low, high)
    step = (high - low) / 255
    assert 0.0 in levels
    assert abs(levels[0] - low) <= 0.5001 * step
    assert np.abs(levels[codes] - np.linspace(low, high, 1000)).max() <= 0.5001 * step


def test_the_range_of_relu_has_no_negative_part():
    assert best_range([thinned(np.linspace(-5, 3, 500), 500)], relu)[0] == 0.0


@pytest.mark.parametrize("function", [lambda x: x, relu, silu])
def test_no_range_that_is_not_tried_is_better(function, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    shapes = (rng.standard_t(3, 3000), rng.uniform(-1, 1, 900) ** 3, -rng.exponential(5, 900), rng.exponential(5, 900))
    samples = [[thinned(scale * values, 4000) for scale in (1, 1.5)] for values in shapes]
    made = [best_range(s, function) for s in samples]
    search = ranges._smallest
    monkeypatch.setattr(ranges, "_smallest", lambda error, least, most, _bound: search(error, least, most))
    assert made == [best_range(s, function) for s in samples]


def test_one_sample_does_not_decide():
    rng = np.random.default_rng(0)
    samples = [thinned(rng.normal(0, 1 if k else 100, 500), 500) for k in range(21)]
    assert best_range(samples, lambda x: x)[1] < 60


def test_an_extreme_value_stands_for_itself_only():
    """One of a million values is large: it weighs little, though every sample has it."""
    values = np.random.default_rng(0).normal(0, 1, 1_000_000)
    values[5] = 15
    sample = thinned(values, 1000)
    assert sample[0].max() == 15 and sample[1].sum() == pytest.approx(values.size, rel=0.01)
    assert best_range([sample] * 4, lambda x: x)[1] < 10


def test_one_token_with_a_large_value_does_not_take_the_codes_of_all_before_a_normalization():
    rows = np.random.default_rng(0).normal(0, 0.7, (32, 384))
    assert best_range_of_rows(rows)[1] == pytest.approx(rows.max(), rel=0.3)
    rows[0, 99] = 220
    low, high = best_range_of_rows(rows)
    codes, levels = rounded(rows, low, high)
    kept = np.square(normalized(levels[codes]) - normalized(rows)).mean(axis=1)
    codes, levels = rounded(rows, rows.min(), rows.max())
    whole = np.square(normalized(levels[codes]) - normalized(rows)).mean(axis=1)
    assert kept.max() < 0.1, "the token itself is not lost"
    assert np.median(kept) < np.median(whole) / 5


def test_terms_of_a_normalized_sum_have_no_wider_range():
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, (8, 64)).astype(np.float32)
    values[0, 5] = 300
    nodes = [helper.make_node("MatMul", ["x", "eye"], ["m"]), helper.make_node("Add", ["m", "x"], ["sum"])]
    nodes += [helper.make_node("LayerNormalization", ["sum", "ones"], ["y"])]
    model = given_model(nodes, {"x": (8, 64)}, {"y": (8, 64)}, {"ones": np.ones(64), "eye": np.eye(64)})
    ranges = best_ranges(model, [{"x": values}])
    assert ranges["sum"][1] < 300 == ranges["x"][1]
    assert ranges["m"][1] < ranges["sum"][1] / 4, "the residual alone is beyond the range of the sum"


def chain(groups=1, seed=0):
    """Two convolutions with ReLU between them, with channels of very different ranges."""
    rng = np.random.default_rng(seed)
    spread = 10.0 ** rng.uniform(-2, 2, 8)
    first = rng.normal(size=(8, 3, 3, 3)) * spread[:, None, None, None]
    second = rng.normal(size=(8, 8 // groups, 3, 3)) / spread.reshape(groups, 1, -1, 1, 1).repeat(
        8 // groups, axis=1
    ).reshape(8, -1, 1, 1)
    arrays = {"w1": first, "b1": rng.normal(size=8) * spread, "w2": second, "b2": rng.normal(size=8)}
    nodes = [
        helper.make_node("Conv", ["images", "w1", "b1"], ["y"], "conv1", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["y"], ["z"], "relu"),
        helper.make_node("Conv", ["z", "w2", "b2"], ["out"], "conv2", kernel_shape=[3, 3], group=groups),
    ]
    return given_model(nodes, {"images": (1, 3, 12, 12)}, {"out": (1, 8, 8, 8)}, arrays, opset=13)


def run(model, x):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"images": x})[0]


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_equalization_keeps_the_float_result_and_makes_ranges_equal(groups):
    model, x = chain(groups), np.random.default_rng(1).random((1, 3, 12, 12), np.float32)
    before = run(model, x)
    assert equalize(model) == 1
    np.testing.assert_allclose(run(model, x), before, rtol=1e-3, atol=1e-3)
    ranges = np.abs(numpy_helper.to_array(model.graph.initializer[0]).reshape(8, -1)).max(axis=1)
    assert np.ptp(np.log10(ranges)) < 1.5


def test_equalization_leaves_branches_and_other_functions(float_models):
    model = chain()
    model.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    assert equalize(model) == 0
    model = chain()
    model.graph.node[1].op_type = "Sigmoid"
    assert equalize(model) == 0


def test_equalization_reduces_the_error_of_unequal_channels(tmp_path):
    model, rng = chain(), np.random.default_rng(2)
    onnx.save(model, tmp_path / "f.onnx")
    np.save(tmp_path / "c.npy", rng.random((8, 3, 12, 12), np.float32))
    x = rng.random((1, 3, 12, 12), np.float32)
    errors = []
    for equal in (False, True):
        options = QuantizeOptions(equalize=equal)
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npy", options)
        made = run(onnx.load(tmp_path / "q.onnx"), x)
        errors.append(float(np.square(made - run(model, x)).mean()))
    assert errors[1] < errors[0] / 10


def test_bias_correction_takes_the_shift_of_channels_back(tmp_path):
    rng = np.random.default_rng(3)
    onnx.save(chain(), tmp_path / "f.onnx")
    samples = [rng.random((1, 3, 12, 12), np.float32) for _ in range(8)]
    np.save(tmp_path / "c.npy", np.concatenate(samples))
    # A sample far outside the calibrated ranges decides nothing.
    samples = [{chain().graph.input[0].name: s} for s in (*samples, 50 * samples[0])]
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npy", QuantizeOptions())
    floats, made = onnx.load(tmp_path / "f.onnx"), onnx.load(tmp_path / "q.onnx")

    def shift():
        return np.abs(np.median(channel_means(made, "out", samples) - channel_means(floats, "out", samples), axis=0))

    before = shift()
    assert correct_biases(floats, made, samples, lambda _done, _all: None) == 2
    assert shift().mean() < before.mean() / 10


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="needs the form qdq"):
        QuantizeOptions(form=Form.QOPERATOR, correct_bias=True)


def test_bytes_as_calibration_values_are_warned_about(tmp_path, float_models, caplog):
    np.save(tmp_path / "bytes.npy", np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16)).astype(np.float32))
    quantize(float_models("tiny"), tmp_path / "q.onnx", tmp_path / "bytes.npy")
    assert "divide them by 255" in caplog.text
    caplog.clear()
    np.save(tmp_path / "unit.npy", np.random.default_rng(0).random((2, 3, 16, 16), np.float32))
    quantize(float_models("tiny"), tmp_path / "q.onnx", tmp_path / "unit.npy")
    assert "divide" not in caplog.text
