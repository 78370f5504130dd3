"""Options of quantization."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from intloom.common.errors import UsageError


class Form(StrEnum):
    """How quantized operators are written into the model."""

    QDQ = "qdq"
    QOPERATOR = "qoperator"


class ActivationType(StrEnum):
    """Type of activations; onnxruntime's x86 kernels compute uint8 in integers."""

    UINT8 = "uint8"
    INT8 = "int8"


class WeightScales(StrEnum):
    """Granularity of weight scales."""

    PER_CHANNEL = "per-channel"
    PER_TENSOR = "per-tensor"


class Calibration(StrEnum):
    """Method that derives ranges from the values on the calibration images."""

    AUTO = "auto"
    """The one of `minmax` and `mse` whose outputs agree better with those of the float model on held-back samples."""
    MINMAX = "minmax"
    ENTROPY = "entropy"
    PERCENTILE = "percentile"
    MSE = "mse"
    """Ranges with the smallest squared error after the activation function."""


class Head(StrEnum):
    """Treatment of the detection tail, the decoding after the last convolutions."""

    FLOAT = "float"
    WHOLE = "whole"


_CHOICES: Mapping[str, type[StrEnum]] = {
    "form": Form,
    "activations": ActivationType,
    "weights": WeightScales,
    "calibration": Calibration,
    "head": Head,
}


def _member(name: str, kind: type[StrEnum], value: str) -> StrEnum:
    if value not in list(kind):
        raise UsageError(f"{name} must be one of {', '.join(kind)}, not {value!r}")
    return kind(value)


DEFAULT_PERCENTILE = 99.99
_MOST_SAMPLES = 10_000
"""Ranges converge with far fewer."""


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """All options, with defaults for YOLOv8."""

    form: Form = Form.QDQ
    activations: ActivationType = ActivationType.UINT8
    weights: WeightScales = WeightScales.PER_CHANNEL
    calibration: Calibration = Calibration.AUTO
    head: Head = Head.FLOAT
    samples: int | None = None
    """Maximum number of samples; None is all of the calibration set, or 8 synthetic ones."""
    percentile: float | None = None
    """Percentage of values inside the range, for calibration by percentile; None is `DEFAULT_PERCENTILE`."""
    seed: int = 0
    """Seed of the synthetic images."""
    equalize: bool = False
    """Equalize the ranges of channels between layers first."""
    correct_bias: bool = False
    """Correct biases so that the mean of every channel equals that of the float model; needs the form `qdq`."""
    exclude: Sequence[str] = ()
    """Names of additional nodes that stay float."""

    def __post_init__(self) -> None:
        for name, kind in _CHOICES.items():
            # Strings are converted to members, so that a wrong one is an error instead of a default.
            object.__setattr__(self, name, _member(name, kind, getattr(self, name)))
        object.__setattr__(self, "exclude", tuple(self.exclude))
        if self.correct_bias and self.form is not Form.QDQ:
            raise UsageError(f"bias correction needs the form qdq, not {self.form}; remove one of them")
        for name in ("samples", "seed"):
            if not isinstance(getattr(self, name), int) and (name, self.samples) != ("samples", None):
                raise UsageError(f"{name} must be a whole number, not {getattr(self, name)!r}")
        if self.samples is not None and not 1 <= self.samples <= _MOST_SAMPLES:
            raise UsageError(f"samples must be from 1 to {_MOST_SAMPLES}, not {self.samples}")
        if self.percentile is not None and self.calibration is not Calibration.PERCENTILE:
            raise UsageError(f"percentile applies to calibration by percentile, not by {self.calibration}; remove it")
        if self.percentile is not None and not 50.0 < self.percentile <= 100.0:
            raise UsageError(f"percentile must be above 50 and at most 100, not {self.percentile}")
        if self.seed < 0:
            raise UsageError(f"seed must be at least 0, not {self.seed}")
