"""The float tail begins after the last trained layer."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from intloom.quantization.tail import float_tail
from tests.support.given_model import given_model


def detector(weights_as: str):
    """Two heads with a Softmax over their joined scores; the second head follows a later convolution."""
    array = np.random.default_rng(0).normal(size=(4, 4, 1, 1)).astype(np.float32)
    nodes, stored = [], {"w": array} if weights_as == "initializer" else {}
    if not stored:
        nodes.append(helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array), name="constant"))
        nodes.append(helper.make_node("Identity", ["c"], ["w"], name="copy"))
    if weights_as == "constant":
        nodes[-1:] = []
        nodes[0].output[0] = "w"
    for name, source in (("a", "x"), ("b", "a"), ("head1", "a"), ("head2", "b")):
        nodes.append(helper.make_node("Conv", [source, "w"], [name], name=name))
    nodes.append(helper.make_node("Concat", ["head1", "head2"], ["all"], axis=2, name="join"))
    nodes.append(helper.make_node("Softmax", ["all"], ["scores"], axis=1, name="softmax"))
    return given_model(nodes, {"x": (1, 4, 8, 8)}, {"scores": None}, stored).graph


@pytest.mark.parametrize("weights_as", ["initializer", "constant", "computed"])
def test_no_convolution_is_in_the_tail(weights_as):
    assert float_tail(detector(weights_as)) == ["join", "softmax"]


def head_of(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    """A convolution, a Split into four distances and one logit, and `nodes`, the last of which is the output."""
    stored = {"w": np.random.default_rng(0).normal(size=(5, 4, 1, 1)), "sizes": np.array([4, 1])}
    first = [
        helper.make_node("Conv", ["x", "w"], ["rows"], name="conv"),
        helper.make_node("Split", ["rows", "sizes"], ["distances", "logits"], axis=1, name="split"),
        helper.make_node("Sigmoid", ["logits"], ["scores"], name="sigmoid"),
    ]
    return given_model([*first, *nodes], {"x": (1, 4, 8, 8)}, {nodes[-1].output[0]: None}, stored).graph


def test_boxes_joined_with_scores_are_the_tail_without_a_softmax() -> None:
    """YOLO26 decodes four distances without a distribution: a common scale of pixels and scores rounds scores to 0."""
    nodes = [
        helper.make_node("Mul", ["distances", "distances"], ["boxes"], name="boxes"),
        helper.make_node("Concat", ["boxes", "scores"], ["all"], axis=1, name="join"),
    ]
    assert float_tail(head_of(nodes)) == ["split", "sigmoid", "boxes", "join"]


def test_a_selection_of_the_best_is_the_tail() -> None:
    nodes = [helper.make_node("TopK", ["scores", "k"], ["best", "at"], axis=1, name="best")]
    assert float_tail(head_of(nodes)) == ["split", "sigmoid", "best"]


def test_a_concat_of_scores_alone_is_quantized() -> None:
    nodes = [helper.make_node("Concat", ["scores", "scores"], ["all"], axis=1, name="join")]
    assert float_tail(head_of(nodes)) == []


def test_a_sigmoid_that_a_convolution_follows_is_quantized() -> None:
    """The Sigmoid of SiLU or of a gate, and a Concat with it, lie before the last convolution."""
    nodes = [
        helper.make_node("Concat", ["distances", "scores"], ["all"], axis=1, name="join"),
        helper.make_node("Slice", ["all"], ["four"], name="slice"),
        helper.make_node("Conv", ["four", "w"], ["y"], name="last"),
    ]
    assert float_tail(head_of(nodes)) == []
