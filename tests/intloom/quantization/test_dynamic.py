"""Dynamically quantized models: compile names the command, and quantize keeps their weights."""

import logging

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType, quantize_dynamic

import intloom
from intloom.cli import main
from intloom.common.errors import ExitCode, UnsupportedError
from intloom.compiler.refusals import Refusal
from intloom.preprocess import preprocess
from intloom.quantization import QuantizeOptions, quantize
from intloom.quantization.dynamic import float_model
from tests.intloom.quantization.test_old_models import classifier
from tests.support.given_model import given_model


def dynamic(folder, **options):
    onnx.save(classifier(13, 7), folder / "float.onnx")
    logging.disable(logging.WARNING)
    try:
        operators = ["Conv", "MatMul", "Gemm"]
        # As exported for inference: with the BatchNormalization folded.
        prepared = preprocess(folder / "float.onnx", cache=folder / "cache").path
        quantize_dynamic(prepared, folder / "dyn.onnx", op_types_to_quantize=operators, **options)
    finally:
        logging.disable(logging.NOTSET)
    return folder / "dyn.onnx"


def integers(model, operators):
    """Weights of the operators, as sorted bytes: layouts may differ."""
    stored = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    made = {o: n for n in model.graph.node for o in n.output}
    found = []
    for node in model.graph.node:
        if node.op_type in operators:
            name = node.input[1]
            found.append(stored[name if name in stored else made[name].input[0]])
    return [np.sort(w.ravel()) for w in found]


