"""Boxes from maps, crops, letters from scores, and drawn pictures."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from intloom.cli import main
from intloom.common.errors import ExitCode
from intloom.demo import DemoOptions
from intloom.reading.drawing import draw_line, draw_photograph
from intloom.reading.networks import crop, decoded, detector_input, mask_overlap, recognizer_input, text_boxes


def drawn(*polygons, score=0.9, size=(160, 120)):
    picture = Image.new("L", size)
    for polygon in polygons:
        ImageDraw.Draw(picture).polygon(polygon, fill=1)
    return np.asarray(picture, np.float32) * np.float32(score)


LEVEL, SLANTED = [(20, 20), (120, 20), (120, 30), (20, 30)], [(30, 60), (128, 77), (126, 87), (28, 70)]


def test_boxes_lie_around_each_line_from_the_top():
    boxes = text_boxes(drawn(SLANTED, LEVEL), (320, 240), 8)
    level, slanted = (np.array(b.corners) for b in boxes)
    # The map has half of the picture's pixels. A box grows by the same number of pixels on all sides.
    grown = np.array(LEVEL) * 2 - level
    assert grown[0] == pytest.approx(grown[0][0], abs=2.5) and 12 < grown[0][0] < 22
    assert np.allclose(np.abs(grown), grown[0][0], atol=2.5)
    along = slanted[1] - slanted[0]
    assert np.rad2deg(np.arctan2(along[1], along[0])) == pytest.approx(9.8, abs=1)
    assert all(b.score == pytest.approx(0.9) for b in boxes)


def test_faint_and_tiny_parts_are_no_lines_and_the_best_are_kept():
    assert text_boxes(drawn(LEVEL, score=0.4), (160, 120), 8) == []
    assert text_boxes(drawn([(5, 5), (6, 5), (6, 6), (5, 6)]), (160, 120), 8) == []
    assert len(text_boxes(drawn(LEVEL, SLANTED), (160, 120), 1)) == 1
    ring = drawn(LEVEL) - drawn([(40, 23), (100, 23), (100, 27), (40, 27)])
    assert len(text_boxes(ring, (160, 120), 8)) == 1, "runs of a row that join below are one component"


def test_a_crop_is_upright():
    picture = Image.fromarray(drawn(SLANTED, score=255).astype(np.uint8)).convert("RGB")
    (box,) = text_boxes(drawn(SLANTED), picture.size, 8)
    rows = np.asarray(crop(picture, box).convert("L"), np.float32).mean(axis=1)
    middle = len(rows) // 2
    assert rows[middle] > 150 and rows[0] < 20 and rows[-1] < 20


def test_letters_are_the_best_classes_and_repeated_ones_count_once():
    best = [1, 1, 0, 1, 2, 2, 0, 0, 3]
    assert decoded(np.eye(4, dtype=np.float32)[best], ["", "a", "b", " "]) == "aab "


def test_inputs_of_the_networks():
    white = Image.new("RGB", (30, 15), "white")
    tensor = recognizer_input(white)
    assert tensor.shape == (1, 3, 48, 320) and (tensor[..., :96] == 1).all() and (tensor[..., 96:] == 0).all()
    blue = detector_input(Image.new("RGB", (64, 48), "blue"))
    assert blue[0, :, 0, 0].tolist() == [1, -1, -1], "blue comes first"


def test_overlap_of_masks():
    assert mask_overlap(drawn(), drawn()) == 1.0
    assert mask_overlap(drawn(LEVEL), drawn()) == 0.0
    assert mask_overlap(drawn(LEVEL), drawn(LEVEL, SLANTED)) == pytest.approx(0.5, abs=0.05)


def test_a_seed_draws_one_picture():
    assert draw_line(3) == draw_line(3)
    assert draw_photograph(3) == draw_photograph(3) != draw_photograph(4)


@pytest.mark.slow
def test_without_the_wheel_the_demo_says_why_and_runs_a_network_of_the_zoo(tmp_path, monkeypatch, capsys):
    # Of another hash: such a wheel is not in the cache.
    monkeypatch.setattr("intloom.reading.pretrained._RELEASE", ("rapidocr-onnxruntime==1.4.4", "0" * 64))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, (tmp_path / "no-index").as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(DemoOptions, "model", "tiny")
    assert main(["demo", "--imgsz", "32", "--preset", "nano", "-o", str(tmp_path / "out")]) == ExitCode.OK
    told = capsys.readouterr().err
    assert "cannot be downloaded" in told and "intloom zoo build tiny" in told
    assert (tmp_path / "out/run/report.html").exists()
