"""The zoo's networks as int8 TFLite files: LiteRT reads them, and the accelerator's bytes are LiteRT's."""

import pytest

from intloom.cli import main
from intloom.common.errors import ExitCode, UnsupportedError
from intloom.sim.checks import LITERT, ONNXRUNTIME
from intloom.tflite_export import to_tflite
from intloom.zoo import build, vit
from tests.compiler.importer.test_tflite import run

SIZES = {"c2psa": 64, "mini_yolo": 64, "ocr_detector": 64} | dict.fromkeys(
    ("yolov8n-cls", "yolov8n-seg", "yolo11n", "yolox_nano", "mobilenet_v2", "mobilenet_v3_large", "resnet18"), 32
)
"""Networks with their image sizes."""
DAILY = [("c2psa", "rtl"), ("mini_yolo", "rtl"), ("ocr_detector", "isa"), ("yolox_nano", "isa")]
"""Attention, gates, transposed convolutions, slices. Every night all run in RTL; the others have the same operators."""
CASES = [*DAILY, *(pytest.param(n, "rtl", marks=pytest.mark.nightly) for n in SIZES if (n, "rtl") not in DAILY)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), CASES)
def test_network_equals_litert(name, backend, tmp_path, seed):
    path = tmp_path / "network.tflite"
    words = ["zoo", "build", name, "--imgsz", str(SIZES[name]), "--seed", str(seed % 1000), "-o", str(path)]
    assert main(words) == 0
    _, result = run(path, "base", backend, seed)
    assert not [c for c in result.checks if c.mismatches]
    # Averages and Softmax have an integer form of their own, which onnxruntime computes.
    assert {c.against for c in result.checks} - {ONNXRUNTIME} == {"golden", LITERT}


def test_what_has_no_form_ends_in_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(vit, "_DEPTH", 1)
    with pytest.raises(UnsupportedError, match="it has no quantized operator"):
        to_tflite(build("tiny", 16, 0))
    path = tmp_path / "network.tflite"
    assert main(["zoo", "build", "vit_tiny", "--imgsz", "32", "-o", str(path)]) == ExitCode.UNSUPPORTED
    assert "must be of Add," in capsys.readouterr().err
    assert not path.exists()
