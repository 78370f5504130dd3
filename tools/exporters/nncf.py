"""NNCF's quantization of a PyTorch network and of an ONNX file. Packages: torch, nncf, onnx, onnxscript."""

import nncf
import onnx

from tools.exporters import FOLDER, Exported
from tools.exporters.networks import NETWORKS, network, samples
from tools.exporters.pytorch import torchscript


def _of_torch(name: str) -> onnx.ModelProto:
    inputs = samples(name)
    quantized = nncf.quantize(network(name), nncf.Dataset(inputs))
    stripped = nncf.strip(quantized, strip_format=nncf.StripFormat.NATIVE, example_input=inputs[0])
    return torchscript(stripped, name)


def _of_onnx(name: str) -> onnx.ModelProto:
    feeds = [{"images": sample.numpy()} for sample in samples(name)]
    quantized: onnx.ModelProto = nncf.quantize(onnx.load(FOLDER / f"{name}.torchscript.onnx"), nncf.Dataset(feeds))
    return quantized


def _torch() -> Exported:
    return {f"{name}.nncf-torch": _of_torch(name) for name in NETWORKS}


def _onnx() -> Exported:
    return {f"{name}.nncf-onnx": _of_onnx(name) for name in NETWORKS}


EXPORTERS = ((("nncf",), _onnx), (("nncf", "torch"), _torch))
