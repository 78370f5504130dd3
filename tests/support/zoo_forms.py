"""A network of the zoo in every quantized form, with one calibration for all of them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnxruntime.quantization
import pytest

from intloom.quantization import ActivationType, Form, QuantizeOptions, WeightScales, quantize, static
from intloom.zoo import build
from intloom.zoo.catalog import entry
from tests.support.unsigned_weights import with_unsigned_weights

_LARGEST = 64


@dataclass(frozen=True)
class QuantizedForm:
    """One of the 16 forms."""

    activations: ActivationType
    form: Form
    weights: WeightScales
    unsigned: bool
    """The weights are uint8."""

    def __str__(self) -> str:
        kind = "uint8" if self.unsigned else "int8"
        return f"{self.activations} {self.form} {self.weights} {kind} weights"


FORMS = tuple(
    QuantizedForm(activations, form, weights, unsigned)
    for form in Form
    for weights in WeightScales
    for activations in ActivationType
    for unsigned in (False, True)
)


class ZooForms:
    """Quantizes a network for images of at most 64 pixels: it has all its layers, with few pixels."""

    def __init__(self, name: str) -> None:
        self.size = _LARGEST - _LARGEST % entry(name).multiple
        self._temporary = TemporaryDirectory(prefix="zoo-forms-")
        folder = Path(self._temporary.name)
        self._source, self._target, self._ranges = (folder / n for n in ("float.onnx", "made.onnx", "ranges.json"))
        onnx.save(build(name, self.size, 0), self._source)

    def model(self, wanted: QuantizedForm) -> onnx.ModelProto:
        """The network in this form, calibrated on one synthetic image."""
        options = QuantizeOptions(samples=1, form=wanted.form, weights=wanted.weights, activations=wanted.activations)
        # The ranges of activations are those of the float network. The noise is not of interest.
        once = partial(onnxruntime.quantization.quantize_static, calibration_cache_path=self._ranges)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(onnxruntime.quantization, "quantize_static", once)
            patch.setattr(static, "measure_noise", lambda *_: [])
            quantize(self._source, self._target, None, options)
        made = onnx.load(self._target)
        return with_unsigned_weights(made) if wanted.unsigned else made
