"""Labeled images in each layout, and clear errors for anything else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from intloom.common.errors import FileFormatError
from intloom.evaluation.dataset import Task, load_dataset


def picture(path, size=(40, 20)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


def yolo(folder, line):
    picture(folder / "images/a.png")
    (folder / "labels").mkdir()
    (folder / "labels/a.txt").write_text(line + "\n")


def test_yolo_boxes_are_pixels(tmp_path):
    yolo(tmp_path, "1 0.5 0.5 0.5 0.5")
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    picture(tmp_path / "images/b.png")
    data = load_dataset(tmp_path, Task.DETECT)
    assert data.classes == ("cat", "dog")
    assert [len(s.truths) for s in data.samples] == [1, 0]
    assert data.samples[0].truths[0].box == (10, 5, 30, 15)
    assert data.samples[0].truths[0].area == 200


def test_yolo_polygons_and_key_points(tmp_path):
    yolo(tmp_path / "s", "0 0.25 0.5 0.75 0.5 0.75 1")
    truth = load_dataset(tmp_path / "s", Task.SEGMENT).samples[0].truths[0]
    assert truth.box == (10, 10, 30, 20)
    assert 80 < truth.mask(40, 20).sum() < 140
    yolo(tmp_path / "p", "0 0.5 0.5 1 1 0.5 0.25 2 0 0 0")
    (point, hidden) = load_dataset(tmp_path / "p", Task.POSE).samples[0].truths[0].keypoints
    assert point.tolist() == [20, 5, 2] and hidden[2] == 0


def test_coco_identifiers_become_class_numbers(tmp_path):
    content = {
        "images": [{"id": 9, "file_name": "a.png"}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}],
        "annotations": [{"image_id": 9, "category_id": 18, "bbox": [1, 2, 3, 4], "iscrowd": 1}],
    }
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/val.json").write_text(json.dumps(content))
    data = load_dataset(tmp_path, Task.DETECT)
    assert data.classes == ("car", "dog")
    (truth,) = data.samples[0].truths
    assert (truth.label, truth.box, truth.crowd, truth.area) == (1, (1, 2, 4, 6), True, 12)
    content["annotations"][0]["segmentation"] = {"counts": [1, 2], "size": [3, 1]}
    (tmp_path / "annotations/val.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match="polygons"):
        load_dataset(tmp_path, Task.SEGMENT)


def test_coco_objects_have_all_their_polygons_points_and_areas(tmp_path):
    """The area is that of the annotation, which is not that of the box; polygons of one object are one mask."""
    entry = {"image_id": 9, "category_id": 3, "bbox": [2, 4, 30, 10], "area": 77.5, "keypoints": [5, 6, 2, 0, 0, 0]}
    entry["segmentation"] = [[2, 4, 8, 4, 8, 10, 2, 10], [20, 4, 30, 4, 30, 14, 20, 14]]
    content = {
        "images": [{"id": 9, "file_name": "a.png"}],
        "categories": [{"id": 3, "name": "car"}],
        "annotations": [entry],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    (truth,) = load_dataset(tmp_path, Task.SEGMENT).samples[0].truths
    assert (truth.area, len(truth.polygons), truth.crowd) == (77.5, 2, False)
    mask = truth.mask(40, 20)
    assert mask.shape == (20, 40)
    assert mask[5, 3] and mask[8, 25] and not mask[5, 12] and not mask[16].any()
    (truth,) = load_dataset(tmp_path, Task.POSE).samples[0].truths
    assert truth.keypoints.tolist() == [[5, 6, 2], [0, 0, 0]]
    whole = np.eye(20, 40, dtype=bool)
    np.testing.assert_array_equal(replace(truth, pixels=whole).mask(40, 20), whole)


def test_class_folders(tmp_path):
    for name in ("b/1.png", "a/1.png", "a/2.png"):
        picture(tmp_path / name)
    data = load_dataset(tmp_path, Task.CLASSIFY)
    assert data.classes == ("a", "b")
    assert [s.truths[0].label for s in data.samples] == [0, 0, 1]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("annotations.json", "[1", "must be COCO annotations"),
        ("annotations.json", '{"images": []}', "KeyError 'categories'"),
        ("labels/a.txt", "0 0.1", "labels/a.txt:1 must be a class and numbers"),
        ("labels/a.txt", "cat 0 0 1 1", "labels/a.txt:1 must be a class and numbers"),
    ],
)
def test_other_content_is_refused(tmp_path, file, text, message):
    picture(tmp_path / "images/a.png")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    with pytest.raises(FileFormatError, match=message):
        load_dataset(tmp_path, Task.DETECT)


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="must be a folder"):
        load_dataset(tmp_path / "none", Task.DETECT)
    (tmp_path / "a").mkdir()
    for task in Task:
        with pytest.raises(FileFormatError, match="must hold annotations.json .* found none"):
            load_dataset(tmp_path, task)


@pytest.mark.parametrize("task", list(Task))
def test_pictures_alone_have_no_labels(tmp_path, task):
    picture(tmp_path / "images/a.png")
    for folder in (tmp_path, tmp_path / "images"):
        data = load_dataset(folder, task)
        assert not data.labeled and [s.path.name for s in data.samples] == ["a.png"]
