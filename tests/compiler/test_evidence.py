"""The zoo's networks equal onnxruntime in every integer tensor and in every form; run by `make evidence`.

The tests of `test_zoo` compare some of them in fewer forms, `make figures` compares them at full size.
"""

import functools
import random
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.schedule import compile_graph
from intloom.flow.regions import run_regions
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import preset
from intloom.quantization import ActivationType, Form, Head
from intloom.sim.backend import RtlBackend
from intloom.sim.golden import run_graph
from intloom.zoo import ZOO
from tests.compiler.test_zoo import quantized
from tests.support.parity import Array, Comparison, assert_equal, folded, graph_inputs, random_feeds
from tests.support.zoo_forms import FORMS, QuantizedForm, ZooForms

pytestmark = [pytest.mark.slow, pytest.mark.evidence]

IMAGES = 20
HARDWARE = preset("base")
"""Of the comparison in every form."""
SECONDS_FOR_640 = 3.0
"""For YOLOv8n at 640, on one core."""


@pytest.mark.parametrize("activations", list(ActivationType))
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("name", ["yolov8n", "yolov8n-seg", "yolov8n-pose", "yolov8n-cls"])
def test_whole_heads(name: str, form: Form, activations: ActivationType, tmp_path: Path, rng: random.Random) -> None:
    model = quantized(tmp_path, name, 320, form=form, head=Head.WHOLE, activations=activations)
    found = assert_equal(model, rng.getrandbits(32))
    print(f"{name} 320 {activations} {form}: 0 of {found.elements} bytes differ in {found.tensors} tensors")


# Cases are in the order of networks, then forms: each network is built and calibrated once, each form folded once.
@functools.lru_cache(maxsize=1)
def forms_of(name: str) -> ZooForms:
    return ZooForms(name)


@functools.lru_cache(maxsize=1)
def case_of(name: str, form: QuantizedForm) -> tuple[onnx.ModelProto, Comparison]:
    model = forms_of(name).model(form)
    return model, Comparison(model, folded(model, softmax=HARDWARE.vector_softmax), outputs=True)


@pytest.mark.parametrize("level", ["golden", "rtl"])
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", list(ZOO))
def test_every_network_in_every_form(name: str, form: QuantizedForm, level: str, seed: int) -> None:
    """20 images by the golden model and onnxruntime, all tensors and outputs; one by the RTL and the golden model."""
    model, comparison = case_of(name, form)
    if level == "rtl":
        total = compare_rtl(comparison, random_feeds(model, seed))
    else:
        found = [comparison.compare(random_feeds(model, seed + number)) for number in range(IMAGES)]
        assert not any(f.different for f in found), [f.different for f in found if f.different]
        total = sum(f.elements for f in found)
    print(f"{name} {forms_of(name).size}, {form}, {level}: 0 of {total} bytes differ")


def compare_rtl(comparison: Comparison, feeds: dict[str, Array]) -> int:
    """Every tensor that the RTL stores equals the golden model's; gives the number of bytes."""
    expected, backend, sizes = comparison.golden(feeds), RtlBackend(keep_tensors=True), []

    def run(number: int, inputs: Mapping[str, NDArray[np.int8]]) -> Mapping[str, NDArray[np.int8]]:
        made = backend.run(compile_graph(comparison.folded.regions[number], HARDWARE), inputs)
        for name, array in {**made.tensors, **made.outputs}.items():
            if name not in expected:  # the scheduler's own
                continue
            np.testing.assert_array_equal(array, expected[name], err_msg=name)
            sizes.append(array.size)
        return made.outputs

    run_regions(comparison.folded, comparison.host, feeds, run)
    return sum(sizes)


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
