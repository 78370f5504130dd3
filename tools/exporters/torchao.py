"""torchao's quantization of an exported program (PT2E). Packages: torch, torchao, onnx, onnxscript."""

import torch
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

from tools.exporters import Exported
from tools.exporters.networks import NETWORKS, network, samples
from tools.exporters.pytorch import dynamo


def _quantized(name: str) -> torch.nn.Module:
    inputs = samples(name)
    exported = torch.export.export(network(name), (inputs[0],)).module()
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(exported, quantizer)
    for sample in inputs:
        prepared(sample)
    converted: torch.nn.Module = move_exported_model_to_eval(convert_pt2e(prepared))
    return converted


def _export() -> Exported:
    return {f"{name}.torchao": dynamo(_quantized(name), name) for name in NETWORKS}


EXPORTERS = ((("torch", "torchao", "onnxscript"), _export),)
