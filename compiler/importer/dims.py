"""Sizes of open dimensions of a model's inputs."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import onnx

from intloom.common.errors import ModelError, UnsupportedError, UsageError

_log = logging.getLogger(__name__)
_TOO_LARGE = 1 << 20


def fix_dims(graph: onnx.GraphProto, dims: Mapping[str, int]) -> dict[str, int]:
    """Set the sizes of all open dimensions of the inputs; return the sizes by name.

    An unnamed dimension has the name `input.axis`, for example `images.0`. Batch sizes become 1, with a log message, if
    no other dimension is left open.

    Raises
    ------
    UnsupportedError
        A dimension is still open, or an input has no shape.
    ModelError
        A size is not positive, or too large.
    UsageError
        `dims` names a dimension that is not open.
    """
    stored = {t.name for t in graph.initializer}
    inputs = [v for v in graph.input if v.name not in stored and v.type.HasField("tensor_type")]
    opened = [(v, axis, key) for v in inputs for axis, key in _open_axes(v)]
    names = {key for _, _, key in opened}
    # A misspelled name would otherwise leave its dimension at the default without a message.
    if unknown := sorted(set(dims) - names):
        raise UsageError(f"no open dimension is named {unknown[0]!r}: {_listed(names)}; remove its size")
    chosen = {key: dims[key] for key in names if key in dims}
    missing = [(v, axis, key) for v, axis, key in opened if key not in chosen]
    # An open first dimension of a vector is its length and not a batch.
    if missing and all(axis == 0 and len(v.type.tensor_type.shape.dim) > 1 for v, axis, _ in missing):
        key = missing[0][2]
        _log.warning("the batch size %r is open: it becomes 1 (--dim %s=N sets another size)", key, key)
        chosen |= dict.fromkeys((k for _, _, k in missing), 1)
    elif missing:
        keys = sorted({k for _, _, k in missing})
        v, axis, key = missing[0]
        raise UnsupportedError(
            f"dimension {axis} of input {v.name!r} must be fixed, but it is dynamic: set a size for {key!r}: "
            f"{' '.join(f'--dim {k}=N' for k in keys)}"
        )
    for v, axis, key in opened:
        v.type.tensor_type.shape.dim[axis].dim_value = chosen[key]
    for v in inputs:
        _check_sizes(v)
    return chosen


def _open_axes(value: onnx.ValueInfoProto) -> list[tuple[int, str]]:
    """The open dimensions of an input and their names."""
    if not value.type.tensor_type.HasField("shape"):
        raise UnsupportedError(f"input {value.name!r} must have a shape: export the model with fixed sizes")
    axes = enumerate(value.type.tensor_type.shape.dim)
    return [(axis, d.dim_param or f"{value.name}.{axis}") for axis, d in axes if not d.HasField("dim_value")]


def _check_sizes(value: onnx.ValueInfoProto) -> None:
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if not 0 < dim.dim_value < _TOO_LARGE:
            raise ModelError(
                f"dimension {axis} of input {value.name!r} must be from 1 to {_TOO_LARGE - 1}, not {dim.dim_value}"
            )


def _listed(names: set[str]) -> str:
    return f"open are {', '.join(sorted(names))}" if names else "all sizes of the model are fixed"
