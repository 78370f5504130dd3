"""Post-training quantization of float models, with onnxruntime's quantizer."""

from intloom.quantization.options import (
    DEFAULT_PERCENTILE,
    ActivationType,
    Calibration,
    Form,
    Head,
    QuantizeOptions,
    WeightScales,
)
from intloom.quantization.snr import TensorNoise, measure_noise
from intloom.quantization.static import Quantized, quantize

__all__ = [
    "DEFAULT_PERCENTILE",
    "ActivationType",
    "Calibration",
    "Form",
    "Head",
    "QuantizeOptions",
    "Quantized",
    "TensorNoise",
    "WeightScales",
    "measure_noise",
    "quantize",
]
