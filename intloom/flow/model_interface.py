"""Inputs, outputs and metadata of a model, as onnxruntime gives them, and the check of a run's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from intloom.arrays import Array
from intloom.common.errors import UsageError
from intloom.compiler.importer import Model
from intloom.models import ModelSource, is_tflite_file, model_proto
from intloom.preparation import PLAIN, Preparation, stored_preparation


@dataclass(frozen=True)
class NodeArg:
    """An input or output, with the fields of `onnxruntime.NodeArg`."""

    name: str
    type: str
    """`tensor(float)`, `tensor(uint8)` and so on."""
    shape: list[Any]
    """Sizes; a size that depends on the data is a name or None."""
    preparation: Preparation = PLAIN
    """How a picture becomes a value of it."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of its values."""
        element = self.type.removeprefix("tensor(").removesuffix(")")
        return np.dtype(helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(element.upper())))


@dataclass(frozen=True)
class ModelMetadata:
    """Texts of a model file, with the fields of `onnxruntime.ModelMetadata`."""

    graph_name: str = ""
    description: str = ""
    domain: str = ""
    graph_description: str = ""
    producer_name: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def read_metadata(source: ModelSource) -> ModelMetadata:
    """The metadata of a model."""
    if is_tflite_file(source):
        return ModelMetadata(str(source))
    model = model_proto(source)
    return ModelMetadata(
        graph_name=model.graph.name,
        description=model.doc_string,
        domain=model.domain,
        graph_description=model.graph.doc_string,
        producer_name=model.producer_name,
        version=model.model_version,
        custom_metadata_map={p.key: p.value for p in model.metadata_props},
    )


def typed_feeds(feed: Any, inputs: Sequence[NodeArg]) -> dict[str, Array]:
    """The values of all inputs as arrays; as in onnxruntime, only values that are not arrays are converted.

    Raises
    ------
    UsageError
        A name, type, rank or shape is not that of the input.
    """
    if not isinstance(feed, Mapping):
        raise UsageError(f"input_feed must be a dictionary of arrays by input name, not {type(feed).__name__}")
    names = [i.name for i in inputs]
    if unknown := [n for n in feed if n not in names]:
        raise UsageError(f"input must be one of {', '.join(names)}, not {unknown[0]!r}")
    if missing := [i for i in inputs if i.name not in feed]:
        raise UsageError(f"input {missing[0].name!r} of shape {missing[0].shape} is missing; add it to input_feed")
    return {i.name: _typed(feed[i.name], i) for i in inputs}


def split_batch(feed: Any, inputs: Sequence[NodeArg], outputs: Sequence[NodeArg]) -> list[Any]:
    """Inputs with N images as N inputs with one; otherwise the feed itself, which `typed_feeds` checks.

    All inputs and outputs of the program must have a first size of 1.
    """
    if not isinstance(feed, Mapping) or set(feed) != {i.name for i in inputs}:
        return [feed]
    counts = {len(v) if isinstance(v, np.ndarray) and v.ndim else 0 for v in feed.values()}
    single = all(list(a.shape[:1]) == [1] for a in (*inputs, *outputs))
    if len(counts) != 1 or not single or (count := counts.pop()) < 2:
        return [feed]
    return [{name: array[n : n + 1] for name, array in feed.items()} for n in range(count)]


def _typed(value: Any, wanted: NodeArg) -> Array:
    array = value if isinstance(value, np.ndarray) else _converted(value, wanted)
    what, dtype = f"input {wanted.name!r}", wanted.dtype
    if array.dtype != dtype:
        raise UsageError(f"{what} must be {wanted.type}, not {array.dtype}; convert it with .astype(numpy.{dtype})")
    if array.ndim != len(wanted.shape):
        raise UsageError(
            f"{what} must have rank {len(wanted.shape)} (shape {wanted.shape}), not rank {array.ndim} "
            f"(shape {list(array.shape)})"
        )
    if list(array.shape) != wanted.shape:
        raise UsageError(f"{what} must have shape {wanted.shape}, not {list(array.shape)}")
    return array


def _converted(value: Any, wanted: NodeArg) -> Array:
    try:
        return np.asarray(value, None if isinstance(value, np.generic) else wanted.dtype)
    except (ValueError, TypeError) as error:
        raise UsageError(f"input {wanted.name!r} must be an array, but conversion failed: {error}") from None


def input_args(model: Model, source: ModelSource) -> tuple[NodeArg, ...]:
    """The inputs of a model imported from `source`."""
    preparation = stored_preparation(read_metadata(source).custom_metadata_map) or PLAIN
    return tuple(replace(_arg(model, name, model.shape(name)), preparation=preparation) for name in model.inputs)


def output_args(model: Model, source: ModelSource) -> tuple[NodeArg, ...]:
    """The outputs of a model imported from `source`; sizes that shape inference cannot find are as declared there."""
    declared: dict[str, list[Any]] = {}
    if any(model.shape(name) is None for name in model.outputs):
        declared = {o.name: _declared_shape(o) for o in model_proto(source).graph.output}
    return tuple(_arg(model, name, model.shape(name) or declared.get(name, [])) for name in model.outputs)


def float_args(shapes: Mapping[str, tuple[int, ...]]) -> tuple[NodeArg, ...]:
    """Float inputs or outputs of the given shapes."""
    return tuple(NodeArg(name, "tensor(float)", list(shape)) for name, shape in shapes.items())


def _arg(model: Model, name: str, shape: Any) -> NodeArg:
    return NodeArg(name, f"tensor({model.dtype(name)})", list(shape or ()))


def _declared_shape(value: onnx.ValueInfoProto) -> list[Any]:
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]
