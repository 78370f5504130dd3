"""A linear Resize becomes a transposed convolution: equal in float, and on the accelerator when quantized."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import intloom
from intloom.compiler.fold.target import Target
from intloom.quantization import QuantizeOptions, quantize
from intloom.quantization.interpolation import without_linear_resize
from tests.support.given_model import given_model


def network(factors, mode, size=(6, 5)):
    """A convolution, a linear Resize, a convolution."""
    noise = np.random.default_rng(3)
    weights = {f"w{k}": noise.normal(0, 0.2, shape) for k, shape in enumerate(((8, 3, 3, 3), (4, 8, 3, 3)))}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="first", pads=[1] * 4),
        helper.make_node(
            "Resize", ["a", "", "scales"], ["b"], name="up", mode="linear", coordinate_transformation_mode=mode
        ),
        helper.make_node("Conv", ["b", "w1"], ["y"], name="last", pads=[1] * 4),
    ]
    result = (1, 4, *(f * s for f, s in zip(factors, size, strict=True)))
    constants = weights | {"scales": np.array([1, 1, *factors], np.float32)}
    return given_model(nodes, {"x": (1, 3, *size)}, {"y": result}, constants)


@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
@pytest.mark.parametrize("factors", [(2, 2), (4, 2), (3, 1), (3, 4)])
def test_values_are_equal(factors, mode):
    model = onnx.shape_inference.infer_shapes(network(factors, mode))
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    assert without_linear_resize(changed)
    assert [n.op_type for n in changed.graph.node] == ["Conv", "Pad", "ConvTranspose", "Conv"]
    x = np.random.default_rng(1).normal(size=(1, 3, 6, 5)).astype(np.float32)
    results = [ort.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0] for m in (model, changed)]
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)


@pytest.mark.parametrize(("factors", "mode"), [((2, 2), "align_corners"), ((8, 8), "half_pixel")])
def test_others_stay(factors, mode):
    model = onnx.shape_inference.infer_shapes(network(factors, mode))
    assert not without_linear_resize(model)


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric"])
def test_the_accelerator_interpolates(mode, tmp_path):
    onnx.save(network((2, 2), mode, (16, 12)), tmp_path / "f.onnx")
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", options=QuantizeOptions(samples=2))
    program = intloom.compile(tmp_path / "q.onnx", "small")
    folded = program.bundle.need_model("the assignment")
    targets = {a.op: a.target for a in folded.assignments}
    assert len(folded.regions) == 1
    assert targets["ConvTranspose"] is Target.ARRAY
    assert targets["Pad"] is Target.VECTOR
    session = intloom.Session(program, backend="isa", check=True)
    session.run(None, {"x": np.random.default_rng(5).random((1, 3, 16, 12), np.float32)})
    assert session.last is not None
    assert session.last.record["mismatches"] == 0
