"""Values of tensors inside a model."""

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.compiler.reference import open_session
from intloom.quantization.samples import Sample


def with_values(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """The model with these tensors as its only outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    return copy


def values_of(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[Sample], most: int
) -> dict[str, list[NDArray[np.float64]]]:
    """Values of each tensor on each sample, and how many each stands for: at most `most`, and the extremes."""
    return _collect(model, names, samples, lambda _, a: thinned(np.ravel(a), most))


def rows_of(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[Sample], most: int
) -> dict[str, NDArray[np.float64]]:
    """Random rows of each tensor, along its last axis: the same of all tensors with as many, about `most` in all."""
    count = -(-most // len(samples))

    def draw(sample: int, values: NDArray[Any]) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = values.reshape(-1, values.shape[-1])
        return np.random.default_rng(sample).permutation(rows)[:count]

    drawn = _collect(model, names, samples, draw)
    return {name: np.concatenate(rows).astype(np.float64) for name, rows in drawn.items()}


def channel_means(model: onnx.ModelProto, name: str, samples: Sequence[Sample]) -> NDArray[np.float64]:
    """Mean of a tensor per sample and channel, its second dimension."""
    (means,) = _collect(model, [name], samples, _channel_means).values()
    return np.array(means)


def channel_maxima(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[Sample]
) -> dict[str, NDArray[np.float64]]:
    """Largest absolute value of each tensor on all samples, by channel: its last dimension."""
    drawn = _collect(model, names, samples, lambda _, a: np.abs(a.reshape(-1, a.shape[-1])).max(axis=0))
    return {name: np.max(rows, axis=0) for name, rows in drawn.items()}


def _channel_means(_sample: int, values: NDArray[Any]) -> NDArray[np.float64]:
    by_channel = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    return np.asarray(by_channel.mean(axis=1, dtype=np.float64))


def _collect(
    model: onnx.ModelProto,
    names: Sequence[str],
    samples: Sequence[Sample],
    reduce: Callable[[int, NDArray[Any]], NDArray[np.float64]],
) -> dict[str, list[NDArray[np.float64]]]:
    """What `reduce` keeps of each tensor on each numbered sample; only one sample's tensors are in memory at a time."""
    session = open_session(with_values(model, names).SerializeToString())
    rows = [[reduce(k, value) for value in session.run(list(names), dict(s))] for k, s in enumerate(samples)]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def thinned(values: NDArray[Any], most: int) -> NDArray[np.float64]:
    """Evenly spaced values and the extremes, and in a second row how many values each stands for."""
    step = -(-values.size // most)
    # A step with a divisor of the size would take the same pixels of every channel.
    while values.size > most and gcd(step, values.size) > 1:
        step += 1
    taken = values[::step]
    kept = np.concatenate([taken, [values.min(), values.max()]]) if step > 1 else taken
    counts = np.where(np.arange(kept.size) < taken.size, step, 1)
    return np.stack([kept, counts]).astype(np.float64)
