"""`intloom evaluate` on small generated data sets: every engine, resumed, with pictures and costs of layers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from PIL import Image, ImageDraw

from intloom.cli import main
from intloom.common.errors import ExitCode
from intloom.evaluation.agreement import labeled_by
from intloom.evaluation.average_precision import Score
from intloom.evaluation.dataset import Dataset, Sample, Task, Truth
from intloom.evaluation.decode import Found, decode, suppress
from intloom.evaluation.engines import _arrays, _read
from intloom.evaluation.evaluate import suggest
from intloom.evaluation.layer_cost import LayerCost, layer_costs, with_float_layer
from intloom.evaluation.scoring import score_classes, score_objects
from intloom.images import synthetic_image
from intloom.pictures import letterbox
from intloom.quantization import Calibration, QuantizeOptions, quantize
from intloom.quantization.graph_values import values_of
from tests.intloom.quantization.test_accuracy import chain


@pytest.fixture(autouse=True)
def _one_method_of_calibration(monkeypatch):
    """The choice between methods has tests in `test_choice.py`."""
    monkeypatch.setattr("intloom.quantization.static.CANDIDATES", (Calibration.MINMAX,))


def photo(seed, size=64):
    pixels = (synthetic_image(size, size, seed).transpose(1, 2, 0) * 255).astype(np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture(scope="module")
def detections(tmp_path_factory):
    """Four images with one labeled rectangle each."""
    folder = tmp_path_factory.mktemp("detect")
    (folder / "images").mkdir()
    (folder / "labels").mkdir()
    for i in range(4):
        picture = photo(i)
        ImageDraw.Draw(picture).rectangle([8 + 8 * i, 8, 31 + 8 * i, 40], fill="red")
        picture.save(folder / f"images/{i}.png")
        (folder / f"labels/{i}.txt").write_text(f"{i % 4} {(20 + 8 * i) / 64} 0.375 0.375 0.5\n")
    return folder


def evaluate(capsys, *words):
    code = main(["evaluate", *map(str, words), "--rtl", "0", "--json", "-q"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_detector_from_float_to_accelerator(detections, float_models, tmp_path, capsys, cache_folder, monkeypatch):
    words = (
        float_models("mini_yolo", 64),
        "--data",
        detections,
        "--task",
        "detect",
        "--preset",
        "nano",
        "-o",
        tmp_path,
    )
    code, result = evaluate(capsys, *words)
    assert code == ExitCode.OK
    assert list(result["scores"]) == ["float", "quantized", "accelerator"]
    assert result["scores"]["quantized"] == result["scores"]["accelerator"]
    assert result["images"] == 4
    assert len(result["worst"]) == 4 and all(Image.open(p).size == (64, 64) for p in result["worst"])
    assert result["layers"] and result["layers"][0]["share"] >= result["layers"][-1]["share"]
    assert json.loads((tmp_path / "evaluation.json").read_text()) == result
    # The second evaluation reads the results; the network does not run.
    monkeypatch.setattr("intloom.evaluation.engines._run", None)
    assert evaluate(capsys, *words)[1]["scores"] == result["scores"]


@pytest.mark.slow
def test_a_program_is_evaluated_with_its_model(detections, programs, tmp_path, capsys, cache_folder):
    words = ("--data", detections, "--task", "detect", "--images", "2", "-o", tmp_path / "out")
    code, result = evaluate(capsys, programs("mini_yolo", 64), *words)
    assert code == ExitCode.OK and result["images"] == 2
    assert list(result["scores"]) == ["quantized", "accelerator"]
    assert "--float" in result["suggestions"][0]


@pytest.mark.slow
def test_scores_are_shown_as_a_table(detections, quantized_models, float_models, tmp_path, capsys):
    model, floats = quantized_models("mini_yolo", 64), float_models("mini_yolo", 64)
    words = ("--float", floats, "--data", detections, "--task", "detect", "--preset", "nano", "--images", 2)
    assert main(["evaluate", str(model), *map(str, words), "-o", str(tmp_path)]) == ExitCode.OK
    shown = capsys.readouterr()
    assert "2 images" in shown.out and "share of the error" in shown.out
    assert "images in RTL: 1, equal to the golden model" in shown.err


@pytest.mark.slow
def test_pictures_without_labels_are_compared_with_the_float_model(
    detections, float_models, tmp_path, capsys, cache_folder
):
    """With open sizes, as exporters leave them."""
    model = onnx.load(float_models("mini_yolo", 64))
    for axis, name in ((2, "height"), (3, "width")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    onnx.save(model, tmp_path / "open.onnx")
    words = ("--data", detections / "images", "--task", "detect", "--preset", "nano", "--images", 3)
    sizes = ("--dim", "height=64", "--dim", "width=64")
    code, result = evaluate(capsys, tmp_path / "open.onnx", *words, *sizes, "-o", tmp_path / "out")
    assert code == ExitCode.OK and result["images"] == 3
    scores = {name: score["figures"]["mAP50"] for name, score in result["scores"].items()}
    assert scores["float"] >= scores["accelerator"] == scores["quantized"]
    assert "<h2>Agreement</h2>" in (tmp_path / "out/evaluation.html").read_text()
    assert main(["evaluate", str(tmp_path / "out/open.q.onnx"), *map(str, words)]) == ExitCode.USAGE
    assert "give it with --float" in capsys.readouterr().err


def test_another_number_of_classes_is_found_before_the_network_runs(
    detections, quantized_models, tmp_path, capsys, cache_folder, monkeypatch
):
    monkeypatch.setattr("intloom.evaluation.engines._run", pytest.fail)
    for i in range(4):
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "labels").mkdir(exist_ok=True)
        photo(i).save(tmp_path / f"images/{i}.png")
        (tmp_path / f"labels/{i}.txt").write_text("1 0.5 0.5 0.5 0.5\n")
    words = ("--data", str(tmp_path), "--task", "detect", "--preset", "nano", "-o", str(tmp_path / "out"))
    model = str(quantized_models("mini_yolo", 64))
    assert main(["evaluate", model, *words]) == ExitCode.USAGE
    assert "the network has 4 classes" in (said := capsys.readouterr().err) and "the data has 2" in said
    (tmp_path / "images/2.png").write_bytes(b"no picture")
    assert main(["evaluate", model, *words]) == ExitCode.BAD_FILE
    assert "2.png" in capsys.readouterr().err


@pytest.mark.parametrize(("task", "columns"), [(Task.DETECT, 6), (Task.SEGMENT, 37), (Task.POSE, 8)])
def test_a_picture_without_candidates_has_no_objects(task, columns):
    picture = letterbox(Image.new("RGB", (128, 64)), 64, 64)
    prototypes = np.zeros((1, 32, 16, 16), np.float32)
    classes = 2 if task is Task.DETECT else 1
    found = decode([*outputs([[0.0] * columns] * 3, columns), prototypes], task, classes, picture)
    assert found.boxes.shape == (0, 4) and found.masks.shape[0] == 0 and found.keypoints.shape[0] == 0


def test_results_as_labels_agree_with_themselves():
    picture = letterbox(Image.new("RGB", (128, 64)), 64, 64)
    rows = [[32, 32, 16, 8, 0.9, 0.1], [12, 30, 16, 8, 0.1, 0.7], [50, 40, 9, 9, 0.2, 0]]
    found = decode(outputs(rows, 6), Task.DETECT, 2, picture)
    data = labeled_by(Dataset(("0", "1"), (Sample(Path("a"), ()),), labeled=False), [found], Task.DETECT)
    assert [t.label for t in data.samples[0].truths] == [0, 1]
    assert score_objects([found], data, Task.DETECT).score.figures["mAP50"] == pytest.approx(1.0)
    worse = replace(found, boxes=found.boxes + 30)
    assert score_objects([worse], data, Task.DETECT).score.figures["mAP50"] < 0.5


def outputs(rows, columns):
    table = np.zeros((1, columns, len(rows)), np.float32)
    table[0, :, :] = np.array(rows, np.float32).T
    return [table]


def test_boxes_are_decoded_into_the_image():
    picture = letterbox(Image.new("RGB", (128, 64)), 64, 64)
    rows = [[32, 32, 16, 8, 0.9, 0.1], [33, 32, 16, 8, 0.8, 0.1], [32, 32, 16, 8, 0.1, 0.7], [0, 0, 9, 9, 0, 0]]
    found = decode(outputs(rows, 6), Task.DETECT, 2, picture)
    assert found.scores.tolist() == pytest.approx([0.9, 0.7])
    assert found.labels.tolist() == [0, 1]
    assert found.boxes[0].tolist() == pytest.approx([48, 24, 80, 40])


def test_key_points_and_masks_are_decoded_into_the_image():
    picture = letterbox(Image.new("RGB", (128, 64)), 64, 64)
    found = decode(outputs([[32, 32, 16, 8, 0.9, 32, 16, 0.5]], 8), Task.POSE, 1, picture)
    assert found.keypoints[0, 0].tolist() == pytest.approx([64, 0, 0.5])
    prototypes = np.full((1, 32, 16, 16), -1.0, np.float32)
    prototypes[0, 0] = 1.0
    row = [32, 32, 16, 8, 0.9, 1.0, *[0.0] * 31]
    found = decode([*outputs([row], 37), prototypes], Task.SEGMENT, 1, picture)
    assert found.masks.shape == (1, 64, 128)
    assert found.masks[0, 30, 60] and found.masks[0].sum() == pytest.approx(32 * 16, rel=0.1)
    # Where the sum is 0 no object is: a prototype's row has four rows of the input, of which 16 are above the picture.
    prototypes[0, 0, 8:] = 0.0
    found = decode([*outputs([row], 37), prototypes], Task.SEGMENT, 1, picture)
    assert found.masks[0, 30, 60] and not found.masks[0, 37:].any()


def test_networks_without_suppression_give_corners_score_and_class():
    picture = letterbox(Image.new("RGB", (128, 64)), 64, 64)
    rows = [[24, 28, 40, 36, 0.9, 3], [25, 28, 40, 36, 0.8, 3], [0, 0, 9, 60, 0.0005, 1], [60, 20, 70, 40, 0.001, 0]]
    found = decode([np.array([rows], np.float32)], Task.DETECT, 4, picture)
    assert found.scores.tolist() == pytest.approx([0.9, 0.8, 0.001])
    assert found.labels.tolist() == [3, 3, 0]
    assert found.boxes[0].tolist() == pytest.approx([48, 24, 80, 40])
    # The second half of the last box lies right of the picture.
    assert found.boxes[2].tolist() == pytest.approx([120, 8, 128, 48])
    assert found.keypoints.shape == (3, 0, 3)


def test_class_scores_of_images():
    data = Dataset(
        ("a", "b", "c", "d", "e", "f", "g"), tuple(Sample(Path("x"), (Truth(n, (0, 0, 0, 0), 0),)) for n in (2, 6, 0))
    )
    scores = [np.array([0, 1, 5, 0, 0, 0, 0.5]), np.array([9, 8, 7, 6, 5, 4, 3.0])]
    found = score_classes(scores, data)
    assert found.score.figures == {"top-1": 0.5, "top-5": 0.5}
    assert found.score.classes == {"c": {"top-1": 1.0, "top-5": 1.0}, "g": {"top-1": 0.0, "top-5": 0.0}}
    assert found.images == (5.0, 3.0)


@pytest.mark.parametrize("task", [Task.CLASSIFY, Task.SEGMENT, Task.POSE])
def test_stored_results_come_back_as_they_were(task, tmp_path):
    rng = np.random.default_rng(1)
    if task is Task.CLASSIFY:
        made = rng.random(5)
    else:
        made = Found(
            rng.random((3, 4)), rng.random(3), np.array([2, 0, 1]), rng.random((3, 2, 3)), rng.random((3, 7, 5)) > 0.5
        )
    path = tmp_path / "x.npz"
    np.savez_compressed(path, **_arrays(made))
    found = _read(path, task)
    for one, other in zip(*([r] if task is Task.CLASSIFY else vars(r).values() for r in (found, made)), strict=True):
        np.testing.assert_array_equal(one, other)
    for data in (path.read_bytes()[:-9], b"", b"PK"):
        path.write_bytes(data)
        assert _read(path, task) is None
    assert _read(tmp_path / "none.npz", task) is None


def test_suppression_keeps_the_best_of_each_class():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 11], [0, 0, 10, 10], [20, 0, 30, 10]], float)
    assert suppress(boxes, np.array([0, 0, 1, 0]), 0.7).tolist() == [0, 2, 3]


def test_boxes_of_different_classes_never_suppress_each_other(seed):
    """Wherever they are: the picture's border may cut an object on any side."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.integers(0, 50, (60, 2, 2)), axis=1) - 50 * rng.integers(0, 2, (60, 1, 1))
    boxes, labels = corners.reshape(60, 4).astype(np.float64), rng.integers(0, 5, 60)
    alone = [np.flatnonzero(labels == c)[suppress(boxes[labels == c], labels[labels == c], 0.3)] for c in range(5)]
    assert suppress(boxes, labels, 0.3).tolist() == sorted(np.concatenate(alone).tolist())


