"""Quantized models: what is quantized, what stays float, and how well it goes."""

import json
from math import log10

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.common.errors import ModelError
from intloom.compiler.reference import open_session
from intloom.images import synthetic_batch, synthetic_image
from intloom.quantization import ActivationType, Calibration, Form, Head, QuantizeOptions, WeightScales, quantize
from intloom.quantization.snr import measure_noise
from tests.support.given_model import given_model


def quantized(float_models, tmp_path, name="mini_yolo", calibration=None, **options):
    options = QuantizeOptions(samples=2, **options)
    target = tmp_path / "q.onnx"
    done = quantize(float_models(name), target, calibration, options, cache=tmp_path / "cache")
    return done, onnx.load(target)


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("activations", list(ActivationType))
@pytest.mark.parametrize("weights", list(WeightScales))
def test_every_form_and_type_runs_close_to_float(float_models, tmp_path, form, activations, weights):
    done, model = quantized(float_models, tmp_path, "c2f", form=form, activations=activations, weights=weights)
    zero_points = {i.name: i.data_type for i in model.graph.initializer if i.name.endswith("_zero_point")}
    wanted = onnx.TensorProto.UINT8 if activations is ActivationType.UINT8 else onnx.TensorProto.INT8
    assert zero_points["images_zero_point"] == wanted
    scales = {i.name: list(i.dims) for i in model.graph.initializer if i.name.startswith("model.0.conv.weight_scale")}
    assert next(iter(scales.values())) in ([[32]] if weights is WeightScales.PER_CHANNEL else [[], [1]])
    x = synthetic_batch(1, 32, 32, 0)
    ours, theirs = (open_session(p.read_bytes()).run(None, {"images": x})[0] for p in (done.path, float_models("c2f")))
    assert np.abs(ours - theirs).mean() < 0.1 * theirs.std()


def test_detection_tail_stays_float_and_is_named(float_models, tmp_path):
    done, model = quantized(float_models, tmp_path)
    assert "/model.22/dfl/Softmax" in done.excluded
    assert "/model.22/Sigmoid" in done.excluded
    assert not any("cv2" in name for name in done.excluded)
    softmax = next(n for n in model.graph.node if n.op_type == "Softmax")
    assert not softmax.input[0].endswith("DequantizeLinear_Output")


def test_head_whole_quantizes_it(float_models, tmp_path):
    done, model = quantized(float_models, tmp_path, head=Head.WHOLE)
    assert done.excluded == ()
    softmax = next(n for n in model.graph.node if n.op_type == "Softmax")
    assert softmax.input[0].endswith("DequantizeLinear_Output")


def test_silu_has_a_pair_behind_sigmoid_and_product(float_models, tmp_path):
    _, model = quantized(float_models, tmp_path, "tiny")
    kinds = [n.op_type for n in model.graph.node if n.op_type not in ("DequantizeLinear", "QuantizeLinear")]
    assert sorted(kinds) == ["Conv", "Mul", "Sigmoid"]
    makers = {o: n.op_type for n in model.graph.node for o in n.output}
    sources = [makers.get(n.input[0], "input") for n in model.graph.node if n.op_type == "QuantizeLinear"]
    assert sorted(sources) == ["Conv", "Mul", "Sigmoid", "input"]


@pytest.mark.parametrize("method", list(Calibration))
def test_calibration_methods(float_models, tmp_path, method):
    options = QuantizeOptions(samples=2, calibration=method)
    done = quantize(float_models("tiny"), tmp_path / "q.onnx", None, options, cache=tmp_path / "cache")
    assert len(done.noise) == 4
    assert all(n.snr_db > 15 for n in done.noise)


def test_percentile_clips_and_reports_it(float_models, tmp_path):
    loose, _ = quantized(float_models, tmp_path, "tiny")
    assert max(n.saturated for n in loose.noise) == 0.0
    options = QuantizeOptions(samples=2, calibration=Calibration.PERCENTILE, percentile=90.0)
    tight = quantize(float_models("tiny"), tmp_path / "p.onnx", None, options, cache=tmp_path / "cache")
    assert max(n.saturated for n in tight.noise) > 0.05


def test_zoo_is_alive_after_quantization(float_models, tmp_path):
    done, _ = quantized(float_models, tmp_path)
    for tensor in done.noise:
        assert tensor.saturated <= 0.05, tensor
        assert tensor.distinct > 1, tensor
        assert tensor.snr_db > 15.0, tensor


def test_other_options_do_not_repeat_preprocessing(float_models, tmp_path):
    first, _ = quantized(float_models, tmp_path, "c2f")
    second, _ = quantized(float_models, tmp_path, "c2f", form=Form.QOPERATOR)
    assert not first.preprocessed.hit
    assert second.preprocessed.hit
    assert second.preprocessed.path == first.preprocessed.path


