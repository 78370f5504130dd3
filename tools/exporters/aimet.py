"""AIMET's quantization of an ONNX file. Packages: aimet-onnx, torch."""

import onnx
from aimet_onnx.quantsim import QuantizationSimModel

from tools.exporters import FOLDER, Exported
from tools.exporters.networks import NETWORKS, samples


def _model(name: str) -> onnx.ModelProto:
    simulation = QuantizationSimModel(onnx.load(FOLDER / f"{name}.torchscript.onnx"))
    simulation.compute_encodings([{"images": sample.numpy()} for sample in samples(name)])
    model: onnx.ModelProto = simulation.to_onnx_qdq(export_int32_bias=True, prequantize_constants=True)
    return model


def _export() -> Exported:
    return {f"{name}.aimet": _model(name) for name in NETWORKS}


EXPORTERS = ((("aimet-onnx",), _export),)
