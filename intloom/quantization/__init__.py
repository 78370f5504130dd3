"""Post-training quantisation of float models, on onnxruntime's quantiser."""

from .options import DEFAULT_PERCENTILE, ActivationType, Calibration, Form, Head, QuantizeOptions, WeightScales
from .snr import TensorNoise, measure_noise
from .static import Quantized, quantize

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
