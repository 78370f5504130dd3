"""Float models of old opsets and IR versions, and with open dimensions."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom import Session
from intloom.cli import main
from intloom.common.errors import ExitCode, UnsupportedError
from intloom.compiler.refusals import Refusal
from intloom.preprocess import Optimizer
from intloom.quantization import QuantizeOptions, quantize

SHAPE = (1, 3, 16, 16)


class Builder:
    """A float model in the notation of its opset."""

    def __init__(self, opset):
        self.opset, self.nodes, self.stored = opset, [], {}
        self.noise = np.random.default_rng(0)

    def weights(self, *shape):
        return self.constant(self.noise.normal(size=shape) / 5)

    def constant(self, array):
        name = f"c{len(self.stored)}"
        self.stored[name] = np.asarray(array, None if np.asarray(array).dtype == np.int64 else np.float32)
        return name

    def node(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def clip(self, x):
        return self.node("Clip", x, min=0.0, max=6.0) if self.opset < 11 else self.relu6(x)

    def relu6(self, x):
        return self.node("Clip", x, self.constant(0.0), self.constant(6.0))

    def enlarge(self, x):
        if self.opset < 9:
            return self.node("Upsample", x, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        if self.opset < 11:
            return self.node("Upsample" if self.opset < 10 else "Resize", x, scales, mode="nearest")
        roi = self.constant(np.zeros(0, np.float32))
        modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.node("Resize", x, roi, scales, mode="nearest", **modes)

    def pad(self, x):
        pads = [0, 0, 1, 1, 0, 0, 1, 1]
        return self.node("Pad", x, pads=pads) if self.opset < 11 else self.node("Pad", x, self.constant(np.array(pads)))

    def model(self, output, ir, shape=SHAPE):
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        if ir < 4:
            kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in self.stored.items()}
            inputs += [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in self.stored.items()]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        stored = [numpy_helper.from_array(a, n) for n, a in self.stored.items()]
        graph = helper.make_graph(self.nodes, "old", inputs, outputs, stored)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)
        return onnx.shape_inference.infer_shapes(model)


def classifier(opset, ir, shape=SHAPE):
    b = Builder(opset)
    x = b.node("Conv", "x", b.weights(8, 3, 3, 3), b.weights(8), kernel_shape=[3, 3], pads=[1] * 4)
    x = b.node("BatchNormalization", x, *(b.constant(b.noise.uniform(0.5, 1, 8)) for _ in range(4)))
    x = b.enlarge(b.node("MaxPool", b.clip(x), kernel_shape=[2, 2], strides=[2, 2]))
    y = b.node("Conv", b.pad(x), b.weights(8, 8, 3, 3), kernel_shape=[3, 3])
    y = b.node("Relu", b.node("Add", y, x))
    y = b.node("Dropout", b.node("Flatten", b.node("GlobalAveragePool", y)))
    y = b.node("Gemm", y, b.weights(10, 8), b.weights(10), transB=1)
    return b.model(b.node("Softmax", y, axis=1), ir, shape)


def quantized(model, folder, **more):
    onnx.save(model, folder / "old.onnx")
    options = QuantizeOptions(samples=2)
    return quantize(folder / "old.onnx", folder / "q.onnx", options=options, cache=folder / "cache", **more)


@pytest.mark.parametrize(("opset", "ir"), [(7, 3), (8, 7), (9, 3), (10, 7), (11, 7), (12, 3)])
def test_old_opsets_are_quantized_per_channel(tmp_path, opset, ir):
    done = quantized(classifier(opset, ir), tmp_path)
    made = onnx.load(done.path)
    assert made.opset_import[0].version >= 13
    assert min(n.snr_db for n in done.noise) > 20
    scales = [t.dims[0] for t in made.graph.initializer if t.name.endswith("_scale") and t.dims]
    assert 8 in scales
    assert main(["compile", str(done.path), "-o", str(tmp_path / "q.loom"), "-q"]) == 0


def test_outputs_without_shapes_and_constants_that_are_no_inputs(tmp_path):
    """onnxruntime accepts both, and ONNX's checker neither: a shape is required, and an input before IR version 4."""
    for opset, ir in ((17, 8), (8, 3)):
        model = classifier(opset, ir)
        if ir < 4:
            del model.graph.input[1:]
        model.graph.output[0].type.tensor_type.ClearField("shape")
        assert min(n.snr_db for n in quantized(model, tmp_path).noise) > 20
        assert main(["inspect", str(tmp_path / "old.onnx"), "-q"]) == ExitCode.UNSUPPORTED  # the row of float models


