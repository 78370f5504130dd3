"""Files that real exporters wrote: each equals onnxruntime in every byte, or a row of the list refuses it."""

import json
import logging
from pathlib import Path

import onnx
import pytest

import intloom
from intloom.common.errors import UnsupportedError
from intloom.compiler.frontend import Target
from intloom.compiler.refusals import Refusal
from intloom.quantization import quantize
from tests.support.mutant_outcome import feeds_of, outcome
from tools.exporters import FOLDER, INDEX, MAX_BYTES

EXPORTERS: dict[str, str] = json.loads(INDEX.read_text(encoding="utf-8"))
FLOAT = ("dynamo", "paddle2onnx", "tf2onnx", "torchscript", "ultralytics-settings", "ort-dynamic")
"""Exporters whose files are quantized first."""
REFUSED = {
    "attention.brevitas": Refusal.NOT_QUANTIZED,
    "detector.nncf-torch": Refusal.OPERATOR,  # PyTorch writes FakeQuantize, which no ONNX domain has
    **{f"{name}.ort-int16": Refusal.TYPE for name in ("attention", "classifier", "detector")},
}
WHOLE = {
    *(f"{n}.ort-{form}" for n in ("classifier", "detector") for form in ("int4", "qdq", "qdq-uint8", "qoperator")),
    *(f"{n}.{tool}" for n in ("classifier", "detector") for tool in ("aimet", "olive")),
    *("classifier.brevitas", "classifier.torchao"),
}
"""Files of which no node runs on the host."""
ADDS_ON_ARRAY = {"aimet": 4, "modelopt": 2, "nncf-onnx": 2, "nncf-torch": 3, "torchao": 4}
"""Biases of the attention block that are an Add of their own and part of a product."""
ON_RTL = ("classifier.nncf-onnx", "classifier.tf2onnx-tflite")


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def model_of(name: str, folder: Path) -> onnx.ModelProto:
    """The file, quantized if it is float."""
    file = FOLDER / f"{name}.onnx"
    if name.partition(".")[2] not in FLOAT:
        return onnx.load(file)
    open_batch = {d.dim_param: 1 for d in onnx.load(file).graph.input[0].type.tensor_type.shape.dim if d.dim_param}
    quantize(file, folder / "q.onnx", dims=open_batch, cache=folder)
    return onnx.load(folder / "q.onnx")


def test_the_index_names_every_file() -> None:
    assert {path.stem: path.stat().st_size <= MAX_BYTES for path in FOLDER.glob("*.onnx")} == dict.fromkeys(
        EXPORTERS, True
    )
    assert {"torch", "torchao", "brevitas", "nncf", "aimet-onnx", "nvidia-modelopt", "tf2onnx", "onnxruntime"} <= {
        tool.partition(" ")[0] for tools in EXPORTERS.values() for tool in tools.split(", ")
    }


@pytest.mark.parametrize("name", EXPORTERS)
def test_equals_onnxruntime(name: str, tmp_path: Path) -> None:
    model = model_of(name, tmp_path)
    if name in REFUSED:
        with pytest.raises(UnsupportedError) as caught:
            intloom.compile(model, "nano")
        assert caught.value.row == REFUSED[name].number
        return
    done = outcome(model, 1)
    assert done.kind == "equal", done
    if name in WHOLE:
        nodes = intloom.compile(model, "nano").bundle.need_model("the assignment").assignments
        assert not [a for a in nodes if a.target is Target.HOST]


@pytest.mark.parametrize("exporter", ADDS_ON_ARRAY)
def test_a_bias_after_a_product_is_part_of_it(exporter: str) -> None:
    nodes = intloom.compile(FOLDER / f"attention.{exporter}.onnx", "base").bundle.need_model("it").assignments
    on_array = [a for a in nodes if a.op == "Add" and a.target is Target.ARRAY]
    assert len(on_array) == ADDS_ON_ARRAY[exporter]


def test_batch_normalization_with_quantized_weights_is_part_of_the_convolution() -> None:
    nodes = intloom.compile(FOLDER / "classifier.nncf-torch.onnx", "base").bundle.need_model("it").assignments
    rows = [a.row for a in nodes if a.op == "BatchNormalization"]
    assert sorted(rows) == [0, 0, 0, 0, Refusal.NOT_QUANTIZED.number], "a MaxPool without a pair is before one"


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["nano", "small"])
@pytest.mark.parametrize("name", [n if n in ON_RTL else pytest.param(n, marks=pytest.mark.nightly) for n in EXPORTERS])
def test_rtl(name: str, preset: str, tmp_path: Path) -> None:
    if name in REFUSED:
        return
    program = intloom.compile(model_of(name, tmp_path), preset)
    session = intloom.Session(program, backend="rtl", check=True)
    session.run(None, feeds_of(program, 2))
    assert session.last is not None
    assert session.last.record["mismatches"] == 0
    assert session.last.record["compared_bytes"] > 0
