"""Custom integer operations: registration, shapes, folding, lowering, and the example script."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.custom import CustomOp, register, unregister
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.ir import Conv, Custom
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph
from tests.support.given_model import given_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_op.py"


def halve(operands: list, tensors: list, result: object, attributes: dict) -> np.ndarray:
    """Every second pixel."""
    step = attributes["step"]
    return operands[0][:, :, ::step, ::step]


@pytest.fixture
def thinning() -> Iterator[CustomOp]:
    def shape(shapes: list, attributes: dict) -> tuple:
        step = attributes["step"]
        return (*shapes[0][:2], -(-shapes[0][2] // step), -(-shapes[0][3] // step))

    yield register(CustomOp("test", "Thin", halve, shape))
    unregister("test", "Thin")


def model() -> onnx.ModelProto:
    """The custom operation, then a convolution, whose shape depends on it."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("Thin", ["a"], ["b"], name="thin", domain="test", step=2),
        helper.make_node("DequantizeLinear", ["b", "s", "z"], ["c"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["v"]),
        helper.make_node("Conv", ["c", "v"], ["d"], name="conv"),
        helper.make_node("QuantizeLinear", ["d", "s", "z"], ["e"]),
        helper.make_node("DequantizeLinear", ["e", "s", "z"], ["y"]),
    ]
    stored = {"s": np.float32(0.5), "z": np.uint8(7), "w": np.ones((1, 2, 1, 1), np.int8)}
    return given_model(nodes, {"x": (1, 2, 5, 6)}, {"y": None}, stored)


def test_shape_and_meaning_are_the_users(thinning: CustomOp) -> None:
    graph = fold_model(from_proto(model(), name="m")).graph
    assert [type(n) for n in graph.nodes] == [Custom, Conv]
    assert graph.tensors[graph.outputs[0]].shape == (1, 1, 3, 3)
    x = np.arange(60, dtype=np.int8).reshape(1, 2, 5, 6)
    made = run_graph(graph, {graph.inputs[0]: x}, match=RoundingMode.ORT, keep=True)
    np.testing.assert_array_equal(made["b"], x[:, :, ::2, ::2])


def test_an_unregistered_operation_stays_outside() -> None:
    folded = fold_model(from_proto(model(), name="m"))
    with pytest.raises(UnsupportedError):
        _ = folded.graph


def test_names_are_taken_once(thinning: CustomOp) -> None:
    with pytest.raises(UsageError, match="already registered"):
        register(thinning)
    with pytest.raises(UsageError, match="must be in your own domain"):
        register(CustomOp("", "Conv", halve))


@pytest.mark.parametrize("arguments", [["--no-rtl"], pytest.param([], marks=pytest.mark.slow)])
def test_the_example_runs(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), *arguments])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.count("equal to the semantics in numpy") == (2 if arguments else 3)