def test_nodes_without_names_are_quantized_before_a_float_tail(tmp_path):
    """The quantizer leaves out by name: the tail's empty name would leave out every node."""
    done = quantized(classifier(13, 7), tmp_path, optimizer=Optimizer.NONE)
    made = onnx.load(done.path)
    assert all(done.excluded)
    dequantized = {o for n in made.graph.node if n.op_type == "DequantizeLinear" for o in n.output}
    assert all(n.input[0] in dequantized for n in made.graph.node if n.op_type == "Conv")


def test_a_model_without_quantizable_operators_is_an_error(tmp_path):
    b = Builder(9)
    with pytest.raises(UnsupportedError, match="no operator that onnxruntime's quantizer supports, only Erf"):
        quantized(b.model(b.node("Erf", "x"), 7), tmp_path)
    assert not (tmp_path / "q.onnx").exists()


def test_an_operator_of_an_unknown_domain_is_a_row(tmp_path, capsys):
    b = Builder(13)
    model = b.model(b.node("Relu", b.node("Conv", "x", b.weights(4, 3, 3, 3))), 7)
    model.graph.node[-1].op_type, model.graph.node[-1].domain = "RequantShift", "PACTOps"
    model.opset_import.append(helper.make_opsetid("PACTOps", 1))
    with pytest.raises(UnsupportedError, match="does not implement PACTOps::RequantShift: replace it") as caught:
        quantized(model, tmp_path)
    assert caught.value.row == Refusal.OPERATOR.number
    assert main(["inspect", str(tmp_path / "old.onnx")]) == ExitCode.UNSUPPORTED
    printed = capsys.readouterr().err
    assert "does not implement PACTOps::RequantShift either: register it as a custom operation" in printed
    assert f"(row {Refusal.OPERATOR.number} of" in printed


def test_layers_in_branches_are_a_row(tmp_path):
    b = Builder(13)
    out = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    layer = helper.make_node("Conv", ["x", b.weights(4, 3, 3, 3)], ["inner"])
    branch = helper.make_graph([layer], "branch", [], [out])
    (positive,) = (b.node("Greater", b.node("ReduceMean", "x", keepdims=0), b.constant(0.0)),)
    value = b.node("If", positive, then_branch=branch, else_branch=branch)
    with pytest.raises(UnsupportedError, match="its branches hold the layers") as caught:
        quantized(b.model(value, 7), tmp_path)
    assert caught.value.row == Refusal.CONTROL_FLOW.number


def test_an_open_batch_becomes_1_with_a_notice(tmp_path, caplog):
    done = quantized(classifier(13, 7, ("batch", 3, 16, 16)), tmp_path)
    (notice,) = [r.getMessage() for r in caplog.records if "batch" in r.getMessage()]
    assert notice == "the batch size 'batch' is open: it becomes 1 (--dim batch=N sets another size)"
    assert [d.dim_value for d in onnx.load(done.path).graph.input[0].type.tensor_type.shape.dim] == [1, 3, 16, 16]


def test_other_open_dimensions_need_sizes(tmp_path, capsys):
    onnx.save(classifier(13, 7, ("batch", 3, "height", "width")), tmp_path / "old.onnx")
    words = ["quantize", str(tmp_path / "old.onnx"), "-o", str(tmp_path / "q.onnx"), "--samples", "2", "-q"]
    assert main(words) == ExitCode.UNSUPPORTED
    assert "--shape x=1,3,N,N" in capsys.readouterr().err
    assert main([*words, "--dim", "height=16", "--dim", "width=24"]) == 0
    shape = onnx.load(tmp_path / "q.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in shape] == [1, 3, 16, 24]


def opened(folder):
    """A quantized model whose height is open again."""
    done = quantized(classifier(13, 7), folder)
    model = onnx.load(done.path)
    del model.graph.value_info[:]
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    onnx.save(model, folder / "open.onnx")
    return folder / "open.onnx"


def test_the_program_stores_the_sizes(tmp_path, capsys):
    source, program = opened(tmp_path), tmp_path / "open.loom"
    assert main(["compile", str(source), "-o", str(program), "-q"]) == ExitCode.UNSUPPORTED
    assert "--shape x=1,3,N,16" in capsys.readouterr().err
    assert main(["compile", str(source), "-o", str(program), "--dim", "height=8", "--preset", "nano", "-q"]) == 0
    assert Session(program, backend="golden").inputs == {"x": (1, 3, 8, 16)}
    for more in ([], ["--dim", "height=8"]):
        assert main(["run", str(program), "--backend", "isa", "--check", "--json", *more]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    assert main(["run", str(program), "--backend", "isa", "--dim", "height=16"]) == ExitCode.USAGE
    assert "was compiled for height=8, not height=16: compile it with --dim height=16" in capsys.readouterr().err
    # A model without the open dimension is another model.
    assert main(["run", str(program), "--backend", "isa", "--model", str(tmp_path / "q.onnx")]) == ExitCode.BAD_FILE
    assert "must be the model that" in capsys.readouterr().err
