"""onnxruntime's static and dynamic quantizers. Packages: onnxruntime, onnx, numpy."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnxruntime import quantization
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType
from onnxruntime.quantization.shape_inference import quant_pre_process

from tools.exporters import FOLDER, Exported

QDQ, QOPERATOR = {"quant_format": QuantFormat.QDQ}, {"quant_format": QuantFormat.QOperator}
FORMS: dict[str, dict[str, Any]] = {
    "ort-qdq": QDQ | {"activation_type": QuantType.QInt8, "per_channel": True},
    "ort-qdq-uint8": QDQ | {"activation_type": QuantType.QUInt8},
    "ort-qoperator": QOPERATOR | {"activation_type": QuantType.QUInt8, "per_channel": True},
    "ort-int16": QDQ | {"activation_type": QuantType.QInt16},
    "ort-int4": QDQ | {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt4},
}
NAMES = ("classifier", "detector", "attention")


class Reader(CalibrationDataReader):
    """Random inputs."""

    def __init__(self, model: Path) -> None:
        shape = [d.dim_value for d in onnx.load(model).graph.input[0].type.tensor_type.shape.dim]
        noise = np.random.default_rng(3)
        self._feeds: Iterator[dict[str, Any]] = iter([{"images": noise.random(shape, np.float32)} for _ in range(8)])

    def get_next(self) -> dict[str, Any] | None:
        """The next sample."""
        return next(self._feeds, None)


def _static() -> Exported:
    models = {}
    with TemporaryDirectory() as folder:
        prepared, made = Path(folder, "prepared.onnx"), Path(folder, "made.onnx")
        for name in NAMES:
            quant_pre_process(FOLDER / f"{name}.torchscript.onnx", prepared)
            for form, options in FORMS.items():
                quantization.quantize_static(prepared, made, Reader(prepared), **options)
                models[f"{name}.{form}"] = onnx.load(made)
    return models


def _dynamic() -> Exported:
    models = {}
    with TemporaryDirectory() as folder:
        made = Path(folder, "made.onnx")
        for name in NAMES:
            quantization.quantize_dynamic(FOLDER / f"{name}.torchscript.onnx", made)
            models[f"{name}.ort-dynamic"] = onnx.load(made)
    return models


EXPORTERS = ((("onnxruntime",), _static), (("onnxruntime",), _dynamic))