def test_the_cost_of_a_layer_is_the_error_that_its_float_form_removes(float_models, quantized_models):
    floats, quantized = onnx.load(float_models("tiny")), onnx.load(quantized_models("tiny"))
    (name,) = (n.name for n in floats.graph.node if n.op_type == "Conv")
    made = with_float_layer(floats, quantized, name)
    onnx.checker.check_model(made)
    (layer,) = (n for n in made.graph.node if n.name == name)
    assert layer.input[1] in {i.name for i in made.graph.initializer}
    images = [synthetic_image(16, 16, seed)[None] for seed in (3, 4)]
    (first,), (second,), (both,) = (
        layer_costs(floats, quantized, tensors, lambda _done, _all: None)
        for tensors in (images[:1], images[1:], images)
    )
    assert both.layer == name and 0 < both.share < 1
    assert min(first.share, second.share) < both.share < max(first.share, second.share)
    # Weights of other sizes, as channels with copies have, stay quantized.
    weights = next(n for n in floats.graph.node if n.name == name).input[1]
    (filters,) = (i for i in floats.graph.initializer if i.name == weights)
    filters.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(filters)[:1], filters.name))
    (layer,) = (n for n in with_float_layer(floats, quantized, name).graph.node if n.name == name)
    assert layer.input[1] not in {i.name for i in made.graph.initializer}


