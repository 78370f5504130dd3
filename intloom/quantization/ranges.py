"""Ranges of activations that give the smallest error after the activation function.

A range from the smallest to the largest value spends codes on values that do not matter: SiLU maps everything below -6
almost to 0, and single outliers widen the range for all others. For each tensor, the ends are moved inwards, and the
pair with the smallest squared error of f(x) against f(quantized x) is taken, where f is the activation function that
reads the tensor. Errors are relative to the power of each sample, so that one sample with large values does not
decide for all. What only a layer normalization reads is compared after it, row by row: one large value, as
transformers have in their first token, must not take the codes of all other tokens.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.quantization.graph_values import rows_of, thinned, values_of
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
_ROWS = 256
"""Rows of all samples that are normalized."""
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
    ranges = {name: best_range(v, activation_function(model, name)) for name, v in values.items()}
    return ranges | _before_norms(model, samples, ranges)


def best_range(samples: Sequence[Floats], function: Callable[[Floats], Floats]) -> Range:
    """The range for values that `function` reads: of each sample values, and how many each stands for."""
    values, weights = _grouped(*np.concatenate([_weighted(s, function) for s in samples], axis=1))
    wanted = function(values)

    def error(low: float, high: float) -> float:
        codes, levels = rounded(values, low, high)
        return float((np.square(function(levels)[codes] - wanted) * weights).sum())

    least, most = (end(float(end(s[0])) for s in samples) for end in (min, max))
    return _smallest(error, least, most)


def best_range_of_rows(rows: Floats) -> Range:
    """The range for values whose rows are normalized."""
    wanted = normalized(rows)

    def error(low: float, high: float) -> float:
        codes, levels = rounded(rows, low, high)
        # Squared again: a token that is lost weighs more than small errors of all tokens.
        return float(np.square(np.square(normalized(levels[codes]) - wanted).sum(axis=-1)).sum())

    return _smallest(error, float(rows.min()), float(rows.max()))


def _smallest(error: Callable[[float, float], float], least: float, most: float) -> Range:
    """The range with the smallest error, of those from shares of these extremes and 0."""
    lows, highs = (dict.fromkeys((end * _SHARES).tolist()) for end in (min(0.0, least), max(0.0, most)))
    tried = [(low, high) for low in lows for high in highs if low < high]
    return min(tried, key=lambda ends: error(*ends), default=(0.0, 0.0))


def normalized(rows: Floats) -> Floats:
    """Each row without its mean, divided by its standard deviation."""
    rest = rows - rows.mean(axis=-1, keepdims=True)
    result: Floats = rest / np.sqrt(np.square(rest).mean(axis=-1, keepdims=True) + _SMALL)
    return result


def _before_norms(model: onnx.ModelProto, samples: Sequence[Sample], ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Ranges of the tensors that only layer normalizations read, and of the terms of such a sum."""
    readers: dict[str, set[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, set()).add(node.op_type)
    names = [name for name in ranges if readers.get(name) == {"LayerNormalization"}]
    if not names:
        return {}
    made = {name: best_range_of_rows(rows) for name, rows in rows_of(model, names, samples, _ROWS).items()}
    makers = {o: n for n in model.graph.node for o in n.output}
    for name in names:
        # A term beyond the range of the sum is cut off in the sum.
        for term in makers[name].input if makers[name].op_type == "Add" else ():
            while term in makers and makers[term].op_type == "Reshape" and readers[term] == {"Add"}:
                term = makers[term].input[0]
            if term in ranges and len(readers[term]) == 1:
                made[term] = max(ranges[term][0], made[name][0]), min(ranges[term][1], made[name][1])
    return made


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
