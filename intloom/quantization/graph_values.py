"""Values of tensors inside a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.compiler.reference import open_session
from intloom.quantization.samples import FloatArray


def with_values(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """The model with these tensors as its only outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    return copy


def values_of(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[FloatArray], most: int
) -> dict[str, list[NDArray[np.float64]]]:
    """Values of each tensor on each sample: at most `most` evenly spaced ones, and the extremes."""
    return {
        name: [_thinned(np.ravel(a), most).astype(np.float64) for a in arrays]
        for name, arrays in _collect(model, names, samples).items()
    }


def channel_means(model: onnx.ModelProto, name: str, samples: Sequence[FloatArray]) -> NDArray[np.float64]:
    """Mean of a tensor per sample and channel, its second dimension."""
    (arrays,) = _collect(model, [name], samples).values()
    return np.array([np.moveaxis(a, 1, 0).reshape(a.shape[1], -1).mean(axis=1, dtype=np.float64) for a in arrays])


def _collect(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[FloatArray]
) -> dict[str, list[NDArray[Any]]]:
    session = open_session(with_values(model, names).SerializeToString())
    (given,) = session.get_inputs()
    rows = [session.run(list(names), {given.name: s}) for s in samples]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _thinned(values: NDArray[Any], most: int) -> NDArray[Any]:
    if values.size <= most:
        return values
    step = -(-values.size // most)
    return np.concatenate([values[::step], [values.min(), values.max()]])
