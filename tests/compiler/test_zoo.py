"""Networks of the zoo, quantized every way, equal onnxruntime in every integer tensor."""

import random
from pathlib import Path

import onnx
import pytest

from intloom.compiler.fold.graph_builder import FoldOptions
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.ir import ConvTranspose
from intloom.compiler.program.soundness import check_program
from intloom.flow.compiling import compile_model
from intloom.hw.spec.params import preset
from intloom.quantization import ActivationType, Form, Head, QuantizeOptions, quantize
from intloom.quantization.tail import float_tail
from intloom.zoo import bert, build, vit
from tests.support.nightly import with_nightly
from tests.support.parity import assert_equal


def quantized(folder: Path, name: str, size: int, **options: object) -> onnx.ModelProto:
    """A network of the zoo, calibrated on one synthetic image."""
    onnx.save(build(name, size, 0), folder / "float.onnx")
    quantize(folder / "float.onnx", folder / "quantized.onnx", None, QuantizeOptions(samples=1, **options))
    return onnx.load(folder / "quantized.onnx")


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("activations", list(ActivationType))
@pytest.mark.parametrize("name", ["tiny", "c2f", "sppf", "residual", "mini_yolo"])
def test_teaching_networks(
    name: str, activations: ActivationType, form: Form, tmp_path: Path, rng: random.Random
) -> None:
    model = quantized(tmp_path, name, 64 if name == "mini_yolo" else 32, activations=activations, form=form)
    found = assert_equal(model, rng.getrandbits(32))
    if activations is ActivationType.INT8:
        assert found.folded.reference is not None


_SIZES = {
    ("yolov8n", Form.QDQ): 96, ("yolov8n-cls", Form.QOPERATOR): 128, ("mobilenet_v2", Form.QDQ): 128,
}  # fmt: skip
"""Networks in one form; every night in both, which the teaching networks have always."""
_NIGHTLY = {
    "yolov8n": 320, "yolov8n-pose": 160, "yolov8n-seg": 96, "yolov8n-cls": 128, "resnet18": 128, "yolov8s": 160,
    "yolov8m": 160,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form", "size"),
    [
        *((*case, size) for case, size in _SIZES.items()),
        *(pytest.param(n, form, s, marks=pytest.mark.nightly) for n, s in _NIGHTLY.items() for form in Form),
    ],
)
def test_networks_equal_onnxruntime(name: str, form: Form, size: int, tmp_path: Path, rng: random.Random) -> None:
    found = assert_equal(quantized(tmp_path, name, size, form=form), rng.getrandbits(32))
    assert found.elements > 100_000


LIKE_OTHERS = (
    "yolo11n", "yolo11n-pose", "yolo11n-seg", "yolo26n-seg", "yolo26n-pose", "yolox_nano", "efficientnet_lite0",
    "mobilenet_v4_conv_small", "c2psa", "deit_tiny", "minilm_l6", "shufflenet_v2",
)  # fmt: skip
"""Other heads and sizes. YOLO26 has the blocks of YOLO11, YOLOv8 its head; YOLOX's slices are in `test_slices.py` and
in its TFLite form; two blocks of the transformers are below; shuffles are in `test_transpose.py`; the blocks of the
others are those of MobileNetV2, or depthwise convolutions as in MobileNetV3.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "yolo26n", "mobilenet_v3_large", "ssd_mobilenet_v1", "ocr_recognizer", "mobilevit_xxs",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in LIKE_OTHERS),
    ],
)  # fmt: skip
def test_newer_networks_equal_onnxruntime(name: str, tmp_path: Path, rng: random.Random) -> None:
    size = {"ssd_mobilenet_v1": 60, "mobilevit_xxs": 128}.get(name, 64)
    assert_equal(quantized(tmp_path, name, size), rng.getrandbits(32))
    if name.startswith(("yolo11n", "yolo26n")):
        _check_that_box_decoding_alone_runs_on_the_host(tmp_path)
    if name == "ocr_recognizer":
        _check_a_buffer_that_one_slot_keeps_and_another_does_not(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deit_tiny", "minilm_l6"])
def test_two_blocks_of_a_transformer(
    name: str, tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small vocabulary: most of a whole network's time goes into copies of its table."""
    monkeypatch.setattr(vit, "_DEPTH", 2)
    monkeypatch.setattr(bert, "_DEPTH", 2)
    monkeypatch.setattr(bert, "_VOCABULARY", 300)
    assert_equal(quantized(tmp_path, name, 64), rng.getrandbits(32))


def _check_that_box_decoding_alone_runs_on_the_host(tmp_path: Path) -> None:
    found = fold_model(load_model(tmp_path / "quantized.onnx"), FoldOptions(softmax=True))
    decoding = set(float_tail(onnx.load(tmp_path / "float.onnx").graph))
    assert len(found.regions) == 1
    assert decoding and {a.name for a in found.assignments if a.target == "host"} <= decoding


def _check_a_buffer_that_one_slot_keeps_and_another_does_not(tmp_path: Path) -> None:
    """A scratchpad of a size between the presets' keeps some tensors of an encoder in one slot only."""
    params = preset("nano").replace(vector_softmax=True, vector_norm=True, scratch_kib=64, weight_kib=32)
    (program,) = compile_model(tmp_path / "quantized.onnx", params).programs
    check_program(program)


@pytest.mark.slow
@pytest.mark.parametrize("task", with_nightly(["", "-seg", "-pose"], ["", "-pose"]))
def test_whole_quantized_heads(task: str, tmp_path: Path, rng: random.Random) -> None:
    found = assert_equal(quantized(tmp_path, f"yolov8n{task}", 160, head=Head.WHOLE), rng.getrandbits(32))
    assert any("levels" in w for w in found.folded.warnings), "one scale for pixels and scores is worth a warning"
    if task == "-seg":
        assert any(isinstance(n, ConvTranspose) for n in found.folded.graph.nodes)
        assert any("ConvTranspose" in w and "in float" in w for w in found.folded.warnings)
