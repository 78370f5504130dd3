"""A text detector as in PP-OCRv3: every node on the accelerator, equal to onnxruntime."""

from pathlib import Path

import onnx

from intloom.quantization import QuantizeOptions, quantize
from intloom.zoo import build
from tests.support.parity import assert_equal


def quantized(folder: Path, size: int, seed: int) -> Path:
    onnx.save(build("ocr_detector", size, seed % 1000), folder / "float.onnx")
    quantize(folder / "float.onnx", folder / "quantized.onnx", None, QuantizeOptions(samples=1))
    return folder / "quantized.onnx"


def test_every_node_runs_on_the_accelerator(tmp_path: Path, seed: int) -> None:
    path = quantized(tmp_path, 96, seed)
    found = assert_equal(onnx.load(path), seed)
    assert len(found.folded.regions) == 1
    assert not [a.name for a in found.folded.assignments if a.target == "host" and "Quantize" not in a.op]
