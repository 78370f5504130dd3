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
from intloom.quantization import ActivationType, Form, Head, QuantizeOptions, WeightScales, quantize
from intloom.sim.golden import run_graph
from intloom.zoo import ZOO, build
from tests.support.parity import assert_equal, compare, folded, graph_inputs, random_feeds
from tests.support.unsigned_weights import with_unsigned_weights

pytestmark = [pytest.mark.slow, pytest.mark.evidence]

TASKS = ("yolov8n", "yolov8n-seg", "yolov8n-pose", "yolov8n-cls")
IMAGES = 20
SMALL = 64
"""Image size of the comparison on many images."""
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
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("name", TASKS)
def test_tasks_in_int8(name: str, form: Form, head: Head, tmp_path: Path, rng: random.Random) -> None:
    model = quantized(tmp_path, name, 320, form=form, head=head, activations=ActivationType.INT8)
    found = assert_equal(model, rng.getrandbits(32))
    print(f"{name} 320 int8 {form} {head}: 0 of {found.elements} bytes differ in {found.tensors} tensors")


@pytest.mark.parametrize("unsigned", [False, True], ids=["int8 weights", "uint8 weights"])
@pytest.mark.parametrize("weights", list(WeightScales))
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("activations", list(ActivationType))
@pytest.mark.parametrize("name", list(ZOO))
def test_every_network_on_many_images(
    name: str,
    activations: ActivationType,
    form: Form,
    weights: WeightScales,
    unsigned: bool,
    tmp_path: Path,
    rng: random.Random,
) -> None:
    model = quantized(tmp_path, name, SMALL, activations=activations, form=form, weights=weights)
    if unsigned:
        model = with_unsigned_weights(model)
    plain = folded(model)
    found = [compare(model, rng.getrandbits(32), plain=plain) for _ in range(IMAGES)]
    assert not any(f.different for f in found)
    kind = "uint8" if unsigned else "int8"
    total = sum(f.elements for f in found)
    print(f"{name} {SMALL} {activations} {form} {weights} {kind} weights: 0 of {total} bytes differ")


def test_the_golden_model_is_fast(tmp_path: Path, seed: int) -> None:
    model = quantized(tmp_path, "yolov8n", 640)
    plain = fold_model(load_model(tmp_path / "quantized.onnx"))
    inputs = graph_inputs(plain, random_feeds(model, seed))
    run_graph(plain.graph, inputs, match=RoundingMode.ORT)
    started = time.process_time()
    run_graph(plain.graph, inputs, match=RoundingMode.ORT)
    spent = time.process_time() - started
    print(f"YOLOv8n at 640: {spent:.2f} s of processor time")
    assert spent <= SECONDS_FOR_640
