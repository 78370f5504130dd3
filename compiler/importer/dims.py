"""Sizes of open dimensions of a model's inputs."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from intloom.common.errors import ModelError, UnsupportedError, UsageError
from intloom.compiler.refusals import Refusal

_log = logging.getLogger(__name__)
_TOO_LARGE = 1 << 20
_HIGHEST_RANK = 8
_PLACEHOLDERS = frozenset({"", "?", "-1", "None"})
"""Names that exporters give to all open dimensions, for example Paddle2ONNX; their sizes may differ."""


@dataclass(frozen=True, eq=False)
class _Dim:
    """A dimension of an input."""

    value: onnx.ValueInfoProto
    axis: int

    @property
    def proto(self) -> onnx.TensorShapeProto.Dimension:
        return self.value.type.tensor_type.shape.dim[self.axis]

    @property
    def is_open(self) -> bool:
        """Exporters write 0 and -1 (Paddle2ONNX) for sizes that they leave open."""
        return self.proto.dim_value in (0, -1)

    @property
    def place(self) -> str:
        return f"{self.value.name}.{self.axis}"

    @property
    def name(self) -> str:
        param = self.proto.dim_param
        return param if self.is_open and param not in _PLACEHOLDERS else self.place

    @property
    def _is_alone(self) -> bool:
        return len(self.value.type.tensor_type.shape.dim) == 1

    @property
    def is_batch(self) -> bool:
        """Whether it counts images; the only dimension of a vector is its length."""
        return self.axis == 0 and not self._is_alone

    @property
    def names(self) -> tuple[str, ...]:
        """All names that users may give it."""
        return (self.name, self.place, *([self.value.name] if self._is_alone else []))


def fix_dims(graph: onnx.GraphProto, dims: Mapping[str, int]) -> dict[str, int]:
    """Set the sizes of all open dimensions of the inputs; return the sizes by name.

    `dims` names a dimension as the file does, or as `input.axis`, for example `images.0`; the latter may repeat a size
    of the file. Batch sizes become 1, with a log message, if no other dimension is left open.

    Raises
    ------
    UnsupportedError
        A dimension is still open, or an input has no shape.
    ModelError
        A size of the file is negative or too large.
    UsageError
        `dims` names a dimension that does not exist, or contradicts the file or itself.
    """
    stored = {t.name for t in graph.initializer}
    inputs = [v for v in graph.input if v.name not in stored and v.type.HasField("tensor_type")]
    for value in inputs:
        _add_rank(value, dims)
    every = [_Dim(v, axis) for v in inputs for axis in range(len(v.type.tensor_type.shape.dim))]
    chosen = _chosen(every, dims)
    missing = [d for d in every if d.is_open and d.name not in chosen]
    if missing and all(d.is_batch for d in missing):
        name = missing[0].name
        _log.warning("the batch size %r is open: it becomes 1 (--dim %s=N sets another size)", name, name)
        chosen |= dict.fromkeys((d.name for d in missing), 1)
    elif missing:
        raise UnsupportedError(
            f"dimension {missing[0].axis} of input {missing[0].value.name!r} must be fixed, but {missing[0].name!r} is "
            f"open: set the sizes with {_advice(every, missing, chosen)}",
            Refusal.OPEN_SIZE.number,
        )
    _store(every, chosen)
    for value in (*graph.output, *graph.value_info):
        _clear_placeholders(value)
    return chosen


def _add_rank(value: onnx.ValueInfoProto, dims: Mapping[str, int]) -> None:
    """Give an input without a shape the rank that `dims` implies."""
    kind = value.type.tensor_type
    if kind.HasField("shape"):
        return
    rank = next(n for n in range(_HIGHEST_RANK + 1) if f"{value.name}.{n}" not in dims)
    if not rank:
        raise UnsupportedError(
            f"input {value.name!r} must have a shape: give it with --shape {value.name}=N,N,...",
            Refusal.OPEN_SIZE.number,
        )
    kind.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(rank))


def _chosen(every: Sequence[_Dim], dims: Mapping[str, int]) -> dict[str, int]:
    """The sizes of `dims` by the names of open dimensions."""
    chosen: dict[str, int] = {}
    for key, size in dims.items():
        named = [d for d in every if key in d.names]
        # A misspelled name would otherwise leave its dimension at the default without a message.
        if not named:
            raise UsageError(f"no open dimension is named {key!r}: {_listed(every)}; remove its size")
        for dim in named:
            before = chosen.setdefault(dim.name, size) if dim.is_open else dim.proto.dim_value
            if before != size:
                raise UsageError(
                    f"dimension {dim.axis} of input {dim.value.name!r} is {before}, not {size}: remove one of them"
                )
            if not 0 < size < _TOO_LARGE:
                raise UsageError(f"the size of {key!r} must be from 1 to {_TOO_LARGE - 1}, not {size}")
    return chosen


def _advice(every: Sequence[_Dim], missing: Sequence[_Dim], chosen: Mapping[str, int]) -> str:
    """The options that give the missing sizes; N stands for them."""
    shapes: dict[str, list[str]] = {}
    for dim in every:
        size = chosen.get(dim.name, 1 if dim.is_batch else "N") if dim.is_open else dim.proto.dim_value
        shapes.setdefault(dim.value.name, []).append(str(size))
    return " ".join(f"--shape {n}={','.join(shapes[n])}" for n in dict.fromkeys(d.value.name for d in missing))


def _store(every: Sequence[_Dim], chosen: Mapping[str, int]) -> None:
    """Write the sizes into the graph."""
    for dim in every:
        if dim.is_open:
            dim.proto.dim_value = chosen[dim.name]
        if not 0 < dim.proto.dim_value < _TOO_LARGE:
            raise ModelError(
                f"dimension {dim.axis} of input {dim.value.name!r} must be from 1 to {_TOO_LARGE - 1}, not "
                f"{dim.proto.dim_value}"
            )


def _clear_placeholders(value: onnx.ValueInfoProto) -> None:
    """Leave sizes of -1, which mean that a dimension is open, to shape inference."""
    for dim in value.type.tensor_type.shape.dim:
        if dim.dim_value == -1:
            dim.ClearField("dim_value")


def _listed(every: Sequence[_Dim]) -> str:
    names = sorted({d.name for d in every if d.is_open})
    inputs = ", ".join(dict.fromkeys(repr(d.value.name) for d in every))
    sizes = f"open are {', '.join(names)}" if names else "all sizes of the model are fixed"
    return f"{sizes}, inputs are {inputs}"