@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_are_kept(tmp_path, per_channel):
    source = dynamic(tmp_path, weight_type=QuantType.QInt8, per_channel=per_channel)
    options = QuantizeOptions(samples=2)
    done = quantize(source, tmp_path / "q.onnx", options=options, cache=tmp_path / "cache")
    made = onnx.load(done.path)
    assert not {"ConvInteger", "DynamicQuantizeLinear", "MatMulInteger"} & {n.op_type for n in made.graph.node}
    theirs = integers(onnx.load(source), ("ConvInteger", "MatMulInteger"))
    ours = integers(made, ("Conv", "Gemm", "MatMul"))
    assert len(ours) == len(theirs) == 3
    # With per_channel, onnxruntime writes a scale per channel for MatMulInteger only: Convs get more scales here.
    for got, wanted in zip(ours[2 * per_channel :], theirs[2 * per_channel :], strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert main(["compile", str(done.path), "-o", str(tmp_path / "q.loom"), "-q"]) == 0


def test_compile_names_the_command(tmp_path, capsys):
    source = dynamic(tmp_path)
    assert main(["compile", str(source), "-o", str(tmp_path / "d.loom"), "-q"]) == ExitCode.UNSUPPORTED
    wanted = f"first run intloom quantize {source} --calibration IMAGES -o QUANTIZED.onnx"
    assert wanted in capsys.readouterr().err


def test_a_bias_may_be_added_to_the_integers(tmp_path):
    """Old quantizers divide the bias by the product of scales, round it, and add it before the Cast."""
    source = dynamic(tmp_path, weight_type=QuantType.QInt8)
    model = onnx.load(source)
    graph, stored = model.graph, {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    makers = {n.output[0]: n for n in graph.node}
    sums = next(n.output[0] for n in graph.node if n.op_type == "ConvInteger")
    cast = next(n for n in graph.node if sums in n.input)
    product = next(n for n in graph.node if cast.output[0] in n.input)
    added = next(n for n in graph.node if product.output[0] in n.input)
    bias = next(v for v in added.input if v != product.output[0])
    bias = makers[bias].input[0] if bias in makers else bias
    scale = next(v for v in product.input if v != cast.output[0])
    wanted = stored[bias].ravel()
    chain = [
        helper.make_node("Div", [bias, scale], ["b/divided"]),
        helper.make_node("Floor", ["b/divided"], ["b/floor"]),
        helper.make_node("Cast", ["b/floor"], ["b/integers"], to=onnx.TensorProto.INT32),
        helper.make_node("Add", [cast.input[0], "b/integers"], ["b/sum"]),
    ]
    cast.input[0] = "b/sum"
    product.output[0] = added.output[0]
    graph.node.remove(added)
    for node in chain:
        graph.node.insert(list(graph.node).index(cast), node)
    onnx.save(model, source)
    floats, _ = float_model(model)
    biases = [numpy_helper.to_array(t) for t in floats.graph.initializer if t.name.endswith("/bias")]
    assert any(b.size == wanted.size and np.array_equal(b, wanted) for b in biases)
    done = quantize(source, tmp_path / "q.onnx", options=QuantizeOptions(samples=2))
    assert main(["compile", str(done.path), "-o", str(tmp_path / "q.loom"), "-q"]) == 0


def test_an_lstm_with_int8_weights_becomes_one_of_floats(tmp_path):
    """onnxruntime writes DynamicQuantizeLSTM of its own domain; the float form runs on the host."""
    rng = np.random.default_rng(0)
    weights = {
        "c": rng.normal(size=(8, 3, 3, 3)) / 5,
        "w": rng.normal(size=(2, 16, 8 * 4)) / 5,
        "r": rng.normal(size=(2, 16, 4)) / 5,
        "b": rng.normal(size=(2, 32)) / 5,
    }
    integers = {"form": np.array([6, 1, -1]), "one": 1, "two": np.array([2]), "hidden": np.array([4])}
    nodes = [
        helper.make_node("Conv", ["x", "c"], ["y"], name="conv", pads=[1] * 4),
        helper.make_node("Transpose", ["y"], ["t"], perm=[3, 0, 1, 2]),
        helper.make_node("Reshape", ["t", "form"], ["steps"]),
        # A state of computed size, as PyTorch exports it.
        helper.make_node("Shape", ["steps"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch"], ["batches"], axes=[0]),
        helper.make_node("Concat", ["two", "batches", "hidden"], ["state"], axis=0),
        helper.make_node("ConstantOfShape", ["state"], ["h"]),
        helper.make_node("LSTM", ["steps", "w", "r", "b", "", "h", "h"], ["l"], "lstm", hidden_size=4,
                         direction="bidirectional"),
        helper.make_node("Transpose", ["l"], ["out"], perm=[0, 2, 1, 3]),
    ]  # fmt: skip
    model = given_model(nodes, {"x": (1, 3, 4, 6)}, {"out": None}, weights | integers, opset=12)
    onnx.save(model, tmp_path / "f.onnx")
    quantize_dynamic(tmp_path / "f.onnx", tmp_path / "dyn.onnx", op_types_to_quantize=["Conv", "LSTM"])
    made, _ = float_model(onnx.load(tmp_path / "dyn.onnx"))
    (cell,) = [n for n in made.graph.node if n.op_type == "LSTM"]
    found = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    for name, wanted in (("w", cell.input[1]), ("r", cell.input[2])):
        steps = np.abs(weights[name]).max((1, 2), keepdims=True) / 127
        assert (np.abs(found[wanted] - weights[name]) <= steps).all()
    assert main(["inspect", str(tmp_path / "dyn.onnx")]) == ExitCode.UNSUPPORTED
    done = quantize(tmp_path / "dyn.onnx", tmp_path / "q.onnx", options=QuantizeOptions(samples=2))
    assignments = intloom.compile(done.path, "base").bundle.need_model("assignments").assignments
    assert [a.row for a in assignments if a.op == "LSTM"] == [Refusal.RECURRENT.number]


def test_the_table_of_a_position_bias_becomes_float(tmp_path):
    """onnxruntime also stores the table of a Gather as integers, with a DequantizeLinear after the Transpose."""
    table = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    stored = {"table": table, "rows": np.array([4, 0, 2, 1]), "axes": np.array([0])}
    nodes = [
        helper.make_node("Gather", ["table", "rows"], ["read"], name="read"),
        helper.make_node("Transpose", ["read"], ["turned"], name="turned", perm=[1, 0]),
        helper.make_node("Unsqueeze", ["turned", "axes"], ["bias"], name="bias"),
        helper.make_node("Add", ["x", "bias"], ["y"], name="y"),
    ]
    onnx.save(given_model(nodes, {"x": (1, 3, 4)}, {"y": (1, 3, 4)}, stored), tmp_path / "f.onnx")
    quantize_dynamic(tmp_path / "f.onnx", tmp_path / "d.onnx", weight_type=QuantType.QUInt8)
    source = onnx.load(tmp_path / "d.onnx")
    assert "DequantizeLinear" in {n.op_type for n in source.graph.node}
    made, _ = float_model(source)
    assert "DequantizeLinear" not in {n.op_type for n in made.graph.node}
    x = {"x": np.zeros((1, 3, 4), np.float32)}
    files = (tmp_path / "d.onnx").read_bytes(), made.SerializeToString()
    results = [InferenceSession(file).run(None, x)[0] for file in files]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("per_channel", [False, True])
def test_products_that_onnxruntime_fused_keep_their_weights(tmp_path, capsys, per_channel):
    """A file that onnxruntime optimized has DynamicQuantizeMatMul, or MatMulIntegerToFloat for operands in common."""
    rng = np.random.default_rng(0)
    sizes = {"w": (16, 32), "b": 32, "v": (32, 8), "u": (32, 8)}
    stored = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="one"),
        helper.make_node("Add", ["m", "b"], ["a"], name="bias"),
        helper.make_node("Relu", ["a"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "v"], ["p"], name="two"),
        helper.make_node("MatMul", ["r", "u"], ["q"], name="three"),
        helper.make_node("Add", ["p", "q"], ["y"], name="sum"),
    ]
    onnx.save(given_model(nodes, {"x": (1, 5, 16)}, {"y": (1, 5, 8)}, stored), tmp_path / "f.onnx")
    chains, fused = tmp_path / "chains.onnx", tmp_path / "fused.onnx"
    quantize_dynamic(tmp_path / "f.onnx", chains, weight_type=QuantType.QInt8, per_channel=per_channel)
    session = SessionOptions()
    session.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    session.optimized_model_filepath = str(fused)
    InferenceSession(chains, session)
    kinds = {n.op_type for n in onnx.load(fused).graph.node}
    assert kinds >= {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"} and "MatMulInteger" not in kinds
    assert main(["compile", str(fused), "-o", str(tmp_path / "d.loom"), "-q"]) == ExitCode.UNSUPPORTED
    assert f"(row {Refusal.DYNAMIC.number} of " in capsys.readouterr().err
    x = {"x": rng.normal(size=(1, 5, 16)).astype(np.float32)}
    floats = [float_model(onnx.load(path)) for path in (chains, fused)]
    assert [several for _, several in floats] == [per_channel] * 2
    one, two = (InferenceSession(made.SerializeToString()).run(None, x)[0] for made, _ in floats)
    np.testing.assert_array_equal(one, two)
    computed = onnx.load(fused)
    del computed.graph.initializer[:]
    with pytest.raises(UnsupportedError, match="must have constant weights: quantize the float") as caught:
        float_model(computed)
    assert caught.value.row == Refusal.DYNAMIC.number
    done = quantize(fused, tmp_path / "q.onnx", options=QuantizeOptions(samples=2))
    kept = integers(onnx.load(chains), ("MatMulInteger",))
    made = integers(onnx.load(done.path), ("Gemm", "MatMul"))
    assert sorted(w.tobytes() for w in made) == sorted(w.tobytes() for w in kept)
    assert main(["compile", str(done.path), "-o", str(tmp_path / "q.loom"), "-q"]) == 0
