"""Values of tensors inside a model."""

from collections.abc import Callable, Iterable, Sequence
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
    """Values of each tensor on each sample: at most `most` evenly spaced ones, and the extremes."""
    return _collect(model, names, samples, lambda a: _thinned(np.ravel(a), most).astype(np.float64))


def channel_means(model: onnx.ModelProto, name: str, samples: Sequence[Sample]) -> NDArray[np.float64]:
    """Mean of a tensor per sample and channel, its second dimension."""
    (means,) = _collect(model, [name], samples, _channel_means).values()
    return np.array(means)


def _channel_means(values: NDArray[Any]) -> NDArray[np.float64]:
    by_channel = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    return np.asarray(by_channel.mean(axis=1, dtype=np.float64))


def _collect(
    model: onnx.ModelProto,
    names: Sequence[str],
    samples: Sequence[Sample],
    reduce: Callable[[NDArray[Any]], NDArray[np.float64]],
) -> dict[str, list[NDArray[np.float64]]]:
    """What `reduce` keeps of each tensor on each sample; only one sample's tensors are in memory at a time."""
    session = open_session(with_values(model, names).SerializeToString())
    rows = [[reduce(value) for value in session.run(list(names), dict(sample))] for sample in samples]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _thinned(values: NDArray[Any], most: int) -> NDArray[Any]:
    if values.size <= most:
        return values
    step = -(-values.size // most)
    return np.concatenate([values[::step], [values.min(), values.max()]])
