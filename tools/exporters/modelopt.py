"""NVIDIA's ModelOpt on an ONNX file. Packages: nvidia-modelopt[onnx], torch."""

from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from modelopt.onnx.quantization import quantize

from tools.exporters import FOLDER, Exported
from tools.exporters.networks import NETWORKS, samples


def _model(name: str) -> onnx.ModelProto:
    with TemporaryDirectory() as folder:
        # ModelOpt 0.47 adds shapes to the file that it reads.
        source, made = Path(folder, "source.onnx"), Path(folder, "made.onnx")
        copyfile(FOLDER / f"{name}.torchscript.onnx", source)
        quantize(
            str(source),
            calibration_data={"images": np.concatenate([s.numpy() for s in samples(name)])},
            calibration_eps=["cpu"],
            high_precision_dtype="fp32",
            output_path=str(made),
        )
        return onnx.load(made)


def _export() -> Exported:
    return {f"{name}.modelopt": _model(name) for name in NETWORKS}


EXPORTERS = ((("nvidia-modelopt",), _export),)
