"""The choice of the calibration method, and functions of several operators without pairs inside."""

import numpy as np
import onnx
import pytest
from onnx import helper

from intloom.compiler.fold.graph_builder import FoldOptions
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.reference import open_session
from intloom.flow.compiling import compile_model
from intloom.hw.spec.params import preset
from intloom.quantization import Calibration, QuantizeOptions, quantize
from intloom.quantization.choice import agreement, hold_back
from intloom.quantization.elementwise import inner_nodes, normalization_nodes
from intloom.quantization.samples import Samples
from tests.support.given_model import given_model


def hard_swish(reader_of_the_middle=False):
    """A convolution, x * clip(x + 3, 0, 6) / 6 * 1.5 - 0.2, and a convolution."""
    rng = np.random.default_rng(0)
    arrays = {"w": rng.normal(0, 2, (8, 3, 3, 3)), "v": rng.normal(0, 1, (4, 8, 1, 1))}
    arrays |= {"three": 3.0, "zero": 0.0, "six": 6.0, "gain": 1.5, "shift": -0.2}
    steps = [("Conv", "x w", "c"), ("Add", "c three", "a"), ("Clip", "a zero six", "b"), ("Mul", "c b", "m")]
    steps += [("Div", "m six", "d"), ("Mul", "gain d", "g"), ("Add", "g shift", "s"), ("Conv", "s v", "y")]
    nodes = [helper.make_node(op, read.split(), [made], made) for op, read, made in steps]
    ends = {"y": 4, "m": 8} if reader_of_the_middle else {"y": 4}
    outputs = {name: (1, n, 10, 10) for name, n in ends.items()}
    return given_model(nodes, {"x": (1, 3, 12, 12)}, outputs, arrays, opset=13)


def test_a_function_of_several_operators_is_quantized_at_its_ends_only(tmp_path):
    assert inner_nodes(hard_swish().graph) == ["a", "b", "m", "d", "g", "s"]
    assert inner_nodes(hard_swish(reader_of_the_middle=True).graph) == [], "an output of the model is quantized"
    onnx.save(hard_swish(), tmp_path / "f.onnx")
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    kinds = [n.op_type for n in onnx.load(tmp_path / "q.onnx").graph.node]
    assert kinds.count("QuantizeLinear") == 4, "input, both convolutions and the function's result"
    compiled = compile_model(tmp_path / "q.onnx", preset("nano"))
    assert len(compiled.programs) == 1 and all(a.target.value != "host" for a in compiled.folded.assignments)


def layer_norm(reader_of_the_middle=False):
    """A product, a layer normalization of its rows as a chain of operators, and a product."""
    rng = np.random.default_rng(0)
    arrays = {"w": rng.normal(0, 1, (6, 16)), "gamma": rng.uniform(0.5, 2, 16), "beta": rng.normal(0, 1, 16)}
    arrays |= {"two": 2.0, "epsilon": 1e-5, "v": rng.normal(0, 1, (16, 4))}
    steps = [("MatMul", "x w", "c"), ("ReduceMean", "c", "mean"), ("Sub", "c mean", "d"), ("Pow", "d two", "square")]
    steps += [("ReduceMean", "square", "var"), ("Add", "var epsilon", "sum"), ("Sqrt", "sum", "root")]
    steps += [("Div", "d root", "n"), ("Mul", "n gamma", "g"), ("Add", "g beta", "b"), ("MatMul", "b v", "y")]
    axes = {"axes": [-1]}
    nodes = [helper.make_node(op, r.split(), [o], o, **(axes if op == "ReduceMean" else {})) for op, r, o in steps]
    ends = {"y": 4, "d": 16} if reader_of_the_middle else {"y": 4}
    return given_model(nodes, {"x": (1, 10, 6)}, {name: (1, 10, n) for name, n in ends.items()}, arrays, opset=13)


def test_a_normalization_is_quantized_at_its_ends_only(tmp_path):
    chain = {"mean", "d", "square", "var", "sum", "root", "n", "g", "b"}
    model = layer_norm()
    assert set(normalization_nodes(model)) == chain and model == layer_norm(), "the model stays as it is"
    assert normalization_nodes(layer_norm(reader_of_the_middle=True)) == [], "an output of the model is quantized"
    unknown = layer_norm()
    unknown.graph.node[0].op_type = "NoOperator"
    assert normalization_nodes(unknown) == [], "the importer refuses the model"
    onnx.save(model, tmp_path / "f.onnx")
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    folded = fold_model(load_model(tmp_path / "q.onnx"), FoldOptions(norm=True))
    assert [type(n).__name__ for n in folded.graph.nodes].count("Norm") == 1
    assert all(a.target.value != "host" for a in folded.assignments)


def test_held_back_samples_do_not_calibrate():
    samples = Samples([lambda i=i: {"x": np.array(i)} for i in range(40)])
    used, held_back = ({int(s["x"]) for s in part} for part in hold_back(samples))
    assert len(used) == 32 and len(held_back) == 8 and not used & held_back
    few = hold_back(samples[:3])
    assert [len(part) for part in few] == [3, 3]


def test_agreement_counts_each_row_of_an_output():
    def model(factors):
        scale = np.array(factors, np.float32).reshape(1, 2, 1)
        product = helper.make_node("Mul", ["x", "k"], ["y"])
        return given_model([product], {"x": (1, 2, 5)}, {"y": (1, 2, 5)}, {"k": scale})

    samples = Samples([lambda: {"x": np.ones((1, 2, 5), np.float32)}])
    # The second row is 1000 times smaller; its error is as large as its value, so half of its power is noise.
    assert agreement(model([1000, 1]), model([1000, 1]), samples) == pytest.approx(1.0)
    assert agreement(model([1000, 1]), model([1000, 2]), samples) == pytest.approx(0.75)


def test_the_method_that_agrees_with_float_is_chosen(tmp_path):
    onnx.save(hard_swish(), tmp_path / "f.onnx")
    images = np.random.default_rng(0).random((16, 3, 12, 12), np.float32)
    images[0] *= 40
    np.save(tmp_path / "c.npy", images)
    done = quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npy")
    assert done.options.calibration is Calibration.MSE
    assert set(done.agreement) == {Calibration.MINMAX, Calibration.MSE}
    assert done.agreement[Calibration.MSE] > done.agreement[Calibration.MINMAX] + 0.01
    given = quantize(
        tmp_path / "f.onnx", tmp_path / "m.onnx", tmp_path / "c.npy", QuantizeOptions(calibration="minmax")
    )
    assert given.agreement == {}
    real, chosen, wide = (
        open_session((tmp_path / n).read_bytes()).run(None, {"x": images[1:2]})[0]
        for n in ("f.onnx", "q.onnx", "m.onnx")
    )
    assert np.square(chosen - real).mean() < np.square(wide - real).mean() / 2
