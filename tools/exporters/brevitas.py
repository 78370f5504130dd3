"""Brevitas' graph quantization in QCDQ form. Packages: torch, brevitas, onnx, onnxscript, onnxoptimizer."""

import io

import onnx
import torch
from brevitas.export import export_onnx_qcdq
from brevitas.graph.calibrate import bias_correction_mode, calibration_mode
from brevitas.graph.quantize import layerwise_quantize, preprocess_for_quantize, quantize

from tools.exporters import Exported
from tools.exporters.networks import NETWORKS, network, samples


def _model(name: str) -> onnx.ModelProto:
    inputs = samples(name)
    prepared = preprocess_for_quantize(network(name))
    # Values of `quantize` cannot be split or sliced, so the others get quantizers at their layers only.
    quantized = quantize(prepared) if name == "classifier" else layerwise_quantize(prepared)
    with torch.no_grad(), calibration_mode(quantized):
        for sample in inputs:
            quantized(sample)
    with torch.no_grad(), bias_correction_mode(quantized):
        for sample in inputs:
            quantized(sample)
    stream = io.BytesIO()
    export_onnx_qcdq(quantized.eval(), args=inputs[0], export_path=stream, opset_version=17, dynamo=False)
    return onnx.load_from_string(stream.getvalue())


def _export() -> Exported:
    return {f"{name}.brevitas": _model(name) for name in NETWORKS}


EXPORTERS = ((("torch", "brevitas"), _export),)
