"""PyTorch's exporters. Packages: torch, onnx, onnxscript, onnxslim."""

import io

import onnx
import onnxslim
import torch
from torch import nn

from tools.exporters import Exported
from tools.exporters.networks import NETWORKS, network, samples


def torchscript(module: nn.Module, name: str, opset: int = 17) -> onnx.ModelProto:
    """The file of the older exporter, which traces."""
    stream = io.BytesIO()
    names = {"input_names": ["images"], "output_names": ["output0"]}
    torch.onnx.export(module, (samples(name)[0],), stream, opset_version=opset, dynamo=False, **names)
    return onnx.load_from_string(stream.getvalue())


def dynamo(module: nn.Module, name: str) -> onnx.ModelProto:
    """The file of the exporter that is PyTorch's default."""
    program = torch.onnx.export(module, (samples(name)[0],), dynamo=True, verbose=False)
    if program is None:
        raise RuntimeError("PyTorch returned no model")
    model: onnx.ModelProto = program.model_proto
    return model


def _torchscript() -> Exported:
    return {f"{name}.torchscript": torchscript(network(name), name) for name in NETWORKS}


def _dynamo() -> Exported:
    return {f"{name}.dynamo": dynamo(network(name), name) for name in NETWORKS}


def _ultralytics() -> Exported:
    """With the arguments of `export(format="onnx", simplify=True)` of Ultralytics."""
    return {"detector.ultralytics-settings": onnxslim.slim(torchscript(network("detector"), "detector", 19))}


EXPORTERS = ((("torch",), _torchscript), (("torch", "onnxscript"), _dynamo), (("torch", "onnxslim"), _ultralytics))
