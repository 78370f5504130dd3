"""Ranges of activations that give the smallest error after the activation function.

A range from the smallest to the largest value spends codes on values that do not matter: SiLU maps everything below -6
almost to 0, and single outliers widen the range for all others. For each tensor, the ends are moved inwards, and the
pair with the smallest squared error of f(x) against f(quantized x) is taken, where f is the activation function that
reads the tensor. Errors are relative to the power of each sample, so that one sample with large values does not
decide for all. What only a layer normalization reads is compared after it, row by row: one large value, as
transformers have in their first token, must not take the codes of all other tokens. Where it is the sum of a layer's
result and a residual, the range of the layer's result is searched with that of the sum: what is cut off of both need
not be representable.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.quantization.graph_values import rows_of, thinned, values_of
from intloom.quantization.samples import Sample, input_specs

Floats = NDArray[np.float64]
Range = tuple[float, float]
Overrides = dict[str, list[dict[str, Any]]]
"""onnxruntime's option TensorQuantOverrides: range, or scale and zero point, of tensors by name."""
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
_ROUNDED_DOWN = 1 - 1e-9
"""Factor of a sum of floats that makes it smaller than the exact one."""


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
    # The rounded zero point moves both ends of a range by at most half a step.
    reach = (max(0.0, most) - min(0.0, least)) / _CODES / 2

    def cut_off(end: float, sign: int) -> float:
        """The error of the values beyond the lower (-1) or the upper end (1) alone, rounded down."""
        if sign < 0 and function is silu:  # It does not rise everywhere below 0.
            return 0.0
        lost = sign * (wanted - function(np.array([end + sign * reach])))
        return float((np.square(np.maximum(lost, 0.0)) * weights).sum()) * _ROUNDED_DOWN

    return _smallest(error, least, most, cut_off)


def best_range_of_rows(rows: Floats) -> Range:
    """The range for values whose rows are normalized."""
    wanted = normalized(rows)
    return _smallest(lambda *ends: _row_error(rows, ends, wanted), float(rows.min()), float(rows.max()))


def best_ranges_of_sum(term: Floats, rest: Floats, total: Range) -> tuple[Range, Range]:
    """Ranges of a term and of its sum with the rest, whose rows are normalized; `total` is the best without the term.

    The four ends are moved one after the other, from those of all values of the term.
    """
    wanted = normalized(term + rest)
    extremes = [float(end(v)) for v in (term, term + rest) for end in (np.min, np.max)]
    ends = [*extremes[:2], *total]

    def error(low: float, high: float, *ends: float) -> float:
        if low >= high or ends[0] >= ends[1]:
            return float("inf")
        return _row_error(restored(term, low, high) + rest, ends, wanted)

    for k in (*range(len(ends)), *range(len(ends))):
        tried = [*(_SHARES * extremes[k]).tolist(), ends[k]]
        ends[k] = min(tried, key=lambda end: error(*ends[:k], end, *ends[k + 1 :]))
    return (ends[0], ends[1]), (ends[2], ends[3])


def _row_error(rows: Floats, ends: Sequence[float], wanted: Floats) -> float:
    """The error of quantized rows after the normalization."""
    rest = normalized(restored(rows, ends[0], ends[1])) - wanted
    # Squared again: a token that is lost weighs more than small errors of all tokens.
    return float(np.square(np.square(rest).sum(axis=-1)).sum())


def _smallest(
    error: Callable[[float, float], float],
    least: float,
    most: float,
    bound: Callable[[float, int], float] = lambda _end, _sign: 0.0,
) -> Range:
    """The range with the smallest error, of those from shares of these extremes and 0.

    No error is below the sum of the bounds of its two ends. The first of several smallest errors counts.
    """
    lows, highs = (
        {tried: bound(tried, sign) for tried in (end * _SHARES).tolist()}
        for sign, end in ((-1, min(0.0, least)), (1, max(0.0, most)))
    )
    tried = [(low, high) for low in lows for high in highs if low < high]
    bounds = [lows[low] + highs[high] for low, high in tried]
    smallest, first = float("inf"), 0
    for k in sorted(range(len(tried)), key=bounds.__getitem__):
        if bounds[k] > smallest:
            break
        smallest, first = min((smallest, first), (error(*tried[k]), k))
    return tried[first] if tried else (0.0, 0.0)


def normalized(rows: Floats) -> Floats:
    """Each row without its mean, divided by its standard deviation."""
    rest = rows - rows.mean(axis=-1, keepdims=True)
    result: Floats = rest / np.sqrt(np.square(rest).mean(axis=-1, keepdims=True) + _SMALL)
    return result


def _before_norms(model: onnx.ModelProto, samples: Sequence[Sample], ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Ranges of the tensors that only layer normalizations read, and of the terms of such a sum."""
    readers: dict[str, list[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node.op_type)
    names = [name for name in ranges if {*readers.get(name, [])} == {"LayerNormalization"}]
    if not names:
        return {}
    makers = {o: n for n in model.graph.node for o in n.output}
    sums = {name: makers[name] for name in names if name in makers and makers[name].op_type == "Add"}
    operands = {name: [i for i in node.input if i in makers] for name, node in sums.items()}
    rows = rows_of(model, list(dict.fromkeys([*names, *(i for ops in operands.values() for i in ops)])), samples, _ROWS)
    made = {}
    for name in names:
        made[name] = best_range_of_rows(rows[name])
        for operand in operands.get(name, ()):
            term = operand
            while term in makers and makers[term].op_type == "Reshape" and len(readers[term]) == 1:
                term = makers[term].input[0]
            if term in ranges and len(readers[term]) == 1:
                rest = rows[name] - rows[operand]
                made[term], made[name] = best_ranges_of_sum(rows[operand], rest, made[name])
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


def restored(values: Floats, low: float, high: float) -> Floats:
    """The real values of the codes of values."""
    codes, levels = rounded(values, low, high)
    return levels[codes]


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


def as_overrides(ranges: Mapping[str, Range]) -> Overrides:
    """The ranges for onnxruntime, which requires numpy's floats."""
    return {name: [{"rmin": np.float32(low), "rmax": np.float32(high)}] for name, (low, high) in ranges.items()}