def test_a_layer_in_float_keeps_its_relu(tmp_path):
    folder, rng = tmp_path, np.random.default_rng(0)
    onnx.save(chain(), folder / "f.onnx")
    np.save(folder / "c.npy", rng.random((4, 3, 12, 12), np.float32))
    quantize(folder / "f.onnx", folder / "q.onnx", folder / "c.npy", QuantizeOptions())
    made = with_float_layer(chain(), onnx.load(folder / "q.onnx"), "conv1")
    onnx.checker.check_model(made)
    x = [{chain().graph.input[0].name: rng.random((1, 3, 12, 12), np.float32)}]
    (wanted,), (got,) = (values_of(m, ["z"], x, 10_000)["z"] for m in (chain(), made))
    assert got.min() == 0.0
    np.testing.assert_allclose(got, wanted, atol=0.02 * wanted.max())


def test_suggestions_follow_from_the_loss():
    def score(value):
        return Score({"mAP50-95": value}, {})

    good = {"float": score(0.5), "accelerator": score(0.495)}
    assert suggest(good, [], 100) == []
    bad = suggest({**good, "accelerator": score(0.4)}, [LayerCost("conv1", 0.5), LayerCost("conv2", 0.1)], 8)
    assert "10.0 points" in bad[0] and "--samples 32" in bad[1] and "--exclude conv1" in bad[2] and len(bad) == 3
    assert "--float" in suggest({"accelerator": score(0.4)}, [], 8)[0]
