"""Olive's static quantization. Packages: olive-ai, onnxruntime, torch, onnx, requests."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from olive.workflows import run

from tools.exporters import FOLDER, Exported

SHAPE = [1, 3, 32, 32]


def _config(name: str, folder: str) -> dict[str, Any]:
    noise, files = np.random.default_rng(3), Path(folder, "images")
    files.mkdir()
    for number in range(8):
        noise.random(SHAPE, np.float32).tofile(files / f"{number}.bin")
    inputs = {"data_dir": folder, "input_names": ["images"], "input_shapes": [SHAPE], "input_types": ["float32"]}
    data = {"name": "inputs", "type": "RawDataContainer", "load_dataset_config": {"params": inputs}}
    return {
        "input_model": {"type": "ONNXModel", "model_path": str(FOLDER / f"{name}.torchscript.onnx")},
        "data_configs": [data],
        "passes": {"quantize": {"type": "OnnxStaticQuantization", "data_config": "inputs", "quant_format": "QDQ"}},
        "output_dir": f"{folder}/{name}",
        "cache_dir": f"{folder}/cache",
    }


def _model(name: str) -> onnx.ModelProto:
    with TemporaryDirectory() as folder:
        run(_config(name, folder))
        return onnx.load(next(Path(folder, name).rglob("*.onnx")))


def _export() -> Exported:
    return {f"{name}.olive": _model(name) for name in ("classifier", "detector")}


EXPORTERS = ((("olive-ai", "onnxruntime"), _export),)
