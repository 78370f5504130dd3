"""The detection example: the same boxes from every backend, drawn on the picture."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from intloom.cli import main
from intloom.quantization import QuantizeOptions, quantize
from intloom.zoo import build

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "detect.py"


@pytest.fixture(scope="module")
def detect():
    spec = importlib.util.spec_from_file_location("detect_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detect")
    (folder / "net.onnx").write_bytes(build("mini_yolo", 64).SerializeToString())
    quantize(folder / "net.onnx", folder / "q.onnx", options=QuantizeOptions(samples=1), cache=folder / "cache")
    assert main(["compile", str(folder / "q.onnx"), "--preset", "nano", "-o", str(folder / "net.loom"), "-q"]) == 0
    return folder / "net.loom"


def boxes_of(detect, program, backend, tmp_path, capsys):
    target = tmp_path / f"{backend}.png"
    assert detect.main([str(program), "-o", str(target), "--backend", backend, "--confidence", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if line.startswith("class")], target.read_bytes()


def test_golden_instructions_and_onnxruntime_give_the_same_boxes(detect, program, tmp_path, capsys):
    results = [boxes_of(detect, program, b, tmp_path, capsys) for b in ("golden", "isa", "onnxruntime")]
    assert results[0][0]
    assert results[0] == results[1] == results[2]


@pytest.mark.slow
def test_rtl_gives_the_same_boxes(detect, program, tmp_path, capsys):
    assert boxes_of(detect, program, "rtl", tmp_path, capsys) == boxes_of(detect, program, "golden", tmp_path, capsys)


def test_boxes_are_drawn_on_the_users_picture(detect, program, tmp_path):
    Image.new("RGB", (200, 100), (40, 90, 140)).save(tmp_path / "in.png")
    arguments = [str(program), str(tmp_path / "in.png"), "-o", str(tmp_path / "out.png"), "--backend", "golden"]
    assert detect.main([*arguments, "--confidence", "0.05"]) == 0
    drawn = np.asarray(Image.open(tmp_path / "out.png"))
    assert drawn.shape == (100, 200, 3)
    assert (drawn != (40, 90, 140)).any()


def test_suppression_keeps_the_best_of_overlapping_boxes_of_a_class(detect):
    boxes = np.array([[0, 0, 10, 10], [1, 1, 10, 10], [0, 0, 10, 10], [20, 20, 30, 30]], np.float32)
    kept = detect.suppress(boxes, np.array([1, 1, 2, 1]), 0.5)
    assert kept.tolist() == [0, 2, 3]


def test_decoding_takes_the_best_class_and_sorts_by_score(detect):
    output = np.zeros((1, 6, 3), np.float32)
    output[0, :4] = [[10, 50, 90], [10, 50, 90], [4, 4, 4], [8, 8, 8]]
    output[0, 4:] = [[0.3, 0.1, 0.0], [0.2, 0.9, 0.1]]
    found = detect.decode(output, confidence=0.25, overlap=0.5, most=10)
    assert found.classes.tolist() == [1, 0]
    np.testing.assert_allclose(found.boxes, [[48, 46, 52, 54], [8, 6, 12, 14]])


def test_a_missing_program_is_one_line(detect, tmp_path, capsys):
    assert detect.main([str(tmp_path / "none.loom")]) == 3
    assert capsys.readouterr().err.startswith("detect: cannot read model or program")
