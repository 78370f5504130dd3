"""Shape inference, with the integer operators of com.microsoft that ONNX's own inference does not know."""

from __future__ import annotations

import onnx

from intloom.common.errors import ModelError


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shapes of all values that can be known."""
    inferred: onnx.ModelProto = onnx.shape_inference.infer_shapes(
        proto, check_type=True, strict_mode=True, data_prop=True
    )
    _check_batch(inferred.graph)
    return inferred


def _check_batch(graph: onnx.GraphProto) -> None:
    """Sizes must be sane: the inference itself lets negative ones through."""
    for value in graph.value_info:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value < 0:
                raise ModelError(f"dimension {axis} of {value.name!r} must not be negative, but is {dim.dim_value}")