def test_copies_of_a_shared_bias_take_no_name_of_a_layer(tmp_path):
    """tf2onnx names the outputs of layers that share bias `b` as `b0`, `b1`, which are the names of its copies."""
    noise = np.random.default_rng(0)
    stored = {"w": noise.normal(0, 0.2, (4, 4, 3, 3)), "b": noise.normal(0, 1, 4)}
    nodes = [helper.make_node("Conv", [x, "w", "b"], [y], pads=[1] * 4) for x, y in (("x", "b0"), ("b0", "b1"))]
    nodes += [helper.make_node("Neg", ["b0"], ["n"]), helper.make_node("Add", ["n", "b1"], ["y"])]
    onnx.save(given_model(nodes, {"x": (1, 4, 8, 8)}, {"y": (1, 4, 8, 8)}, stored), tmp_path / "m.onnx")
    done = quantize(
        tmp_path / "m.onnx", tmp_path / "q.onnx", None, QuantizeOptions(samples=2), cache=tmp_path / "cache"
    )
    assert min(tensor.snr_db for tensor in done.noise) > 20


def test_calibration_from_pictures_and_arrays(float_models, tmp_path):
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    pixels = (synthetic_image(40, 50, 1).transpose(1, 2, 0) * 255).astype(np.uint8)
    Image.fromarray(pixels).save(folder / "a.png")
    np.save(folder / "b.npy", synthetic_batch(1, 16, 16, 3))
    np.savez(tmp_path / "c.npz", images=synthetic_batch(3, 16, 16, 4))
    for source, count in ((folder, 2), (tmp_path / "c.npz", 2)):
        done, _ = quantized(float_models, tmp_path, "tiny", calibration=source)
        assert (done.samples, done.synthetic) == (count, False)


def test_onnxruntime_adds_no_lines_to_an_error(tmp_path, capfd):
    """A convolution with 0 groups, on which the calibration fails."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=0)
    model = given_model([node], {"x": (1, 3, 8, 8)}, {"y": None}, {"w": np.ones((4, 3, 3, 3))})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="is not equal to kernel channels"):
        quantize(tmp_path / "m.onnx", tmp_path / "q.onnx", options=QuantizeOptions(samples=1))
    assert "onnxruntime" not in capfd.readouterr().err


def test_result_prints_as_json(float_models, tmp_path, capsys):
    from intloom.cli import main

    arguments = ["quantize", str(float_models("tiny")), "-o", str(tmp_path / "q.onnx"), "--samples", "1", "--json"]
    assert main([*arguments, "--cache", str(tmp_path / "cache"), "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["synthetic"] is True


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_noise_is_what_each_value_loses(kind, rng):
    """Every figure, from each value and its code; some are clipped at either end."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    for zero in (low, low + 100, high):
        step = np.float32(rng.uniform(0.01, 0.05))
        # Some lie less and some lie more than half a step beyond an end.
        edges = [(zero - end - d / 4) * step for end in (low, high) for d in (-3, -1, 1, 3)]
        values = [*edges, *(rng.gauss(0, 5) for _ in range(392))]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [400])
        y, z = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [400]) for n in "yz")
        neg = helper.make_node("Neg", ["x"], ["y"])
        names = ["y_scale", "y_zero_point"]
        stored = [numpy_helper.from_array(np.array(v), n) for v, n in zip((step, kind(zero)), names, strict=True)]
        pair = [
            helper.make_node("QuantizeLinear", ["y", *names], ["y_quantized"]),
            helper.make_node("DequantizeLinear", ["y_quantized", *names], ["z"]),
        ]
        floats, quantized = (
            helper.make_model(helper.make_graph(*graph), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
            for graph in (([neg], "f", [x], [y]), ([neg, *pair], "q", [x], [z], stored))
        )
        sample = np.array(values, np.float32)
        (noise,) = measure_noise(floats, quantized, {"x": sample})
        real = [-float(v) for v in sample]
        exact = [v / float(step) + zero for v in real]
        codes = [min(max(round(c), low), high) for c in exact]
        assert noise.saturated == pytest.approx(sum(not low - 0.5 <= c <= high + 0.5 for c in exact) / 400)
        assert noise.at_ends == pytest.approx(max(codes.count(low), codes.count(high)) / 400)
        assert (noise.tensor, noise.op, noise.distinct, noise.values) == ("y", "Neg", len(set(codes)), 400)
        lost = sum((v - (c - zero) * float(step)) ** 2 for v, c in zip(real, codes, strict=True))
        assert noise.snr_db == pytest.approx(10 * log10(sum(v * v for v in real) / lost), rel=1e-3)
