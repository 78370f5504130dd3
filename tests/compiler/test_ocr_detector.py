"""A text detector as in PP-OCRv3: every node on the accelerator, equal to onnxruntime, compiled in seconds."""

import time
from pathlib import Path

import onnx
import pytest

import intloom
from intloom.quantization import QuantizeOptions, quantize
from tests.support.ocr_detector import ocr_detector
from tests.support.parity import assert_equal

SECONDS_FOR_640 = 3.0
"""Compilation for base, on one core."""


def quantized(folder: Path, size: int, seed: int) -> Path:
    onnx.save(ocr_detector(size, seed % 1000), folder / "float.onnx")
    quantize(folder / "float.onnx", folder / "quantized.onnx", None, QuantizeOptions(samples=1))
    return folder / "quantized.onnx"


def test_every_node_runs_on_the_accelerator(tmp_path: Path, seed: int) -> None:
    path = quantized(tmp_path, 96, seed)
    found = assert_equal(onnx.load(path), seed)
    assert len(found.folded.regions) == 1
    assert not [a.name for a in found.folded.assignments if a.target == "host" and "Quantize" not in a.op]


@pytest.mark.slow
@pytest.mark.evidence
def test_compilation_takes_seconds(tmp_path: Path, seed: int) -> None:
    path = quantized(tmp_path, 640, seed)
    intloom.compile(path, "base")
    started = time.process_time()
    intloom.compile(path, "base")
    spent = time.process_time() - started
    print(f"text detector at 640: {spent:.2f} s of processor time")
    assert spent <= SECONDS_FOR_640
