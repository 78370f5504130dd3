"""Ranges of activations that give the smallest error after the activation function.

A range from the smallest to the largest value spends codes on values that do not matter: SiLU maps everything below -6
almost to 0, and single outliers widen the range for all others. For each tensor, the ends are moved inwards, and the
pair with the smallest squared error of f(x) against f(quantized x) is taken, where f is the activation function that
reads the tensor. Errors are relative to the power of each sample, so that one sample with large values does not
decide for all.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.quantization.graph_values import thinned, values_of
from intloom.quantization.samples import Sample, input_specs

Floats = NDArray[np.float64]
Range = tuple[float, float]
_PRODUCERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Mul", "Add", "Relu", "LeakyRelu"})
"""Operators with a range of their own; others, such as MaxPool and Concat, take over that of their inputs."""
_SHARES: Floats = np.concatenate([np.linspace(1.0, 0.2, 17), [0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.0]])
"""Tried positions of an end, as shares of the extreme value."""
_LEAST_VALUES, _MOST_VALUES = 256, 65536
"""Values per sample, and values of all samples together."""
_GROUPS = 4096
"""Groups of neighboring values, of which the error is computed once."""
_SMALL = 1e-12
_CODES = 255


def best_ranges(model: onnx.ModelProto, samples: Sequence[Sample]) -> dict[str, Range]:
    """The range of every activation by name, from its values on the samples."""
    names = [o for n in model.graph.node if n.op_type in _PRODUCERS for o in n.output]
    most = max(_LEAST_VALUES, _MOST_VALUES // len(samples))
    values = values_of(model, names, samples, most)
    given = [spec.name for spec in input_specs(model) if spec.dtype.kind == "f"]
    rows = [[thinned(s[name].ravel(), most) for name in given] for s in samples]
    values |= {name: [row[i] for row in rows] for i, name in enumerate(given)}
    return {name: best_range(v, activation_function(model, name)) for name, v in values.items()}


def best_range(samples: Sequence[Floats], function: Callable[[Floats], Floats]) -> Range:
    """The range for values that `function` reads: of each sample values, and how many each stands for."""
    values, weights = _grouped(*np.concatenate([_weighted(s, function) for s in samples], axis=1))
    wanted = function(values)
    least, most = (float(end(0.0, *(end(s[0]) for s in samples))) for end in (min, max))
    chosen, smallest = (least, most), np.inf
    for low in dict.fromkeys(least * _SHARES):
        for high in dict.fromkeys(most * _SHARES):
            if high <= low:
                continue
            codes, levels = rounded(values, low, high)
            error = float((np.square(function(levels)[codes] - wanted) * weights).sum())
            if error < smallest:
                chosen, smallest = (float(low), float(high)), error
    return chosen


def _weighted(sample: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """The values of a sample with weights that divide by its power, so that all samples weigh the same."""
    values, counts = sample
    return np.stack([values, counts / ((counts * np.square(function(values))).sum() + _SMALL)])


def _grouped(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Means of neighboring values, and their weights together."""
    order = np.argsort(values)
    starts = np.unique(np.linspace(0, values.size, _GROUPS + 1).astype(int)[:-1])
    sums = [np.add.reduceat(part[order], starts) for part in (values * weights, weights)]
    return sums[0] / sums[1], sums[1]


def rounded(values: Floats, low: float, high: float) -> tuple[NDArray[np.uint8], Floats]:
    """The codes of the values in 8 bits with the range, and the real values of all codes."""
    scale = (high - low) / _CODES
    zero = np.rint(-low / scale)
    codes = np.clip(np.rint(values / scale) + zero, 0, _CODES).astype(np.uint8)
    return codes, (np.arange(_CODES + 1) - zero) * scale


def activation_function(model: onnx.ModelProto, tensor: str) -> Callable[[Floats], Floats]:
    """The activation function that alone reads a tensor; the identity if there is none."""
    readers = {n.op_type: n for n in model.graph.node if tensor in n.input}
    if set(readers) == {"Sigmoid", "Mul"} and readers["Sigmoid"].output[0] in readers["Mul"].input:
        return silu
    if set(readers) == {"Relu"}:
        return relu
    return lambda x: x


def silu(x: Floats) -> Floats:
    """X times its logistic function."""
    result: Floats = x / (1.0 + np.exp(-np.clip(x, -80.0, 80.0)))
    return result


def relu(x: Floats) -> Floats:
    """The larger of x and 0."""
    result: Floats = np.maximum(x, 0.0)
    return result


def as_overrides(ranges: Mapping[str, Range]) -> dict[str, list[dict[str, float]]]:
    """The ranges as onnxruntime's option TensorQuantOverrides."""
    return {
        name: [{"rmin": np.float32(low), "rmax": np.float32(high)}]  # type: ignore[dict-item]  # numpy floats are required
        for name, (low, high) in ranges.items()
    }
