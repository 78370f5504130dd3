"""The zoo's networks at full size equal onnxruntime in every integer tensor; run by `make evidence`.

The tests of `test_zoo` compare the same networks at smaller sizes.
"""

import random
import time
from pathlib import Path

import onnx
import pytest

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.hw.spec.arith import RoundingMode
from intloom.quantization import ActivationType, Form, Head, QuantizeOptions, quantize
from intloom.sim.golden import run_graph
from intloom.zoo import build
from tests.support.parity import assert_equal, assert_layers_close, graph_inputs, random_feeds

pytestmark = [pytest.mark.slow, pytest.mark.evidence]

TASKS = ("yolov8n", "yolov8n-seg", "yolov8n-pose", "yolov8n-cls")
IMAGES = 16
"""They give every convolution of a detector at 320 at least 100,000 values, which a rate of 1 in 10,000 needs."""
SECONDS_FOR_640 = 3.0
"""For YOLOv8n at 640, on one core."""


def quantized(folder: Path, name: str, size: int, **options: object) -> onnx.ModelProto:
    """A network of the zoo, calibrated on one synthetic image."""
    onnx.save(build(name, size, 0), folder / "float.onnx")
    quantize(folder / "float.onnx", folder / "quantized.onnx", None, QuantizeOptions(samples=1, **options))
    return onnx.load(folder / "quantized.onnx")


@pytest.mark.parametrize("size", [320, 640])
@pytest.mark.parametrize("name", ["yolov8n", "yolov8s", "yolov8m"])
def test_detectors(name: str, size: int, tmp_path: Path, rng: random.Random) -> None:
    found = assert_equal(quantized(tmp_path, name, size), rng.getrandbits(32))
    print(f"{name} {size}: 0 of {found.elements} bytes differ in {found.tensors} tensors")


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_classifiers(name: str, form: Form, tmp_path: Path, rng: random.Random) -> None:
    found = assert_equal(quantized(tmp_path, name, 224, form=form), rng.getrandbits(32))
    print(f"{name} 224 {form}: 0 of {found.elements} bytes differ in {found.tensors} tensors")


@pytest.mark.parametrize("head", list(Head))
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("name", TASKS)
def test_tasks_in_uint8(name: str, form: Form, head: Head, tmp_path: Path, rng: random.Random) -> None:
    found = assert_equal(quantized(tmp_path, name, 320, form=form, head=head), rng.getrandbits(32))
    print(f"{name} 320 {form} {head}: 0 of {found.elements} bytes differ in {found.tensors} tensors")


@pytest.mark.parametrize("head", list(Head))
@pytest.mark.parametrize("name", TASKS)
def test_tasks_in_int8(name: str, head: Head, tmp_path: Path, rng: random.Random) -> None:
    """onnxruntime runs these convolutions in float: each layer on its inputs differs only at ties, and hardly ever."""
    model = quantized(tmp_path, name, 320, head=head, activations=ActivationType.INT8)
    layers = assert_layers_close(model, rng.getrandbits(32), images=IMAGES)
    different, values = sum(v.different for v in layers), sum(v.values for v in layers if v.in_float)
    print(f"{name} 320 int8 {head}: {different} of {values} values of float layers differ, all at ties")


def test_the_golden_model_is_fast(tmp_path: Path, seed: int) -> None:
    model = quantized(tmp_path, "yolov8n", 640)
    folded = fold_model(load_model(tmp_path / "quantized.onnx"))
    inputs = graph_inputs(folded, random_feeds(model, seed))
    run_graph(folded.graph, inputs, match=RoundingMode.ORT)
    started = time.process_time()
    run_graph(folded.graph, inputs, match=RoundingMode.ORT)
    spent = time.process_time() - started
    print(f"YOLOv8n at 640: {spent:.2f} s of processor time")
    assert spent <= SECONDS_FOR_640
