"""Choice of the calibration method by agreement with the float model on samples that did not calibrate."""

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.compiler.reference import open_session
from intloom.quantization.options import Calibration
from intloom.quantization.samples import Samples

CANDIDATES = (Calibration.MINMAX, Calibration.MSE)
"""Percentile takes several times as long: 167 s against 30 and 60 s for PP-OCRv4's recognizer on a loaded machine."""
_MOST_HELD_BACK = 8
_SHARE = 4
_ROWS = 3
"""From this rank on, the second dimension holds values of different kinds: coordinates and scores, or positions."""
_SMALL = 1e-12


def hold_back(samples: Samples) -> tuple[Samples, Samples]:
    """Samples that calibrate, and every fourth one, at most 8, to compare on; fewer than 4 samples serve for both."""
    chosen = list(range(_SHARE - 1, len(samples), _SHARE))[:_MOST_HELD_BACK]
    if not chosen:
        return samples, samples
    return samples.split(chosen)


def agreement(floats: onnx.ModelProto, quantized: onnx.ModelProto, samples: Samples) -> float:
    """1 minus the mean share of noise in the outputs' power, from 0 to 1.

    The share is taken for each index of the second dimension of outputs with three dimensions or more: one tensor
    often holds coordinates of hundreds of pixels and scores below 1.
    """
    reference, made = (open_session(m.SerializeToString()) for m in (floats, quantized))
    shares = [
        _noise_share(np.asarray(real, np.float64), np.asarray(result, np.float64))
        for sample in samples
        for real, result in zip(reference.run(None, dict(sample)), made.run(None, dict(sample)), strict=True)
    ]
    return 1.0 - float(np.mean(shares))


def _noise_share(real: NDArray[np.float64], made: NDArray[np.float64]) -> float:
    rows = (real.shape[1], -1) if real.ndim >= _ROWS else (1, -1)
    axes = (1, 0, *range(2, real.ndim)) if real.ndim >= _ROWS else tuple(range(real.ndim))
    real, made = (np.nan_to_num(v.transpose(axes).reshape(rows)) for v in (real, made))
    signal, noise = np.square(real).mean(axis=1), np.square(made - real).mean(axis=1)
    return float((noise / (signal + noise + _SMALL)).mean())
