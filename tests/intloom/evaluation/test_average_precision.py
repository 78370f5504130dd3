"""Average precision: equal to pycocotools on a random case, and right on cases that can be computed by hand."""

import json

import numpy as np
import pytest

from intloom.evaluation.average_precision import assign, average_precisions, keypoint_similarity, mask_similarity, top_k
from intloom.evaluation.dataset import Dataset, Sample, Task, Truth, load_dataset
from intloom.evaluation.decode import Found
from intloom.evaluation.scoring import score_objects
from tests.intloom.evaluation.coco_case import POINTS, PYCOCOTOOLS, random_case


def found_in(image, detections):
    rows = [d for d in detections if d["image_id"] == image["id"]]
    boxes = np.array([d["bbox"] for d in rows]).reshape(-1, 4)
    return Found(
        boxes=np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1),
        scores=np.array([d["score"] for d in rows]),
        labels=np.array([d["category_id"] - 1 for d in rows], int),
        keypoints=np.array([d["keypoints"] for d in rows]).reshape(-1, POINTS, 3),
        masks=np.zeros((len(rows), 0, 0), bool),
    )


@pytest.mark.parametrize("task", [Task.DETECT, Task.POSE])
def test_figures_equal_those_of_pycocotools(task, tmp_path):
    annotations, detections = random_case()
    (tmp_path / "annotations.json").write_text(json.dumps(annotations))
    found = [found_in(image, detections) for image in annotations["images"]]
    score = score_objects(found, load_dataset(tmp_path, task), task).score
    whole, at_half, classes = PYCOCOTOOLS[str(task)]
    assert score.figures == pytest.approx({"mAP50-95": whole, "mAP50": at_half}, abs=1e-12)
    assert [row["mAP50-95"] for row in score.classes.values()] == pytest.approx(classes, abs=1e-12)


def matches(similarity, scores, ignore=None):
    table = np.array(similarity, float)
    nothing = np.zeros(table.shape[1], bool)
    return assign(table, np.array(scores, float), nothing if ignore is None else np.array(ignore), nothing, 100)


def test_precision_of_cases_computed_by_hand():
    perfect = average_precisions([matches([[1.0]], [0.9])])
    assert perfect == pytest.approx(np.ones(10))
    # Similarity 0.72 counts at 0.5, 0.55, 0.6, 0.65 and 0.7.
    assert average_precisions([matches([[0.72]], [0.9])]) == pytest.approx([1.0] * 5 + [0.0] * 5)
    # A wrong detection with a better score halves the precision at every recall.
    assert average_precisions([matches([[0.0], [1.0]], [0.9, 0.8])]) == pytest.approx(np.full(10, 0.5))
    # The second detection of an object is wrong, but comes after all objects are found.
    assert average_precisions([matches([[1.0], [1.0]], [0.9, 0.8])]) == pytest.approx(np.ones(10))
    # One of two objects is found: 51 of 101 recall levels.
    assert average_precisions([matches([[1.0, 0.0]], [0.9])]) == pytest.approx(np.full(10, 51 / 101))
    # Of two truths that are as similar the first detection takes the last one, as in pycocotools, and leaves the other.
    assert average_precisions([matches([[1.0, 1.0], [1.0, 0.0]], [0.9, 0.8])]) == pytest.approx(np.ones(10))
    assert np.isnan(average_precisions([matches([[1.0]], [0.9], [True])])).all()
    assert average_precisions([matches(np.zeros((0, 1)), [])]) == pytest.approx(np.zeros(10))


def test_a_crowd_takes_any_number_of_detections():
    """They count neither as found nor as wrong; an object that does not count takes one."""
    table, scores, yes, no = np.ones((3, 1)), np.array([0.9, 0.8, 0.7]), np.array([True]), np.array([False])
    crowd = assign(table, scores, yes, yes, 100)
    assert crowd.ignored.all() and not crowd.hit.any()
    other = assign(table, scores, yes, no, 100)
    assert other.ignored.tolist() == [[True, False, False]] * 10
    assert not other.hit.any()


def test_masks_count_pixels():
    a = np.zeros((1, 4, 4), bool)
    b = a.copy()
    a[0, :2], b[0, 1:3] = True, True
    assert mask_similarity(a, b, np.array([False]))[0, 0] == pytest.approx(4 / 12)
    assert mask_similarity(a, b, np.array([True]))[0, 0] == pytest.approx(4 / 8)


def test_segments_are_scored_by_their_masks(tmp_path):
    square = Truth(0, (2, 2, 7, 7), 25, polygons=((2, 2, 7, 2, 7, 7, 2, 7),))
    data = Dataset(("square",), (Sample(tmp_path / "x.png", (square,)),))
    masks = square.mask(10, 10)[None]
    found = Found(np.zeros((1, 4)), np.array([0.9]), np.array([0]), np.zeros((1, 0, 3)), masks)
    assert score_objects([found], data, Task.SEGMENT).score.figures["mAP50-95"] == pytest.approx(1.0)
    assert score_objects([found], data, Task.DETECT).score.figures["mAP50-95"] == 0.0


@pytest.mark.parametrize(("task", "most"), [(Task.DETECT, 100), (Task.POSE, 20)])
def test_only_so_many_detections_of_an_image_count(task, most, tmp_path):
    """The right one is the last that counts, or the first that does not."""
    points = np.full((POINTS, 3), 4.0)
    data = Dataset(("square",), (Sample(tmp_path / "x.png", (Truth(0, (2, 2, 7, 7), 25, keypoints=points),)),))
    for before in (most - 1, most):
        boxes, places = np.full((before + 1, 4), 90.0), np.full((before + 1, POINTS, 3), 90.0)
        boxes[-1], places[-1] = (2, 2, 7, 7), points
        scores, labels = np.linspace(0.9, 0.1, before + 1), np.zeros(before + 1, int)
        found = Found(boxes, scores, labels, places, np.zeros((before + 1, 0, 0), bool))
        assert (score_objects([found], data, task).score.figures["mAP50"] > 0) == (before < most)


def test_an_object_without_points_is_its_box_enlarged_by_its_size_on_each_side():
    box, unseen = np.array([[10.0, 20.0, 30.0, 60.0]]), np.zeros((1, POINTS, 3))
    for x, y, inside in ((-10, -20, True), (50, 100, True), (-11, 0, False), (51, 0, False), (0, 101, False)):
        found = np.tile(np.array([x, y, 1.0]), (1, POINTS, 1))
        similarity = keypoint_similarity(found, unseen, box, np.array([800.0]), np.full(POINTS, 0.05))
        assert (similarity[0, 0] == 1.0) == inside


def test_top_k():
    scores = np.eye(7)[[0, 1, 2]] + np.arange(7) * 1e-3
    score = top_k(scores, np.array([0, 6, 1]), [str(i) for i in range(7)])
    assert score.figures == pytest.approx({"top-1": 1 / 3, "top-5": 2 / 3})
    assert score.classes["6"] == {"top-1": 0.0, "top-5": 1.0}
    assert "2" not in score.classes
